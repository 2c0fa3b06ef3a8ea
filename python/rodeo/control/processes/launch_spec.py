"""The launch of a process of the system: its command, environment, control socket and exact configuration."""

import asyncio
import os
from dataclasses import dataclass
from pathlib import Path

from rodeo.control.processes import overrides
from rodeo.control.refused import Refused
from rodeo.control.state.kinds import kind_of
from rodeo.control.state.system import check, replaced

# The only variables of the control room's environment that a process gets: so equal runs begin with equal environments.
PASSED_ON = (
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "LANG",
    "LC_ALL",
    "TZ",
    "TMPDIR",
    "LD_LIBRARY_PATH",
    "XDG_RUNTIME_DIR",
    "XDG_CACHE_HOME",
)


@dataclass(frozen=True)
class Configured:
    """The configuration of one process: the file's text, all effective values (key -> TOML text) with their origins, the settings that override the file."""

    file: str
    text: str
    values: dict
    origins: dict
    settings: tuple
    sha256: str | None = None

    def as_json(self):
        return {
            "file": self.file,
            "text": self.text,
            "values": self.values,
            "origins": self.origins,
            "settings": list(self.settings),
            "sha256": self.sha256,
        }


def environment(runtime_directory):
    """The environment of a process of the system on this host."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if name in PASSED_ON or name.startswith("RODEO_") or name.endswith("SAN_OPTIONS")
    }
    return {**kept, "RODEO_RUNTIME_DIR": str(runtime_directory), "NO_COLOR": "1"}


def command_line(member, rodeo, system, *, settings, report, run_directory):
    """argv of a process, with the path for its report, and --hold if its kind can wait for orders."""
    if member.kind == "program":
        return [replaced(part, member, system, run_directory) for part in member.process_class.command]
    argv = [str(rodeo), *kind_of(member.kind).verb, str(member.process_class.configuration)]
    for setting in settings:
        argv += ["--set", setting]
    argv += ["--json", str(report)]
    if kind_of(member.kind).held:
        argv.append("--hold")
    return argv


async def configured(rodeo, file, settings):
    """The Configured of a file with these settings, from `rodeo check`. Refused(control.configuration) with all its errors."""
    try:
        text = (await asyncio.to_thread(Path(file).read_bytes)).decode()  # read_bytes() keeps the line ends
    except (OSError, UnicodeDecodeError) as error:
        raise Refused("control.configuration", f"cannot read {file}: {error}", "") from None
    found = await asyncio.to_thread(check, rodeo, file, effective=True, overrides=settings)
    if errors := [each for each in found["errors"] if isinstance(each, dict)]:
        what = "; ".join(": ".join(part for part in (each.get("where"), each.get("what")) if part) for each in errors)
        raise Refused("control.configuration", what[:2000], errors[0].get("next") or "")
    return Configured(
        str(file),
        text,
        {each["key"]: each["value"] for each in found["values"]},
        {each["key"]: each.get("origin") for each in found["values"]},
        tuple(settings),
        found.get("configuration_sha256"),
    )


def writers_of(member, before):
    """Names of the file writers in a process; each of several gets a directory."""
    if member.kind == "recorder":
        return ["recorder"]
    return overrides.file_writers(before.values) if member.kind == "readout" else []
