"""`rodeo demo` through the control room: it prints the page's address, launches, starts a run, shows it live on the terminal, stops after the given time,
closes, reads the files back and prints the report.

    python -m rodeo.control.cli.demo SYSTEM --seconds S [--json FILE] [--no-page]
"""

import argparse
import asyncio
import contextlib
import json
import logging
import os
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from rodeo.control import paths
from rodeo.control.cli import demo_report, status_text
from rodeo.control.cli.verbs import exit_status
from rodeo.control.http.command_gate import Actor
from rodeo.control.printed import folded, plain, plain_lines
from rodeo.control.refused import Refused
from rodeo.control.run import event_files
from rodeo.control.state.balance import Books
from rodeo.saying import say
from rodeo.signals import heard

DEMO = Actor("demo", "shell", "expert")
PLAIN_S = 5.0  # pause between two lines without a terminal
END_AFTER_S = 20.0  # the agent ends the processes of a killed demo after this time
NO_ROOM = 4  # exit status: nothing was started; the demo can run without a control room


class Shown:
    """Shows the state of the run on stderr: as a block that is redrawn on a terminal, else as a line every PLAIN_S."""

    def __init__(self, out=sys.stderr):
        self.out, self.terminal, self._lines, self._next_s = out, out.isatty(), 0, 0.0

    def say(self, line):
        self.erase()
        say(line, self.out)

    def show(self, document):
        if self.terminal:
            self.erase()
            columns, rows = shutil.get_terminal_size()
            text = folded(plain_lines(status_text.text(document, columns=columns - 1)), columns - 1)
            lines = [line[: columns - 1] for line in text.split("\n")][: max(4, rows - 2)]
            say("\n".join(lines), self.out)
            self._lines = len(lines)
        elif (
            document["state"] == "RUNNING"
            and document["numbers"].get("trigger_rate_hz") is not None
            and time.monotonic() >= self._next_s
        ):
            self._next_s = time.monotonic() + PLAIN_S
            say(
                f"{status_text.span((document['run'] or {}).get('seconds')):>8}  {status_text.numbers(document['numbers'])}",
                self.out,
            )

    def erase(self):
        if self._lines:
            with contextlib.suppress(OSError):
                self.out.write(f"\x1b[{self._lines}F\x1b[J")
            self._lines = 0


class Warnings(logging.Handler):
    """Shows warnings of the room before the block that is redrawn, not within it."""

    def __init__(self, shown):
        super().__init__(logging.WARNING)
        self.shown = shown

    def emit(self, record):
        self.shown.say(plain_lines(record.getMessage(), "  "))


