"""The command lock lets one command run at a time. It knows what this command waits for, and which commands may interrupt it."""

import asyncio
import time
from dataclasses import dataclass, field

from rodeo.control.refused import Refused


async def cancelled(tasks):
    """Cancels tasks and waits until they have ended. Repeats cancel(): a cancellation that coincides with a time-out is lost."""
    left = set(tasks)
    while left:
        for each in left:
            each.cancel()
        _, left = await asyncio.wait(left, timeout=0.2)


class Overtaken(Exception):
    """Another command (`by`) has interrupted this one. Raised only where an act waits, so that steps that belong together stay together."""

    def __init__(self, by):
        super().__init__(by)
        self.by = by


@dataclass
class Act:
    """A command in progress. Times in seconds are of the monotonic clock; `began_ns` is UTC, for the display."""

    name: str
    actor: str
    limit_s: float
    began_s: float
    began_ns: int
    may_be_overtaken_by: tuple[str, ...] = ()
    waiting_for: list[str] = field(default_factory=list)
    what: str = ""
    overtaken_by: str | None = None
    left_for: str | None = None
    ends: asyncio.Event = field(default_factory=asyncio.Event)
    sealed: bool = False  # no command can interrupt the current step

    def overdue(self, now_s):
        """True if the act is past its limit. All processes stay alive then; displays show what the act waits for."""
        return now_s - self.began_s > self.limit_s

    def left_s(self, now_s):
        return max(0.0, self.began_s + self.limit_s - now_s)

    def check(self):
        """Marks a place where the act may be interrupted. Raises once for each command, so that this command does not interrupt the clean-up too."""
        if self.overtaken_by and self.overtaken_by != self.left_for and not self.sealed:
            self.left_for = self.overtaken_by
            raise Overtaken(self.overtaken_by)

    def shown(self):
        return {"name": self.name, "actor": self.actor, "began_ns": self.began_ns, "limit_s": self.limit_s}


class Acts:
    """Runs one act at a time, in the controller's loop. Calls `changed` when an act begins, waits for something else, or ends."""

    def __init__(self, changed):
        self.changed = changed
        self.now: Act | None = None
        self._tasks = set()

    def refusal(self, name):
        """Says why a command cannot begin now: another act is in progress, and the command may not overtake it. None: it can begin."""
        act = self.now
        if act is None or name in act.may_be_overtaken_by and act.overtaken_by in (None, name):
            return None
        return f"{act.name} by {act.actor} is under way" + (
            f": it waits for {', '.join(act.waiting_for[:3])}" if act.waiting_for else ""
        )

    async def do(self, name, actor, limit_s, body, *, may_be_overtaken_by=()):
        """Runs `body(act)` as the only act and returns its result. The act continues if the caller is cancelled.
        Refused(control.busy) while another act is in progress. An act that may overtake the other one waits for its end instead."""
        if refusal := self.refusal(name):
            raise Refused(
                "control.busy",
                refusal,
                "wait until it is done; the page and `rodeo control status` say what it waits for",
            )
        before = self.now
        act = Act(name, actor, limit_s, time.monotonic(), time.time_ns(), may_be_overtaken_by)
        if before is not None:
            before.overtaken_by = name
        # Set before the first await, so that a second command sees this one.
        self.now = act
        task = asyncio.ensure_future(self._run(act, body, before))
        self._tasks.add(task)
        task.add_done_callback(self._done)
        self.changed()
        return await asyncio.shield(task)

    async def _run(self, act, body, before):
        try:
            if before is not None:
                act.waiting_for = [f"the end of {before.name}"]
                await before.ends.wait()
                act.waiting_for = []
                act.check()
            act.began_s = time.monotonic()  # the limit does not include the wait for the act before
            return await body(act)
        except Overtaken as overtaken:
            raise Refused(
                "control.overtaken", f"{act.name} was interrupted: {overtaken.by} took its place", ""
            ) from None
        finally:
            act.ends.set()
            if self.now is act:
                self.now = None
            self.changed()

    def _done(self, task):
        self._tasks.discard(task)
        if not task.cancelled():
            task.exception()  # marks the exception as retrieved: the caller may be gone

    async def leave(self):
        """Cancels the current act, when the room ends."""
        await cancelled(self._tasks)

    async def finished(self):
        """Waits until no act is in progress."""
        while self._tasks:
            await asyncio.wait(set(self._tasks))
