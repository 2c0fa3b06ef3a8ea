"""Event files of a run at its end: list of the folder, recovery of files that killed processes left open, numbers of events, verification, checksums."""

import asyncio
import json
import logging
import os
import struct
from collections import Counter
from pathlib import Path

from rodeo.control.refused import Refused
from rodeo.control.state.numbers import DECIDED, value

LOG = logging.getLogger("rodeo.control")
CLOSED, OPEN = ".data", ".writing"
RECOVERED = ".recovered._"  # part of the name of a file with the complete events of a file that was left open
RECOVERY_S = 3600.0  # limit for one file
DECISIONS = "decisions"  # a file with 9 bytes per decision, id and verdict (docs/reference/formats/assignments.md)
LONGEST_DECISIONS = 64 * 2**20  # bytes
_DECISION = 9
_END = struct.Struct("<10I")  # the last record of a closed file: docs/reference/formats/eventstorage-file.md
_END_FIRST, _END_LAST, _EVENTS = 0x1234DDDD, 0x1234EEEE, 4


def files_of(folder):
    """Lists event files in the folder of a run and those of its processes: [{path, bytes, events, state}], by name. Blocks; raises OSError.
    `state` is closed, recovered (made from a file that was left open) or part (still open)."""
    found = []
    for path in sorted(Path(folder).rglob("*")):
        if path.suffix in (CLOSED, OPEN) and path.is_file():
            state = "part" if path.suffix == OPEN else "recovered" if RECOVERED in path.name else "closed"
            found.append(
                {
                    "path": str(path),
                    "bytes": path.stat().st_size,
                    "events": None if state == "part" else events_in(path),
                    "state": state,
                }
            )
    return found


def events_in(path):
    """Returns the number of events in a closed file, from its end record; None without this record."""
    try:
        with open(path, "rb") as file:
            file.seek(-_END.size, os.SEEK_END)
            words = _END.unpack(file.read(_END.size))
    except (OSError, struct.error):
        return None
    return words[_EVENTS] if (words[0], words[1], words[-1]) == (_END_FIRST, len(words), _END_LAST) else None


async def recover_open(rodeo, folder, living=(), told=lambda path: None):
    """Recovers each file that a process of this run left open, as a restarted recorder does: saves its complete events to a closed file beside it, then
    removes it. `living` names folders whose process may still write. Returns {open file: a sentence}. A file that stays could not be recovered, or is
    damaged inside."""
    said = {}
    for path in await asyncio.to_thread(_left_open, folder, living):
        told(path)
        name = name_of(path)
        try:
            said[path] = f"{name} was left open: {await _recovered(rodeo, path)}"
        except (OSError, asyncio.TimeoutError) as error:
            why = str(error) or f"not done within {RECOVERY_S:.0f} s"
            LOG.error(
                "%s was left open, and its events are not in a closed file: %s",
                path,
                why,
                extra={"audience": "operator"},
            )
            said[path] = f"{name} was left open, and could not be recovered: {why}"
    return said


def still_open(said):
    """Returns the part of {path: sentence} whose files still exist, or may exist. Blocks."""
    return {path: sentence for path, sentence in said.items() if _may_exist(path)}


def decided_in(folder, reports, kinds):
    """Returns {fate: events} from the files of decisions of a run's supervisor, each event by its first decision. None if its report has all decisions, or
    if the files are missing, damaged or longer than LONGEST_DECISIONS. Blocks."""
    lives = [life for life in reports if kinds.get(life.split("#")[0]) == "supervisor"]
    paths = [path for life in lives if (path := Path(folder) / life.replace("#", ".") / DECISIONS).is_file()]
    if not paths or len(lives) == 1 and reports[lives[0]]:
        return None
    first = {}
    for path in paths:
        if path.stat().st_size > LONGEST_DECISIONS:
            return None
        data = path.read_bytes()
        for at in range(0, len(data) - _DECISION + 1, _DECISION):
            first.setdefault(data[at : at + _DECISION - 1], data[at + _DECISION - 1])
    counts = Counter(first.values())
    if max(counts, default=0) >= len(DECIDED):
        LOG.warning("%s has an unknown verdict", paths[0])
        return None
    return {fate: counts[verdict] for verdict, fate in enumerate(DECIDED)}


def name_of(path):
    """Returns the name of a file, with its folder."""
    return f"{path.parent.name}/{path.name}"


