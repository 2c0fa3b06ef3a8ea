"""A random walk over commands, kills, stops by signal and restarts of everything, the controller included. After any walk the state is right, no process
is left, no run stays open, and each run balances. The steps follow from a seed; the situation of a step does not."""

import contextlib
import os
import random
import signal
import time

import pytest
from conftest import scaled
from running_room import RunningRoom, phases
from small_systems import two_readouts

LIVING = ("launching", "ready", "running", "draining", "lost")
COMMANDS = ("launch", "start", "pause", "resume", "stop", "go_on", "recover", "close", "abort", "ack")
WEIGHTS = (8, 12, 3, 3, 8, 3, 6, 1, 1, 6)


class Walk:
    """One walk through one system. `said` has its steps, to find the cause of a failure."""

    def __init__(self, file, seed):
        self.file, self.random = file, random.Random(seed)
        self.room = RunningRoom(file, patience=scaled(1)).__enter__()
        self.stopped, self.pids, self.said, self.orders = set(), set(), [], []

    def step(self):
        what = self.random.choices(
            ("command", "order", "kill", "stop", "continue", "controller", "wait"), (50, 8, 6, 4, 8, 6, 18)
        )[0]
        self.said.append(what)
        getattr(self, f"do_{what}")()
        self.look()

    def do_command(self):
        """A command as a shifter gives it: usually an allowed one. It does not wait for a long command while a process is stopped."""
        document = self.room.document()
        possible = [name for name in COMMANDS if name == "ack" or document["commands"].get(name) is None]
        name = self.random.choices(
            *zip(*[(name, weight) for name, weight in zip(COMMANDS, WEIGHTS) if name in possible or weight == 1])
        )[0]
        self.said[-1] = name
        if self.stopped:
            return self.order(name)
        order = self.order(name)
        with contextlib.suppress(Exception):
            order.result(scaled(300))

    def do_order(self):
        """Any command at any moment, without waiting."""
        name = self.random.choice(COMMANDS[:-1])
        self.said[-1] = f"{name}!"
        self.order(name)

    def order(self, name):
        arguments = {"confirm": True} if name == "abort" else {}
        if name == "ack":
            alarms = self.room.document()["alarms"]
            if not alarms:
                order = self.room.begin(self._nothing())
                return order
            arguments = {"cause": self.random.choice(alarms)["cause"]}
        self.orders.append(self.room.order(name, **arguments))
        return self.orders[-1]

    async def _nothing(self):
        return None

    def _victim(self):
        alive = [each for each in self.room.document()["processes"] if each["pid"] and each["phase"] in LIVING]
        return self.random.choice(alive) if alive else None

    def do_kill(self):
        if victim := self._victim():
            self.said[-1] = f"kill {victim['name']}"
            with contextlib.suppress(OSError):
                os.kill(victim["pid"], signal.SIGKILL)

    def do_stop(self):
        if victim := self._victim():
            self.said[-1] = f"SIGSTOP {victim['name']}"
            with contextlib.suppress(OSError):
                os.kill(victim["pid"], signal.SIGSTOP)
                self.stopped.add(victim["pid"])

    def do_continue(self):
        for pid in self.stopped:
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGCONT)
        self.stopped.clear()

    def do_controller(self):
        """Kills the controller in the middle of its work, and starts another one."""
        self.room.leave()
        self.orders.clear()
        self.room = RunningRoom(self.file, patience=scaled(1)).__enter__()

    def do_wait(self):
        time.sleep(self.random.random() * 0.5)

    def look(self):
        """Checks that hold at every moment."""
        document = self.room.document()
        self.pids |= {each["pid"] for each in document["processes"] if each["pid"]}
        run = document["run"]
        assert (run is not None) or document["state"] not in ("RUNNING", "PAUSED", "STOPPING") or document["act"], (
            self.told(document)
        )
        assert document["state"] != "OFF" or not [each for each in document["processes"] if each["phase"] in LIVING], (
            self.told(document)
        )
        if document["state"] == "READY":
            assert run is None, self.told(document)

    def told(self, document=None):
        document = document or self.room.document()
        return f"{' '.join(self.said)}: {document['state']} {document['what']} {document['act']} {document['run'] and document['run']['number']} {phases(document)}"

    def end(self):
        """The end from any state: continues stopped processes, closes or aborts the system, and checks the result."""
        self.do_continue()
        for order in self.orders:
            with contextlib.suppress(Exception):
                order.result(scaled(300))
        self.room.until(self._over, "all is over: " + self.told())
        assert self.room.do(self.room.controller.writer.open_runs()) == [], self.told()
        for row in self.room.do(self.room.controller.reads.runs(1000)):
            assert row["state"] in ("CLOSED", "ABORTED"), row
            assert row["condition"] != "WRONG", (row, self.told())

    def _over(self, document):
        """Whether all processes are gone. Aborts remaining ones as soon as possible."""
        if document["state"] == "OFF" and document["run"] is None and document["act"] is None:
            return True
        if document["commands"].get("abort") is None:
            with contextlib.suppress(Exception):
                self.room.command("abort", confirm=True)
        return False

    def leave(self):
        self.do_continue()
        self.room.leave(end=True)
        left = [pid for pid in self.pids if _alive(pid)]
        assert not left, f"{left} are left: {' '.join(self.said)}"


def _alive(pid):
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rsplit(")", 1)[1].split()[0] not in "ZX"
    except OSError:
        return False


def walk(file, seed, steps):
    walking = Walk(file, seed)
    try:
        for _ in range(steps):
            walking.step()
        walking.end()
    finally:
        walking.leave()


def test_twenty_steps(place):
    walk(two_readouts(place / "w", name="w", choose_limit="2s"), 20, 20)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(5))
def test_a_hundred_steps(place, seed):
    walk(two_readouts(place / f"w{seed}", name=f"w{seed}", choose_limit="2s"), 1000 + seed, 100)
