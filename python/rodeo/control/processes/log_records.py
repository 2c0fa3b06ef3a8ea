"""Log lines as records: JSON lines of a process (docs/reference/protocols/logs.md) and its other output; searched, sorted by time, repeats folded. Reads files only."""

import bisect
import json
import os
import re
from collections import deque
from dataclasses import dataclass, fields, replace
from pathlib import Path

LEVELS = ("debug", "info", "warning", "error")
AUDIENCES = ("operator", "expert", "developer")  # each audience also sees the lines of the audiences before it
LONGEST_SEARCH = 32 * 1024 * 1024  # limit of the searched bytes of a process, from the newest on
LONGEST_MESSAGE = 4096  # characters
MOST_RECORDS = 10_000
BLOCK = 256 * 1024
LONGEST_PLAIN = 2 * 1024 * 1024  # limit of the searched bytes of lines that are not JSON
LONGEST_LINE = 64 * 1024
FOLDED_OF = 10  # folding reads this multiple of the wanted lines
DISORDER_NS = 60 * 10**9  # threads and clock adjustments may put lines of a file out of order by this time
# Human-readable lines that the other file has as JSON: they are skipped, else they would appear twice.
SAID_IN_JSON = re.compile(
    r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d[.,]\d+ (trace|debug|info|warning|error|critical|[DIWEC]) |\d\d:\d\d:\d\d [DIWEC] |error\[[a-z_.]+\]: |  rodeo explain \S+ says more$"
)
BAD = re.compile(r"\b(error|critical|fatal|failed|SIG[A-Z]{3,}|Traceback)\b", re.IGNORECASE)
WARN = re.compile(r"\b(warn|warning)\b", re.IGNORECASE)
PROGRESS = re.compile(r"\d+:\d\d:\d\d  ")  # progress lines of a run without a terminal
NUMBERS = re.compile(r"\d+(\.\d+)?")


@dataclass(frozen=True)
class Wanted:
    """The wanted records. `level`: the lowest level; `audience`: the last of the wanted audiences; `since_ns`, `until_ns`: UTC, None: no limit.
    `run`: lines with this run number, and lines without a number from `since_ns` to `until_ns`. `after_ns`: no line before this time. `fold`: repeats of
    a process are folded before `lines` are counted, so that a process that repeats itself does not hide others."""

    search: str = ""
    level: str = "debug"
    audience: str = "developer"
    run: int | None = None
    since_ns: int | None = None
    until_ns: int | None = None
    after_ns: int | None = None
    lines: int = 100
    fold: bool = False

    def as_json(self):
        return {one.name: getattr(self, one.name) for one in fields(self)}

    @staticmethod
    def from_json(value):
        """The Wanted that as_json wrote; invalid members get their defaults."""
        value = value if isinstance(value, dict) else {}
        numbers = {
            name: value[name] for name in ("run", "since_ns", "until_ns", "after_ns") if type(value.get(name)) is int
        }
        lines = value.get("lines")
        return Wanted(
            search=str(value.get("search") or "")[:200],
            level=value.get("level") if value.get("level") in LEVELS else "debug",
            audience=value.get("audience") if value.get("audience") in AUDIENCES else "developer",
            lines=max(1, min(lines, MOST_RECORDS)) if type(lines) is int else 100,
            fold=value.get("fold") is True,
            **numbers,
        )

    def matches(self, record):
        """Whether a record is wanted."""
        if LEVELS.index(record["level"]) < LEVELS.index(self.level) or AUDIENCES.index(
            record["audience"]
        ) > AUDIENCES.index(self.audience):
            return False
        if (
            self.search
            and self.search.lower() not in f"{record['message']} {' '.join(record['fields'].values())}".lower()
        ):
            return False
        time_ns = record["time_ns"]
        if self.after_ns is not None and (time_ns is None or time_ns < self.after_ns):
            return False
        if self.run is not None and record["run"] is not None:
            return record["run"] == self.run
        if self.since_ns is not None and (time_ns is None or time_ns < self.since_ns):
            return False
        if self.until_ns is not None and (time_ns is None or time_ns > self.until_ns):
            return False
        return self.run is None or self.since_ns is not None


