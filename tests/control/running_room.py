"""A controller for tests, with real processes. It runs in a thread with its own loop, and the test calls it as shell and page do. At the end it
ends everything that it has started."""

import asyncio
import contextlib
import os
import threading
import time

from conftest import BUILD, scaled

LONG_S = 300.0  # two hundred times the need of an undisturbed machine


class RunningRoom:
    """`with RunningRoom(file) as room:` The controller of a system file. `hosts` and `database` are arguments of Controller."""

    def __init__(self, file, **options):
        self.file, self.options = file, options
        self.controller = None
        self.loop = asyncio.new_event_loop()
        self.thread = threading.Thread(target=self._run, daemon=True)

    def _run(self):
        asyncio.set_event_loop(self.loop)
        self.loop.run_forever()

    def do(self, work, seconds=LONG_S):
        """Runs a coroutine in the controller's loop and returns what it returns."""
        return asyncio.run_coroutine_threadsafe(work, self.loop).result(scaled(seconds))

    def begin(self, work):
        """Starts a coroutine in the loop; .result(seconds) waits for it."""
        return asyncio.run_coroutine_threadsafe(work, self.loop)

    def __enter__(self):
        from rodeo.control.run.controller import Controller
        from rodeo.control.state.system import load

        self.thread.start()
        try:

            async def make():
                self.controller = Controller(
                    load(self.file, BUILD / "rodeo"), rodeo=str(BUILD / "rodeo"), **self.options
                )
                await self.controller.open()

            self.do(make())
        except BaseException:
            self._end_loop()
            raise
        return self

    def __exit__(self, exception, value, traceback):
        self.leave(end=True)

    def leave(self, *, end=False):
        """Ends the controller; with `end`, ends the processes first."""
        if self.controller is None:
            return
        try:
            if end:
                self.end_processes()
        finally:
            with contextlib.suppress(Exception):
                self.do(self.controller.close())
            self.controller = None
            self._end_loop()

    async def _end_tasks(self):
        """Cancels the loop's waiting tasks, which would wait for ever."""
        from rodeo.control.run.command_lock import cancelled

        await cancelled(asyncio.all_tasks() - {asyncio.current_task()})

    def _end_loop(self):
        with contextlib.suppress(Exception):
            self.do(self._end_tasks())
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join(scaled(LONG_S))
        self.loop.close()

    def end_processes(self):
        """Ends all processes in any state."""
        import signal

        for each in self.document()["processes"]:  # stopped processes cannot end
            if each["pid"] and each["phase"] == "lost":
                with contextlib.suppress(OSError):
                    os.kill(each["pid"], signal.SIGCONT)
        with contextlib.suppress(Exception):
            self.command("abort", confirm=True)
        self.do(self._hosts_leave())

    async def _hosts_leave(self):
        for host in self.controller.hosts.values():
            for each in await host.list():
                if each.state != "exited":
                    await host.end(each.name, 1.0)
            if hasattr(host, "leave"):
                await host.leave()

    # Calls of the tests
    def document(self):
        return self.controller.document()

    @property
    def state(self):
        return self.document()["state"]

    def command(self, name, actor="ana", **arguments):
        from rodeo.control.state import commands

        return self.do(self.controller.command(name, commands.checked(name, arguments), actor))

    def order(self, name, actor="ana", **arguments):
        """Like command(), but does not wait: returns a future."""
        from rodeo.control.state import commands

        return self.begin(self.controller.command(name, commands.checked(name, arguments), actor))

    def refusal(self, name, **arguments):
        """The error code of a refused command; the test fails if the command is accepted."""
        from rodeo.control.refused import Refused

        try:
            done = self.command(name, **arguments)
        except Refused as refused:
            return refused.code
        raise AssertionError(f"{name} was done: {done}")

    def until(self, condition, what, seconds=LONG_S):
        """Waits for condition(document) and returns its value. The time limit only ends failing tests."""
        deadline = time.monotonic() + scaled(seconds)
        while True:
            document = self.document()
            if value := condition(document):
                return value
            assert time.monotonic() < deadline, (
                f"waited in vain until {what}: {document['state']} {document['what']} {document['waiting_for']} {phases(document)}"
            )
            time.sleep(0.05)

    def until_state(self, *states):
        return self.until(lambda document: document["state"] in states, f"the state is {' or '.join(states)}")

    def process(self, name):
        return next(each for each in self.document()["processes"] if each["name"] == name)

    def pid(self, name):
        return self.process(name)["pid"]

    def row(self, number):
        """A run from the database."""
        return self.do(self.controller.reads.run(number))

    def acknowledge_all(self):
        for each in self.document()["alarms"]:
            self.command("ack", cause=each["cause"])


def phases(document):
    return {each["name"]: each["phase"] for each in document["processes"]}
