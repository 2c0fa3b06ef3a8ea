"""What the control room sets over the configuration of a process: its name, where its files go, and the `set` lines of its class. Pure."""

import json
import re
from dataclasses import dataclass

from rodeo.control.kinds import FARM, kind_of
from rodeo.control.system import replaced


@dataclass(frozen=True)
class FarmNames:
    """Who the processes of the system's farm are for each other: names of services on the bus, and how many nodes."""

    supervisor: str = ""
    readouts: tuple = ()
    recorders: tuple = ()
    nodes: int = 0


def full_name(system, process):
    """The name that a process has for its host: the system's before its own, so that two systems of one user do not meet."""
    return f"{system}-{process}"


def socket_name(system, member):
    """File name of its control socket; empty for what has none."""
    socket = kind_of(member.kind).socket
    return full_name(system, member.name) + socket if socket else ""


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


def fragment_servers(values):
    """Names of the consumers of a readout that keep fragments for a farm."""
    return [str(plain(values.get(f"readout.consumer[{match[1]}].name", match[1])))
            for key, value in values.items()
            if (match := re.fullmatch(r"readout\.consumer\[(\d+)\]\.type", key)) and plain(value) == "hlt_request_handler"]


def farm_names(members, system, values):
    """The FarmNames of a system; `values` {class: effective values of its configuration}."""
    def of(kind):
        return [member for member in members if member.kind == kind]

    return FarmNames(
        supervisor=next((full_name(system, one.name) for one in of("supervisor")), ""),
        readouts=tuple(
            f"{full_name(system, one.name)}.{server}" for one in of("readout") for server in fragment_servers(values.get(one.process_class.name, {}))
        ),
        recorders=tuple(full_name(system, one.name) for one in of("recorder")),
        nodes=len(of("node")))


def _of_the_farm(member, run_directory, values, farm):
    """What the processes of a farm are told of each other. Where the system has none of a kind the configuration's own names stay: they may be elsewhere."""
    if member.kind == "recorder":
        yield f"farm.recorder.directory={run_directory}"
    elif member.kind == "node" and farm.supervisor:
        yield f"farm.node.supervisor={farm.supervisor}"
    elif member.kind == "supervisor":
        if farm.readouts:
            yield f"farm.supervisor.readouts={','.join(farm.readouts)}"
        if farm.recorders:
            yield f"farm.supervisor.recorders={','.join(farm.recorders)}"
        if farm.nodes:
            yield f"farm.supervisor.nodes={farm.nodes}"
        if plain(values.get("farm.supervisor.decisions")):
            yield f"farm.supervisor.decisions={run_directory}/decisions"


def directories_of_files(writers, run_directory):
    """Directory of each file writer in the folder that a process has in a run: the folder itself, or one for each of several writers."""
    if len(writers) == 1:
        return {writers[0]: str(run_directory)}
    return {name: f"{run_directory}/{name}" for name in writers}


def settings_of(member, system, run_directory, values, lines, farm=FarmNames(), lumi_block_s=0.0):
    """KEY=VALUE in the order in which they are given to the process: later ones win, and what the control room needs comes last.
    `values` are the effective ones before any of these; `lines` are the class's `set`, and after them those of a command; `farm`: farm_names();
    `lumi_block_s`: length of a luminosity block, where the system says one."""
    settings = [replaced(line, member, system, run_directory) for line in lines]
    if named_by := kind_of(member.kind).named_by:
        settings.append(f"{named_by}={full_name(system, member.name)}")
    if member.kind == "emulator" and lumi_block_s > 0 and not plain(values.get("emulator.follow")):
        settings.append(f"emulator.trigger.lumi_block_period={lumi_block_s:.9g}s")
    if member.kind in FARM:
        settings += _of_the_farm(member, run_directory, values, farm)
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