def record_of(line, process):
    """The record of a JSON line, None if it is not one. The record always has all members, of the right types."""
    try:
        said = json.loads(line)
        message = said["message"]
    except (ValueError, LookupError, TypeError, RecursionError):
        return None
    if not isinstance(message, str):
        return None
    found = said.get("fields") if isinstance(said.get("fields"), dict) else {}
    return {
        "time_ns": said["time_ns"] if type(said.get("time_ns")) is int and 0 <= said["time_ns"] < 2**63 else None,
        "level": said.get("level") if said.get("level") in LEVELS else "info",
        "audience": said.get("audience") if said.get("audience") in AUDIENCES else "expert",
        "run": said["run"] if type(said.get("run")) is int and 0 < said["run"] < 2**31 else None,
        "process": process,
        "message": message[:LONGEST_MESSAGE],
        "fields": {str(name)[:100]: str(value)[:LONGEST_MESSAGE] for name, value in list(found.items())[:32]},
        "repeats": said["repeats"] if type(said.get("repeats")) is int and said["repeats"] > 0 else 0,
    }


def plain(text, process, time_ns):
    """The record of a line that is not JSON: output of a program, or the last message of a crashed process."""
    if PROGRESS.match(text):
        level, audience = "debug", "developer"
    else:
        level = "error" if BAD.search(text[:200]) else "warning" if WARN.search(text[:200]) else "info"
        audience = "operator" if level == "error" else "expert"
    return {
        "time_ns": time_ns,
        "level": level,
        "audience": audience,
        "run": None,
        "process": process,
        "message": text[:LONGEST_MESSAGE],
        "fields": {},
        "repeats": 0,
    }


class Marks:
    """The length of a file over time, noted periodically: it dates lines without a time, to the second. Lines before the first kept note are older,
    by an unknown time. Used by one loop."""

    def __init__(self, most=3600):
        self._sizes, self._times = deque(maxlen=most), deque(maxlen=most)

    def note(self, size, now_ns):
        """Notes the length. A file that became shorter was begun anew since the last note."""
        if self._sizes and size < self._sizes[-1]:
            self._sizes.clear()
            self._times.clear()
            self._sizes.append(0)
            self._times.append(now_ns)
        if not self._sizes or size > self._sizes[-1]:
            self._sizes.append(size)
            self._times.append(now_ns)

    def known(self):
        return list(self._sizes), list(self._times)


def time_of(marks, end):
    """The time of the line that ends at this offset, None if unknown or before the first note. `marks`: Marks.known()."""
    sizes, times = marks
    place = bisect.bisect_left(sizes, end)
    return times[min(place, len(times) - 1)] if place > 0 else None


def lines_backwards(path, most, end=None):
    """Yields (line, offset of its end) of a file, backwards from `end` (default: its end), at most `most` bytes. Nothing without a file."""
    try:
        with open(path, "rb") as file:
            end = min(file.seek(0, os.SEEK_END), 2**63 if end is None else end)
            stop, rest = max(0, end - most), b""
            while end > stop:
                size = min(BLOCK, end - stop)
                file.seek(end - size)
                block = file.read(size) + rest
                pieces = block.split(b"\n")
                rest = pieces.pop(0)
                place = end - size + len(block)
                for piece in reversed(pieces):
                    if piece:
                        yield piece, place
                    place -= len(piece) + 1
                end -= size
            if rest and stop == 0:
                yield rest, len(rest)
    except OSError:
        return


def end_of(path, until_ns):
    """An offset after which all JSON lines are certainly later than `until_ns`. Blocks for a few reads."""
    try:
        with open(path, "rb") as file:
            first, end = 0, file.seek(0, os.SEEK_END)
            while end - first > BLOCK:
                middle = (first + end) // 2
                file.seek(middle)
                file.readline(LONGEST_LINE)
                record = record_of(file.readline(LONGEST_LINE), "")
                if record is None or record["time_ns"] is None:
                    break
                if record["time_ns"] > until_ns + DISORDER_NS:
                    end = middle
                else:
                    first = middle
            return end
    except OSError:
        return 0


def not_looked_at(process, time_ns, what="older lines were not searched: the search has reached its limit"):
    """A record in place of older lines of a process that were not searched or not returned."""
    return {
        "time_ns": time_ns,
        "level": "warning",
        "audience": "operator",
        "run": None,
        "process": process,
        "message": what,
        "fields": {"next": "search in one process, or for one run"},
        "repeats": 0,
    }


