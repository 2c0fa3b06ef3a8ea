"""The run that is open: what is known of it beyond its row, and at its end its reports and books."""

import asyncio
import json
import logging
import time
from dataclasses import dataclass, field

from rodeo.control import books as run_books
from rodeo.control import sound
from rodeo.control.kinds import kind_of
from rodeo.control.looks import RunRow

LOG = logging.getLogger("rodeo.control")
LONGEST_REPORT = 64 * 2**20  # bytes of a report that are read


@dataclass
class OpenRun:
    """A run from its number to its closed row. Of the controller's loop; what the database does not have of it is remembered there (as_json)."""

    number: int
    type: str = ""
    holder: str = ""
    comment: str = ""
    directory: str = ""
    asked_ns: int | None = None
    state: str = "STARTING"
    stopping: bool = False
    aborting: bool = False  # it is ended by force: whoever goes on with that does the same
    first_event_ns: int | None = None
    stopped_ns: int | None = None
    flags: set = field(default_factory=set)
    reason: str = ""
    trouble: str = ""  # the first cause for which the run took no data or lost them, as the headline had it
    expected: list = field(default_factory=list)  # readouts, and processes of the farm, that take part
    lives: dict = field(default_factory=dict)  # of these -> reports of its lives in this run, the paths where it leaves them
    cards_before: dict = field(default_factory=dict)  # emulator -> its checked status before the first trigger
    routers_before: dict = field(default_factory=dict)
    links_before: dict = field(default_factory=dict)  # router -> its links -> chunks that it had read of each
    blocks: list = field(default_factory=list)  # luminosity blocks so far, as blocks.Block.as_json(); each has a record of its own

    def row(self):
        """What the deciding modules are given."""
        end_ns = self.stopped_ns or time.time_ns()
        since_ns = self.first_event_ns
        return RunRow(
            number=self.number, type=self.type, state=self.state, stopping=self.stopping, flags=tuple(sorted(self.flags)), asked_ns=self.asked_ns,
            first_event_ns=since_ns, stopped_ns=self.stopped_ns, seconds=max(0.0, (end_ns - since_ns) / 1e9) if since_ns else None,
            holder=self.holder, comment=self.comment, directory=self.directory, reason=self.reason)

    def as_json(self):
        return {**{name: value for name, value in self.__dict__.items() if name != "blocks"}, "flags": sorted(self.flags)}

    @classmethod
    def from_json(cls, value):
        """None of what it is not. Made by as_json, perhaps of another version."""
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
    """(a report of this shape as sound.checked() left it or None, why not). Blocks."""
    try:
        with open(path, encoding="utf-8") as file:
            text = file.read(LONGEST_REPORT + 1)
    except FileNotFoundError:
        return None, "it left no report"
    except (OSError, UnicodeDecodeError) as error:
        return None, f"its report cannot be read: {error}"
    if len(text) > LONGEST_REPORT:
        return None, f"its report is longer than {LONGEST_REPORT} bytes"
    try:
        report = json.loads(text)
    except (ValueError, RecursionError) as error:
        return None, f"its report is no JSON: {error}"
    left, problems = sound.checked(shape, report)
    for problem in problems:
        LOG.warning("%s: %s", path, problem)
    return (left, "") if left else (None, "its report says nothing")


async def collect_reports(folders, run, kinds=None):
    """Moves the reports of all lives into the run's folder. Returns {name of a life: checked report or None} and [what is missing, a sentence each].
    `kinds` {process: kind}; who is not in it is a readout. A life after the first is called NAME#2, NAME#3, ... A report that was moved before, by a
    controller that died, is found where it is."""
    reports, missing = {}, []
    for name, paths in run.lives.items():
        shape = kind_of((kinds or {}).get(name, "readout")).report
        for index, path in enumerate(paths):
            life = name if index == 0 else f"{name}#{index + 1}"
            moved = await asyncio.to_thread(folders.collect_report, run.number, life, path)
            report, why = await asyncio.to_thread(read_report, moved or folders.report_of(run.number, life), shape)
            reports[life] = report
            if report is None:
                missing.append(f"{life}: {why}")
    return reports, missing


def _is_virtual(fid):
    """The trigger's list, which has no fibre: the bit 35 of its FID."""
    try:
        return bool(int(fid, 16) >> 35 & 1)
    except ValueError:
        return False


def unread_links(before, after):
    """{router: (links of which it read nothing in the run, links)} of those that have such links. Both: {router: {link: chunks}}."""
    found = {}
    for name, links in after.items():
        known, links = before.get(name) or {}, {fid: count for fid, count in links.items() if not _is_virtual(fid)}
        few = sum(count == known.get(fid, 0) for fid, count in links.items())
        if few:
            found[name] = (few, len(links))
    return found


def settle(run, reports, cards_after, routers_after, *, links_after=None, robs=None, kinds=None, aborted=False):
    """The Books of a run; `kinds` as of collect_reports(). A process that died or is lost has no status at the end."""
    routers = {name: (before, routers_after.get(name)) for name, before in run.routers_before.items()}
    return run_books.balance(
        reports, run.cards_before, {name: cards_after.get(name) for name in run.cards_before}, routers, robs=robs, kinds=kinds,
        unread=unread_links(run.links_before, links_after or {}), flags=tuple(sorted(run.flags)), aborted=aborted)
