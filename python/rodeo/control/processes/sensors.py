"""Temperatures of a host, from the kernel. Blocks while the sensors are read."""

from pathlib import Path

MOST = 256


def temperatures(root="/"):
    """Returns {sensor: degrees Celsius}, from hwmon, else from thermal zones. The names are those in the metrics of processes (src/process/host_health.cpp)."""
    found = {}
    for chip in _entries(Path(root) / "sys/class/hwmon"):
        chip_name = _text(chip / "name") or chip.name
        for file in _entries(chip):
            if file.name.startswith("temp") and file.name.endswith("_input"):
                place = file.name.removesuffix("_input")
                _add(found, f"{chip_name} {_text(chip / (place + '_label')) or 'sensor'} ({chip.name}/{place})", file)
    if not found:
        for zone in _entries(Path(root) / "sys/class/thermal"):
            if zone.name.startswith("thermal_zone"):
                _add(found, f"{_text(zone / 'type') or 'sensor'} ({zone.name})", zone / "temp")
    return dict(list(found.items())[:MOST])


def _entries(directory):
    try:
        return sorted(directory.iterdir())
    except OSError:
        return []


def _text(file):
    try:
        return file.read_text(errors="replace").strip()
    except OSError:
        return ""


def _add(found, sensor, file):
    try:
        found[sensor] = int(_text(file)) / 1000
    except ValueError:
        return
