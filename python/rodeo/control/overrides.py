"""What the control room sets over the configuration of a process: its name, where its files go, and the `set` lines of its class. Pure."""

import json
import re

from rodeo.control.system import replaced

# The key that names a process of a kind, and the ending of its control socket in the runtime directory. A `program` has neither.
NAMED_BY = {"readout": "readout.name", "router": "router.name", "emulator": "emulator.name"}
SOCKET_OF = {"readout": ".control", "router": ".router", "emulator": ".emulator"}


def full_name(system, process):
    """The name that a process has for its host: the system's before its own, so that two systems of one user do not meet."""
    return f"{system}-{process}"


def socket_name(system, member):
    """File name of its control socket; empty for what has none."""
    return full_name(system, member.name) + SOCKET_OF[member.kind] if member.kind in SOCKET_OF else ""


def plain(value):
    """A value as `rodeo check --effective -o json` prints it: TOML's text of it, of which strings and numbers are JSON's too."""
    if not isinstance(value, str):
        return value
    try:
        return json.loads(value)
    except ValueError:
        return value


def file_writers(values):
    """Names of the consumers that write event files, from the effective values of a readout's configuration (key -> value)."""
    names = []
    for key, value in values.items():
        if (match := re.fullmatch(r"readout\.consumer\[(\d+)\]\.type", key)) and plain(value) == "file_writer":
            names.append(str(plain(values.get(f"readout.consumer[{match[1]}].name", match[1]))))
    return names


def directories_of_files(writers, run_directory):
    """Directory of each file writer in the folder that a process has in a run: the folder itself, or one for each of several writers."""
    if len(writers) == 1:
        return {writers[0]: str(run_directory)}
    return {name: f"{run_directory}/{name}" for name in writers}


def settings_of(member, system, run_directory, values, lines):
    """KEY=VALUE in the order in which they are given to the process: later ones win, and what the control room needs comes last.
    `values` are the effective ones before any of these; `lines` are the class's `set`, and after them those of a command."""
    settings = [replaced(line, member, system, run_directory) for line in lines]
    if member.kind in NAMED_BY:
        settings.append(f"{NAMED_BY[member.kind]}={full_name(system, member.name)}")
    if member.kind == "readout":
        for writer, directory in directories_of_files(file_writers(values), run_directory).items():
            settings.append(f"readout.consumer[{writer}].directory={directory}")
    return settings


def split_lines(lines, names):
    """What a command sets: `KEY=VALUE` is for all processes (key None), `NAME:KEY=VALUE` for those of a class or for one process (`names` has both)."""
    by = {}
    for line in lines:
        before, colon, after = line.partition(":")
        name = before if colon and before in names else None
        by.setdefault(name, []).append(after if name else line)
    return by