def newest(logs, wanted, budget):
    """The newest `wanted.lines` records of several processes together, oldest first. `logs`: {name: (path, Marks.known())}. Blocks; reads at most `budget`
    bytes, shared among the processes; not_looked_at() replaces the lines beyond."""
    share = max(1024 * 1024, budget // max(1, len(logs)))
    each_wanted = replace(wanted, lines=min(FOLDED_OF * wanted.lines, MOST_RECORDS)) if wanted.fold else wanted
    together = []
    for name, (log, marks) in logs.items():
        found = found_in(log, name, each_wanted, marks, share)
        together += folded(found) if wanted.fold else found
    return in_order(together)[-wanted.lines :]


def found_in(log, process, wanted, marks=((), ()), budget=LONGEST_SEARCH):
    """The newest `wanted.lines` wanted records of a process, oldest first: from NAME.jsonl and NAME.jsonl.1 beside `log`, and from `log` the lines that are
    not in these. Blocks while it reads, at most `budget` bytes; not_looked_at() replaces the lines beyond."""
    log = Path(log)
    structured = log.with_suffix(".jsonl")
    records, bounds = list(_of_json(structured, process, wanted, budget)), []
    both, first_ns, most = structured.exists(), _first_ns(wanted), min(budget, LONGEST_PLAIN)
    for line, end in lines_backwards(log, most):
        time_ns = time_of(marks, end)
        if first_ns and (time_ns is None or time_ns < first_ns):
            break  # all further lines are older than the wanted ones
        bounds = [not_looked_at(process, time_ns)]
        text = line.decode(errors="replace").rstrip()
        if (
            not text
            or (both and SAID_IN_JSON.match(text))
            or (wanted.search and wanted.search.lower() not in text.lower())
        ):
            continue
        record = plain(text, process, time_ns)
        if wanted.matches(record):
            records.append(record)
            if len(records) >= 2 * wanted.lines:
                break
    else:
        records += bounds if _size(log) > most else []
    return in_order(reversed(records))[-wanted.lines :]


def _first_ns(wanted):
    return max(wanted.since_ns or 0, wanted.after_ns or 0)


def _size(path):
    try:
        return os.stat(path).st_size
    except OSError:
        return 0


def _of_json(file, process, wanted, budget):
    left, search, last = wanted.lines, wanted.search.lower().encode(), b""
    first_ns = _first_ns(wanted)
    search = (
        search if search.isascii() and b'"' not in search and b"\\" not in search else b""
    )  # JSON may escape any other text
    for each in (file, Path(f"{file}.1")):
        end = _size(each) if wanted.until_ns is None else end_of(each, wanted.until_ns)
        bounded = end > budget
        for line, _ in lines_backwards(each, budget, end):
            budget -= len(line) + 1
            last = line
            if search and search not in line.lower():
                continue
            record = record_of(line, process)
            if record is None:
                continue
            if first_ns and record["time_ns"] is not None and record["time_ns"] < first_ns - DISORDER_NS:
                return
            if wanted.matches(record):
                yield record
                left -= 1
                if left == 0:
                    return
        if bounded:
            yield not_looked_at(process, (record_of(last, process) or {}).get("time_ns"))
            return


def in_order(records):
    """Sorted by time; a record without a time stays after the record before it."""
    keyed, time_ns = [], 0
    for place, record in enumerate(records):
        time_ns = record["time_ns"] if record["time_ns"] is not None else time_ns
        keyed.append((time_ns, place, record))
    keyed.sort(key=lambda one: one[:2])
    return [record for _, _, record in keyed]


def folded(records):
    """The records with repeats of a process folded into the last of them: messages that differ only in numbers are equal. `repeats` counts the
    records not shown, `first_ns` is the time of the first."""
    shown, last = [], {}
    for record in records:
        shape = (record["level"], NUMBERS.sub("0", record["message"]))
        before = last.get(record["process"])
        if before is not None and before[0] == shape:
            index = before[1]
            first = shown[index]
            shown[index] = None
            record = {
                **record,
                "repeats": first["repeats"] + 1 + record["repeats"],
                "first_ns": first.get("first_ns", first["time_ns"]),
            }
        last[record["process"]] = (shape, len(shown))
        shown.append(record)
    return [record for record in shown if record is not None]
