"""The open run: the facts that its row lacks and, at its end, its reports and books."""

import asyncio
import json
import logging
import time
from dataclasses import dataclass, field

from rodeo.control.state import balance as run_books
from rodeo.control.state import status_schema
from rodeo.control.state.kinds import kind_of
from rodeo.control.state.snapshots import RunRow

LOG = logging.getLogger("rodeo.control")
LONGEST_REASON = 2000
LONGEST_REPORT = 64 * 2**20  # bytes; longer reports are refused


@dataclass
class OpenRun:
    """A run from its number to its closed row. The controller's loop uses it. The database also remembers the facts that the row lacks (as_json)."""

    number: int
    type: str = ""
    holder: str = ""
    comment: str = ""
    directory: str = ""
    asked_ns: int | None = None
    state: str = "STARTING"
    stopping: bool = False
    aborting: bool = False  # the run is being aborted; the next controller continues the abort
    first_event_ns: int | None = None
    stopped_ns: int | None = None
    flags: set = field(default_factory=set)
    reason: str = ""
    trouble: str = ""  # the first cause for which the run took no data or lost data, from the headline
    expected: list = field(default_factory=list)  # readouts and processes of the farm that take part
    lives: dict = field(default_factory=dict)  # {name: paths of the reports of its launches in this run}
    cards_before: dict = field(default_factory=dict)  # {emulator: its checked status before the first trigger}
    routers_before: dict = field(default_factory=dict)
    links_before: dict = field(default_factory=dict)  # {router: {link: chunks that it had read from the link}}
    blocks: list = field(
        default_factory=list
    )  # luminosity blocks so far, as blocks.Block.as_json(); a record has each of them, too

    def row(self):
        """Returns the run in the form for the deciding modules."""
        end_ns = self.stopped_ns or time.time_ns()
        since_ns = self.first_event_ns
        return RunRow(
            number=self.number,
            type=self.type,
            state=self.state,
            stopping=self.stopping,
            flags=tuple(sorted(self.flags)),
            asked_ns=self.asked_ns,
            first_event_ns=since_ns,
            stopped_ns=self.stopped_ns,
            seconds=max(0.0, (end_ns - since_ns) / 1e9) if since_ns else None,
            holder=self.holder,
            comment=self.comment,
            directory=self.directory,
            reason=self.reason,
        )

    def as_json(self):
        return {
            **{name: value for name, value in self.__dict__.items() if name != "blocks"},
            "flags": sorted(self.flags),
        }

    @classmethod
    def from_json(cls, value):
        """Returns the run that as_json wrote, perhaps in another version; None if `value` is anything else."""
        if not isinstance(value, dict) or not isinstance(value.get("number"), int):
            return None
        known = {name: each for name, each in value.items() if name in cls.__dataclass_fields__}
        for name in ("flags", "expected"):
            known[name] = [each for each in known.get(name) or [] if isinstance(each, str)]
        for name in ("lives", "cards_before", "routers_before", "links_before"):
            known[name] = known.get(name) if isinstance(known.get(name), dict) else {}
        known["blocks"] = [each for each in known.get("blocks") or [] if isinstance(each, dict)]
        return cls(**{**known, "flags": set(known["flags"])})


def read_report(path, shape="report"):
    """Returns (a report of this shape that status_schema.checked() has checked, or None; what the process left instead). Blocks."""
    try:
        with open(path, encoding="utf-8") as file:
            text = file.read(LONGEST_REPORT + 1)
    except FileNotFoundError:
        return None, "left no report"
    except (OSError, UnicodeDecodeError) as error:
        return None, f"left a report that cannot be read: {error}"
    if len(text) > LONGEST_REPORT:
        return None, f"left a report that is longer than {LONGEST_REPORT} bytes"
    try:
        report = json.loads(text)
    except (ValueError, RecursionError) as error:
        return None, f"left a report that is not JSON: {error}"
    left, problems = status_schema.checked(shape, report)
    for problem in problems:
        LOG.warning("%s: %s", path, problem)
    return (left, "") if left else (None, "left a report without valid contents")


async def collect_reports(folders, run, kinds=None):
    """Moves the reports of all launches into the run's folder. Returns {name of a launch: checked report or None} and {name: sentence} of missing reports.
    `kinds` {process: kind}; a process without a kind is a readout. Launches after the first are called NAME#2, NAME#3, ... A report that a former
    controller has moved already is found in the folder."""
    reports, missing = {}, {}
    for name, paths in run.lives.items():
        shape = kind_of((kinds or {}).get(name, "readout")).report
        for index, path in enumerate(paths):
            life = name if index == 0 else f"{name}#{index + 1}"
            moved = await asyncio.to_thread(folders.collect_report, run.number, life, path)
            report, why = await asyncio.to_thread(read_report, moved or folders.report_of(run.number, life), shape)
            reports[life] = report
            if report is None:
                missing[life] = f"{life} {why}"
    return reports, missing


def _is_virtual(fid):
    """True if a link is virtual (bit 35 of its FID), like the trigger's list, which has no fibre."""
    try:
        return bool(int(fid, 16) >> 35 & 1)
    except ValueError:
        return False


def unread_links(before, after):
    """Returns {router: (number of links from which it read nothing in the run, number of links)} of routers with such links. Arguments: {router: {link:
    chunks}}."""
    found = {}
    for name, links in after.items():
        known, links = before.get(name) or {}, {fid: count for fid, count in links.items() if not _is_virtual(fid)}
        few = sum(count == known.get(fid, 0) for fid, count in links.items())
        if few:
            found[name] = (few, len(links))
    return found


def settle(
    run,
    reports,
    cards_after,
    routers_after,
    *,
    links_after=None,
    per_event=None,
    kinds=None,
    missing=None,
    decided=None,
    aborted=False,
):
    """Returns the Books of a run; `kinds` and `missing` as in collect_reports(), `decided` as in event_files.decided_in(). A dead or lost process has no
    status at the end."""
    routers = {name: (before, routers_after.get(name)) for name, before in run.routers_before.items()}
    return run_books.balance(
        reports,
        run.cards_before,
        {name: cards_after.get(name) for name in run.cards_before},
        routers,
        per_event=per_event,
        kinds=kinds,
        missing=missing,
        decided=decided,
        unread=unread_links(run.links_before, links_after or {}),
        flags=tuple(sorted(run.flags)),
        aborted=aborted,
    )


def reason_of(run, books, left_open=()):
    """Returns the reason of a closed run, each sentence once: the first cause, then a command or an automatic step, then the findings of the books."""
    trouble = run.trouble if books.condition != "GOOD" else ""
    return "; ".join(dict.fromkeys(each for each in (trouble, run.reason, *books.reasons, *left_open) if each))[
        :LONGEST_REASON
    ]
