"""`rodeo demo` through the control room: it prints the page's address, launches, starts a run, shows it live on the terminal, stops after the given time
and closes. The command gets the summary of the run and reads the files back.

    python -m rodeo.control.cli.demo SYSTEM --seconds S --result FILE
"""

import argparse
import asyncio
import contextlib
import json
import os
import shutil
import signal
import sys
import time
from collections import Counter
from pathlib import Path

from rodeo.control import paths
from rodeo.control.cli import status_text
from rodeo.control.cli.verbs import exit_status
from rodeo.control.http.command_gate import Actor
from rodeo.control.printed import plain, plain_lines
from rodeo.control.refused import Refused
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
            lines = [plain(line)[: columns - 1] for line in status_text.text(document).split("\n")][: max(4, rows - 2)]
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


async def demo(file, seconds):
    """Runs the demo. Returns the result for the command: run, summary, statuses, and the failure if it did not finish."""
    from rodeo.control.http.room import Room, hold_room, listen_address
    from rodeo.control.processes.hosts.local import LocalHost
    from rodeo.control.run.controller import Controller
    from rodeo.control.state.system import load

    system = load(Path(file), paths.rodeo_command(), check_classes=False)
    controller = Controller(
        system, hosts={"local": LocalHost(system.name, system.directory / "agent", end_after_s=END_AFTER_S)}
    )
    room = Room(controller, system.name, listen_address(system.listen), lock=hold_room(system.name))
    view, interrupts, told, limits = Shown(), Interrupts(), {"run": None, "summary": None, "failure": ""}, Counter()
    try:
        await controller.open()
        await room.open()
        view.say(f"page: {room.addresses['expert']}")
        try:
            told["summary"] = await run_of(controller, room, seconds, view, interrupts, limits)
        except Refused as refused:
            told["failure"] = str(refused)
            told["code"] = refused.code
        last = controller.document().get("last_run") or controller.document().get("run") or {}
        told.update(
            run=last.get("number"),
            condition=last.get("condition"),
            reason=last.get("reason"),
            directory=last.get("directory"),
            interrupted=interrupts.count,
        )
        trigger = (controller.observer.members["card"].status or {}).get("trigger") or {}
        told.update(
            offered=trigger.get("offered"),
            accepted=trigger.get("accepted"),
            limited_by=limits.most_common(1)[0][0] if limits else "",
        )
        # Processes that live longer than a run leave no report in its folder.
        told["statuses"] = {
            name: each.status
            for name, each in controller.observer.members.items()
            if not each.member.per_run and each.status
        }
        if told["summary"] is None and not told["failure"]:
            told["failure"] = last.get("reason") or "the run was ended"
        await closed(controller, room, view)
        if controller.document()["state"] != "OFF":
            told["failure"] = told["failure"] or f"the system did not close: {controller.document().get('what')}"
    finally:
        view.erase()
        await room.close()
        await controller.close()
    return told


def main(argv=None):
    parser = argparse.ArgumentParser(
        prog="python -m rodeo.control.cli.demo", description="One run of a system through its control room."
    )
    parser.add_argument("system")
    parser.add_argument("--seconds", type=float, required=True)
    parser.add_argument("--result", required=True, help="the file for the summary, as JSON")
    options = parser.parse_args(argv)
    try:
        told = asyncio.run(demo(options.system, options.seconds))
    except Refused as refused:
        say(refused)
        return NO_ROOM if refused.code == "control.package" else exit_status(refused.code)
    part = Path(options.result + ".part")
    part.write_text(json.dumps(told))
    os.replace(part, options.result)
    if told["failure"]:
        say(plain_lines(f"the demo ended before its time: {told['failure']}"))
    return 0


if __name__ == "__main__":
    sys.exit(main())
