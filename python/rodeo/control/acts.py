"""One command at a time: the act that is under way, what it waits for, and who may end it before it is done."""

import asyncio
import time
from dataclasses import dataclass, field

from rodeo.control.refused import Refused


async def cancelled(tasks):
    """Cancels tasks and waits until they have ended. It is said until it is heard: a time-out that ends in the same moment as what it was for swallows it."""
    left = set(tasks)
    while left:
        for each in left:
            each.cancel()
        _, left = await asyncio.wait(left, timeout=0.2)


class Overtaken(Exception):
    """Another command has taken the place of this one (`by`): thrown where an act waits, never between two things that belong together."""

    def __init__(self, by):
        super().__init__(by)
        self.by = by


@dataclass
class Act:
    """A command that is being carried out. Seconds are of the monotonic clock, the display's time is UTC."""

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
    sealed: bool = False  # what it does now is done to its end, whoever asks

    def overdue(self, now_s):
        """Past its limit: nothing is killed for that, but everybody sees what it waits for."""
        return now_s - self.began_s > self.limit_s

    def left_s(self, now_s):
        return max(0.0, self.began_s + self.limit_s - now_s)

    def check(self):
        """Called wherever the act may be left. Thrown once: what is done on the way out is not left again for the same command."""
        if self.overtaken_by and self.overtaken_by != self.left_for and not self.sealed:
            self.left_for = self.overtaken_by
            raise Overtaken(self.overtaken_by)

    def shown(self):
        return {"name": self.name, "actor": self.actor, "began_ns": self.began_ns, "limit_s": self.limit_s}


class Acts:
    """The place for one act. Of the controller's loop; `changed` is called when an act begins, waits for something else, or ends."""

    def __init__(self, changed):
        self.changed = changed
        self.now: Act | None = None
        self._tasks = set()

    def refusal(self, name):
        """Why a command cannot begin now, or None: another one is under way that it may not overtake."""
        act = self.now
        if act is None or name in act.may_be_overtaken_by and act.overtaken_by in (None, name):
            return None
        return f"{act.name} by {act.actor} is under way" + (f": it waits for {', '.join(act.waiting_for[:3])}" if act.waiting_for else "")

    async def do(self, name, actor, limit_s, body, *, may_be_overtaken_by=()):
        """Runs `body(act)` as the one act and returns its result. It goes on to its end if the caller goes away.
        Refused(control.busy) while another one is under way, unless that may be overtaken by this one: then it is waited for first."""
        if refusal := self.refusal(name):
            raise Refused("control.busy", refusal, "wait until it is done; the page and `rodeo control status` say what it waits for")
        before = self.now
        act = Act(name, actor, limit_s, time.monotonic(), time.time_ns(), may_be_overtaken_by)
        if before is not None:
            before.overtaken_by = name
        # The place is taken before anything is awaited: of two commands at once, one finds the other.
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
            act.began_s = time.monotonic()  # its limits are its own, not those of what it waited for
            return await body(act)
        except Overtaken as overtaken:
            raise Refused("control.overtaken", f"{act.name} was not done to its end: {overtaken.by} took its place", "") from None
        finally:
            act.ends.set()
            if self.now is act:
                self.now = None
            self.changed()

    def _done(self, task):
        self._tasks.discard(task)
        if not task.cancelled():
            task.exception()  # whoever asked may be gone

    async def leave(self):
        """The room ends: what is under way is left where it is."""
        await cancelled(self._tasks)

    async def finished(self):
        """Waits until nothing is under way."""
        while self._tasks:
            await asyncio.wait(set(self._tasks))