class Interrupts:
    """Ctrl-C and SIGTERM: the first ends the run in order, a second changes nothing, the third aborts."""

    def __init__(self):
        self.count, self.asked, self.aborted = 0, asyncio.Event(), asyncio.Event()
        for number in heard(signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            asyncio.get_running_loop().add_signal_handler(number, self._came)

    def _came(self):
        self.count += 1
        self.asked.set()
        if self.count >= 3:
            self.aborted.set()


async def shown(room, shown_at, work, also=()):
    """Shows the document until `work` has ended or an event of `also` is set. Returns the result of `work`; None in the second case, when `work` continues."""
    task = asyncio.ensure_future(work)
    waited = [asyncio.ensure_future(event.wait()) for event in also]
    try:
        while not task.done() and not any(event.is_set() for event in also):
            document = room.server.controller.document()
            shown_at.show(document)
            change = asyncio.ensure_future(room.server.controller.wait_change(document["sequence"]))
            await asyncio.wait([task, change, *waited], timeout=1.0, return_when=asyncio.FIRST_COMPLETED)
            change.cancel()
        return await task if task.done() else None
    finally:
        for each in waited:
            each.cancel()


async def run_of(controller, room, seconds, view, interrupts, limits):
    """Does one run of `seconds` from its start. Returns the summary of stop; None if the run ended otherwise. `limits`: a Counter of the limiting stages."""
    desk = room.desk

    async def do(name, **arguments):
        return await desk.do(DEMO, name, arguments)

    await shown(room, view, do("launch"), ())
    await shown(room, view, do("start", run_type="test", comment="rodeo demo"), ())
    over = asyncio.ensure_future(_over(controller, seconds, limits))
    await shown(room, view, over, (interrupts.asked,))
    over.cancel()
    if interrupts.asked.is_set():
        view.say("the run ends in order: triggers are held, buffers drain, files close")
    if controller.document().get("run") is None:  # a rule has ended the run
        return None
    stop = asyncio.ensure_future(do("stop"))
    summary = await shown(room, view, stop, (interrupts.aborted,))
    if interrupts.aborted.is_set() and not stop.done():
        view.say("aborted: files that were not closed end in .writing; rodeo data recover saves their events")
        await shown(room, view, do("abort"), ())
        with contextlib.suppress(Refused):
            await stop
        return None
    return summary


async def _over(controller, seconds, limits):
    """Returns when the time is over or the run has ended."""
    began_s = time.monotonic()
    while time.monotonic() - began_s < seconds and (controller.document().get("run") is not None):
        if limited := controller.document().get("limited_by"):
            limits[f"{limited['process']}: {limited['stage']}"] += 1
        await asyncio.sleep(min(0.1, max(0.0, seconds - (time.monotonic() - began_s))))


async def closed(controller, room, view):
    """Ends all processes, from any state of the system."""
    for name in ("close", "abort", "recover", "close"):
        if controller.document()["state"] == "OFF":
            return
        with contextlib.suppress(Refused):
            await shown(room, view, room.desk.do(DEMO, name, {}), ())


@dataclass
class Ended:
    """A demo whose processes have ended. `books` None: there was no run, or its row is not closed."""

    name: str = ""
    books: Books | None = None
    run: dict = field(default_factory=dict)  # its last row in the document
    processes: list = field(default_factory=list)  # (name of a life, kind, report or None)
    limited_by: str = ""
    failure: str = ""


async def demo(file, seconds, page):
    """Runs the demo. Returns an Ended."""
    from rodeo.control.http.room import Room, hold_room, listen_address
    from rodeo.control.processes.hosts.local import LocalHost
    from rodeo.control.run.controller import Controller
    from rodeo.control.state.system import load

    system = load(Path(file), paths.rodeo_command(), check_classes=False)
    controller = Controller(
        system, hosts={"local": LocalHost(system.name, system.directory / "agent", end_after_s=END_AFTER_S)}
    )
    listen = listen_address(system.listen) if page else None
    room = Room(controller, system.name, listen, lock=hold_room(system.name))
    view, interrupts, limits, ended = Shown(), Interrupts(), Counter(), Ended(system.name)
    logging.getLogger("rodeo").addHandler(Warnings(view))
    try:
        await controller.open()
        await room.open()
        if page:
            view.say(f"page: {room.addresses['expert']}")
        summary = None
        try:
            summary = await run_of(controller, room, seconds, view, interrupts, limits)
        except Refused as refused:
            ended.failure = str(refused)
        last = controller.document().get("last_run") or controller.document().get("run") or {}
        if summary is None and not ended.failure:
            ended.failure = last.get("reason") or "the run was ended"
        ended.run, ended.books = last, controller.closing.last_books
        ended.limited_by = limits.most_common(1)[0][0] if limits else ""
        ended.processes = reports_of(controller.observer.members.values(), last.get("directory"))
        await closed(controller, room, view)
        if controller.document()["state"] != "OFF":
            ended.failure = ended.failure or f"the system did not close: {controller.document().get('what')}"
    finally:
        view.erase()
        await room.close()
        await controller.close()
    return ended


def reports_of(members, folder):
    """[(name of a life, kind, report or None)] in the order of the system file: reports of the run's folder; a process that lives longer than a run has a
    status instead."""
    found = []
    for each in members:
        if not each.member.per_run:
            answers = each.alive and each.phase != "lost"
            found.append((each.name, each.member.kind, each.status if answers and each.status else None))
            continue
        first = Path(folder or ".") / f"{each.name}.report.json"
        lives = [(each.name, first)]
        lives += [(path.name.split(".")[0], path) for path in sorted(first.parent.glob(f"{each.name}#*.report.json"))]
        found += [(life, each.member.kind, _json_in(path)) for life, path in lives]
    return found


def _json_in(path):
    try:
        return json.loads(path.read_text())
    except (OSError, ValueError):
        return None


def read_back(files):
    """The rows of `rodeo data verify` for event files; prints what it found. None if a file could not be read."""
    size = sum(os.path.getsize(file) for file in files)
    say(f"reading the files back ({status_text.size(size)}) ...")
    rows = []
    if files:
        command = [paths.rodeo_command(), "data", "verify", "-o", "json", *files]
        done = subprocess.run(command, stdout=subprocess.PIPE, stdin=subprocess.DEVNULL)
        try:
            rows = json.loads(done.stdout)
        except ValueError:
            return None
    for row in rows:
        for finding in row["findings"]:
            say(plain_lines(f"{row['file']}: at byte {finding['offset_bytes']}: {finding['what']}"))
    say(demo_report.read_back_text(demo_report.files_verified(rows)))
    return rows


def judge(ended, json_file):
    """Reads the files back, prints the report, writes it, and returns the exit status."""
    if ended.books is None:
        return demo_report.FAILED
    files = [each["path"] for each in event_files.files_of(ended.run["directory"]) if each["state"] != "part"]
    if (rows := read_back(files)) is None:
        return demo_report.FAILED
    report = demo_report.demo_report(
        ended.name,
        ended.processes,
        ended.books,
        run=ended.run,
        files=files,
        limited_by=ended.limited_by,
        failure=ended.failure,
    )
    report = demo_report.judged(report, rows)
    say(plain_lines(demo_report.text(report)))
    if ended.run.get("reason"):
        say(plain_lines(ended.run["reason"]))
    if not report["verified"]["chunks"]:
        say("no chunk was verified during the run")
    if json_file == "-":
        print(json.dumps(report, indent=2))
    elif json_file:
        part = Path(json_file + ".part")
        part.write_text(json.dumps(report, indent=2) + "\n")
        os.replace(part, json_file)
    return demo_report.exit_status(report)


def main(argv=None):
    parser = argparse.ArgumentParser(
        prog="python -m rodeo.control.cli.demo", description="One run of a system through its control room."
    )
    parser.add_argument("system")
    parser.add_argument("--seconds", type=float, required=True)
    parser.add_argument("--json", default="", help="the file for the report; - is stdout")
    parser.add_argument("--no-page", action="store_true", help="serve no page")
    options = parser.parse_args(argv)
    try:
        ended = asyncio.run(demo(options.system, options.seconds, not options.no_page))
    except Refused as refused:
        say(refused)
        return NO_ROOM if refused.code == "control.package" else exit_status(refused.code)
    if ended.failure:
        say(plain_lines(f"the demo ended before its time: {ended.failure}"))
    return judge(ended, options.json)


if __name__ == "__main__":
    sys.exit(main())
