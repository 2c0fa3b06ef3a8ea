"""The settings with which the control room overrides the configuration of a process: its name, its directories, and the `set` lines of its class. Pure."""

import json
import re
from dataclasses import dataclass

from rodeo.control.state.kinds import FARM, kind_of
from rodeo.control.state.system import replaced


@dataclass(frozen=True)
class FarmNames:
    """The names by which the processes of the farm find each other on the bus, and the number of nodes."""

    supervisor: str = ""
    readouts: tuple = ()
    recorders: tuple = ()
    nodes: int = 0


def full_name(system, process):
    """The name of a process on its host: with the system's name, so that two systems of one user do not clash."""
    return f"{system}-{process}"


def socket_name(system, member):
    """The file name of a process's control socket; empty if it has none."""
    socket = kind_of(member.kind).socket
    return full_name(system, member.name) + socket if socket else ""


def plain(value):
    """A value printed by `rodeo check --effective -o json`: TOML text, in which strings and numbers are also JSON."""
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
    return [
        str(plain(values.get(f"readout.consumer[{match[1]}].name", match[1])))
        for key, value in values.items()
        if (match := re.fullmatch(r"readout\.consumer\[(\d+)\]\.type", key)) and plain(value) == "hlt_request_handler"
    ]


def farm_names(members, system, values):
    """The FarmNames of a system; `values` {class: effective values of its configuration}."""

    def of(kind):
        return [member for member in members if member.kind == kind]

    return FarmNames(
        supervisor=next((full_name(system, one.name) for one in of("supervisor")), ""),
        readouts=tuple(
            f"{full_name(system, one.name)}.{server}"
            for one in of("readout")
            for server in fragment_servers(values.get(one.process_class.name, {}))
        ),
        recorders=tuple(full_name(system, one.name) for one in of("recorder")),
        nodes=len(of("node")),
    )


def _of_the_farm(member, run_directory, values, farm):
    """The settings with the names of other farm processes. If the system has no process of a kind, the configuration's names stay: it may run elsewhere."""
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
    """The directory of each file writer of a process in a run: the process's folder, or a folder in it for each of several writers."""
    if len(writers) == 1:
        return {writers[0]: str(run_directory)}
    return {name: f"{run_directory}/{name}" for name in writers}


def settings_of(member, system, run_directory, values, lines, farm=FarmNames(), lumi_block_s=0.0):
    """KEY=VALUE in the order in which the process gets them: later ones win, and those of the control room come last.
    `values`: the effective values without these settings; `lines`: the class's `set`, then those of a command; `farm`: farm_names();
    `lumi_block_s`: the length of a luminosity block, 0 if the system sets none."""
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
    """Splits the `set` lines of a command: `KEY=VALUE` is for all processes (key None), `NAME:KEY=VALUE` for a class or a process (`names` has both)."""
    by = {}
    for line in lines:
        before, colon, after = line.partition(":")
        name = before if colon and before in names else None
        by.setdefault(name, []).append(after if name else line)
    return by
