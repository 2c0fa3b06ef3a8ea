"""`rodeo control init`: writes a system for this machine, ready to run: one emulated card, one readout that verifies and records, and the system file."""

import hashlib
import os
import re
import shutil
from pathlib import Path

from rodeo.control.refused import Refused

SYSTEM = """# The system `{name}`, written by `rodeo control init` for this machine ({cores} cores, {disk_gb:.0f} GB of disk). All keys: docs/how-to/control-room.md
#   rodeo control {file}          starts the control room and prints the address of its page
#   rodeo control launch          and from another terminal: launch, start, stop, close; or on the page, or in Python
[control]
name = "{name}"
directory = "data"                # database, logs, and a folder for each run
listen = "127.0.0.1:0"            # the page; port 0 takes a free one
disk_stop = "{disk_stop}"                 # with less free space a run is stopped in order
disk_warn = "{disk_warn}"

[[control.process]]
name = "cards"
kind = "emulator"                 # for real cards remove this class, and set their addresses in readout.toml
configuration = "emulator.toml"
role = "essential"

[[control.process]]
name = "readout"
kind = "readout"
configuration = "readout.toml"
role = "essential"                # if it is lost, the trigger is held, and you have 60 s to choose
"""

EMULATOR = """# An emulated card with {links} links, read by readout.toml.
[emulator]
name = "{name}"

[[emulator.card]]
type = "felix"
name = "felix"
address = "{address}"
mode = "gbt"
links = {fibres}
elinks_per_link = {elinks}
chunk_size = 40
seed = 1

[emulator.trigger]
rate = "{rate}"
spacing = "random"
"""

READOUT = """# Builds an event from all links of the card, verifies every byte, and records all events.
[run]
type = "test"

[readout]
name = "{name}"

[readout.input]
type = "card"
cards = ["{address}"]
start_generator = true

[readout.builder]
type = "gbt"

[readout.extractor]
type = "rodeo"

[[readout.rob]]
source_id = "0x00610001"

[[readout.consumer]]
type = "processor"
name = "processor"
work = "verify"
seed = 1

[[readout.consumer]]
type = "file_writer"
name = "file_writer"
directory = "."                   # the control room puts the run's folder here
"""


def texts(name: str, cores: int, disk_bytes: int) -> dict[str, str]:
    """The files by name. Pure. `disk_bytes`: size of their disk."""
    many = cores >= 4
    fibres, elinks = (6, 8) if many else (2, 4)
    stop_bytes = min(3 * 10**9, disk_bytes // 20)  # a fixed limit would allow no run on a small disk
    values = {
        "name": name,
        "file": "system.toml",
        "cores": cores,
        "disk_gb": disk_bytes / 1e9,
        "fibres": fibres,
        "elinks": elinks,
        "links": fibres * elinks,
        "rate": "10kHz" if many else "1kHz",
        "disk_stop": _written(stop_bytes),
        "disk_warn": _written(3 * stop_bytes),
        # All emulated cards of a user share one directory: the address depends on the system, and differs from that of the demonstration.
        "address": f"0000:{0x40 + hashlib.sha256(name.encode()).digest()[0] % 0x80:02x}:00.0",
    }
    return {
        "system.toml": SYSTEM.format(**values),
        "emulator.toml": EMULATOR.format(**values),
        "readout.toml": READOUT.format(**values),
    }


def _written(size: int) -> str:
    return f"{size // 10**9}GB" if size >= 10**9 and size % 10**9 == 0 else f"{max(1, size // 10**6)}MB"


def write(directory, name=None) -> list[str]:
    """Writes the files; existing files are not changed. Returns lines to print. Refused: control.init, control.argument."""
    directory = Path(directory).absolute()
    name = name or re.sub(r"[^a-z0-9_-]+", "-", directory.resolve().name.lower()).strip("-_")[:24] or "system"
    if not re.fullmatch(r"[A-Za-z0-9_-]{1,40}", name):
        raise Refused(
            "control.argument", f"`{name}` is not a valid system name: letters, digits, - and _, at most 40", ""
        )
    try:
        directory.mkdir(parents=True, exist_ok=True)
        files = texts(name, len(os.sched_getaffinity(0)), shutil.disk_usage(directory).total)
        for file in files:
            if (directory / file).exists():
                raise Refused(
                    "control.init",
                    f"{directory / file} exists already",
                    "use another directory: rodeo control init DIRECTORY",
                )
        for file, text in files.items():
            with open(directory / file, "x") as out:
                out.write(text)
    except OSError as error:
        raise Refused("control.init", f"cannot write {error.filename or directory}: {error.strerror}", "") from None
    shown = os.path.relpath(directory / "system.toml")
    return [
        f"wrote {', '.join(files)} to {directory}",
        f"next: rodeo control {shown if not shown.startswith('..') else directory / 'system.toml'}",
    ]