def open_in(folder):
    """Returns paths of files that processes left open in the folder of a run. Blocks."""
    return [path for path in sorted(Path(folder).rglob("*" + OPEN)) if RECOVERED not in path.name]


def _may_exist(path):
    try:
        path.lstat()
    except FileNotFoundError:
        return False
    except OSError:
        return True
    return True


def _left_open(folder, living):
    """Returns paths of open files of ended processes. Removes files of an interrupted recovery, which begins again."""
    folder, found = Path(folder), []
    for path in sorted(folder.rglob("*" + OPEN)):
        if path.relative_to(folder).parts[0] in living:
            continue
        if RECOVERED in path.name:
            path.unlink()
        else:
            found.append(path)
    return found


async def _recovered(rodeo, path):
    """Recovers one file. Returns the result as text for people. OSError: the file is unchanged."""
    saved = path.with_name(f"{path.stem}{RECOVERED}0001{CLOSED}")
    if not saved.exists():
        row = await _recover(rodeo, path)
        if not row.get("saved_to"):  # the file is complete; only its rename is missing
            closed = path.with_suffix(CLOSED)
            os.link(path, closed)
            path.unlink()
            return f"it is complete, and is now {closed.name}"
        if row.get("events_marked") or (row.get("damaged_places") or 0) > 1:  # a cut end explains less damage
            return f"{row['events_saved']} events are in {saved.name}, {row['events_marked']} of them doubtful; it is damaged in {row['damaged_places']} places, and is kept"
    path.unlink()
    return f"its {events_in(saved)} events are in {saved.name}"


async def _recover(rodeo, path):
    """Returns the row of `rodeo data recover` for this file. OSError if the recovery failed."""
    process = await asyncio.create_subprocess_exec(
        rodeo,
        "data",
        "recover",
        str(path),
        "-o",
        "json",
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        out, err = await asyncio.wait_for(process.communicate(), RECOVERY_S)
    except (asyncio.TimeoutError, asyncio.CancelledError):
        process.kill()
        await process.wait()
        raise
    try:
        (row,) = json.loads(out)
        return row
    except (ValueError, TypeError):
        words = [line for line in err.decode(errors="replace").splitlines() if line.startswith("error")]
        raise OSError(words[0] if words else f"`rodeo data recover` ended with status {process.returncode}") from None


def proven(reports, kinds):
    """Returns {launch of a readout or recorder: True if the run has verified all bytes that it wrote}. In a readout, a processor has verified all
    chunks that it built; for a recorder, processors in all readouts have done so."""
    readouts = {
        life: report for life, report in reports.items() if kinds.get(life.split("#")[0], "readout") == "readout"
    }
    by_readout = {life: _all_verified(report) for life, report in readouts.items()}
    every = bool(by_readout) and all(by_readout.values())
    return {
        life: by_readout.get(life, every)
        for life in reports
        if kinds.get(life.split("#")[0], "readout") in ("readout", "recorder")
    }


def _all_verified(report):
    built, consumers = value(report, "chunks", "built"), ((report or {}).get("consumers") or {}).values()
    most = max((value(one, "counters", "verified_chunks") or 0 for one in consumers), default=0)
    return bool(built) and value(report, "verified", "mismatches") == 0 and most >= built


def mark_verified(files, folder, reports, kinds):
    """Sets `verified` of each file that a process with verified bytes closed. The folder of a process is NAME, that of a readout's second launch NAME.2."""
    yes = proven(reports, kinds)
    for each in files:
        parts = Path(each["path"]).relative_to(folder).parts
        name, _, number = parts[0].rpartition(".")
        life = f"{name}#{number}" if name in kinds and parts[0] not in kinds else parts[0]
        each["verified"] = each["state"] == "closed" and yes.get(life, False)


async def hashed(host, files):
    """Returns the files with `sha256`: None for unreadable files, whose `state` does not change. Makes one request per file, so that finished sums stay,
    and the time-out applies to one file."""
    sums = {}
    for path in (each["path"] for each in files if each["state"] != "part"):
        try:
            sums.update(await host.sha256([path]))
        except Refused as refused:
            LOG.warning("checksum of %s: %s", path, refused.what)
            if refused.code == "control.host_silent":
                break
    return [{**each, "sha256": sums.get(each["path"])} for each in files]
