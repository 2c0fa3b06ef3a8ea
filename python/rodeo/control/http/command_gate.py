"""The desk receives commands: it checks role, control and state; then the controller carries the command out, and the audit records it.

Commands of shell, Python and browser all pass here, so that equal commands leave equal audit rows. It uses these members of the controller (run/controller.py):

    controller.document() -> dict                  the newest document, with `sequence`; the caller must not change it
    await controller.wait_change(sequence)         returns when the document has another sequence
    await controller.command(name, arguments, actor: str, still) -> dict   done, or Refused; the desk never cancels it. It calls still() after all its
                                                   waits, directly before it begins: Refused if the sender has lost control
    controller.set_lease(dict)                     sets the member `lease` of the document, and publishes a new document
    controller.writer                              the run database (database/writer.py)

http/server.py lists what the other routes need.
"""

import asyncio
import logging
from dataclasses import dataclass
from functools import partial

from rodeo.control.http.lease import Lease
from rodeo.control.refused import Refused
from rodeo.control.state import commands

LOG = logging.getLogger("rodeo.control.http.command_gate")
BEYOND = 1000  # added to the last stored number: a crash may have lost the numbers after it


@dataclass(frozen=True)
class Actor:
    """The sender of a command: name, origin (shell, python, browser), role (viewer, shifter, expert), address or user id for the log."""

    name: str
    whence: str
    role: str
    address: str = ""


class Desk:
    """One per controller, used by the controller's loop. `monotonic` in seconds, `utc_ns` in nanoseconds."""

    def __init__(self, controller, *, monotonic, utc_ns):
        self.controller, self.monotonic, self.utc_ns = controller, monotonic, utc_ns
        self.lease = Lease()
        self._shown = self._kept = self._keeping = None
        self._tasks = set()

    async def open(self):
        """Continues the fencing numbers of the last controller of this system."""
        try:
            last = await self.controller.writer.recall("lease.fence")
        except Exception as error:
            LOG.warning("the fencing number cannot be read: %s", error)
            last = None
        known = isinstance(last, int) and not isinstance(last, bool) and last >= 0
        self.lease.fence = last + BEYOND if known else self.utc_ns() // 10**9
        self._show()

    async def do(self, actor: Actor, name: str, arguments, fence: int | None = None) -> dict:
        """Carries out one command and returns its result, a small JSON object.
        Refused: control.unknown_command, control.argument, control.role, control.not_holder, control.lease_held, control.stale_lease, or a refusal of
        the controller. Each command except renew leaves one audit row, also if refused. It continues if its sender disconnects."""
        task = asyncio.ensure_future(self._do(actor, name, arguments, fence))
        self._tasks.add(task)
        task.add_done_callback(self._done)
        return await asyncio.shield(task)

    def _done(self, task):
        self._tasks.discard(task)
        if not task.cancelled():
            task.exception()  # marks the exception as retrieved, because the sender may be gone

    async def _do(self, actor, name, arguments, fence):
        given = arguments
        try:
            known = commands.command(name)
            given = commands.checked(name, arguments)
            commands.allowed(name, given, actor.role)
            if fence is not None and (not isinstance(fence, int) or isinstance(fence, bool)):
                raise Refused("control.argument", "`fence` is not a whole number", "")
            await self.tick()
            if known.control == "lease":
                result = await self._about_control(actor, name, given, fence)
            else:
                still = _always
                if known.control == "needed":
                    self._check_control(actor, fence)
                    self._show()
                    still = partial(self.lease.check, actor.name, self.lease.fence)
                result = await self.controller.command(name, given, actor.name, still) or {}
                if self.lease.holder == actor.name:  # renews control: a launch may have taken longer than the lease
                    self.lease.acquire(actor.name, self.monotonic())
                    self._show()
        except Refused as refused:
            await self.audit(actor, name, given, "refused", f"{refused.code}: {refused.what}")
            raise
        except Exception as error:
            LOG.exception("%s failed", name)
            await self.audit(actor, name, given, "failed", f"{type(error).__name__}: {error}")
            raise Refused(
                "control.internal",
                f"`{name}` failed: {type(error).__name__}: {error}",
                "the log of the control room has the details",
            ) from error
        if known.audit:
            await self.audit(
                actor, name, given, "done", f"run {result['run']}" if isinstance(result.get("run"), int) else ""
            )
        return result

    def _check_control(self, actor, fence):
        """A command takes control if it is free, unless it carries an old fencing number: then it is stale."""
        if self.lease.holder is None and fence is None:
            self.lease.acquire(actor.name, self.monotonic())
        self.lease.check(actor.name, fence)
        self.lease.acquire(actor.name, self.monotonic())

    async def _about_control(self, actor, name, arguments, fence):
        now, lease, result = self.monotonic(), self.lease, {}
        if name == "take":
            result = {"fence": lease.acquire(actor.name, now, at_once=arguments["at_once"])}
        elif name == "ask":
            left = lease.ask(actor.name, now)
            result = {"fence": lease.fence, "seconds": round(left, 1)}
        elif name == "release":
            if fence is not None and lease.holder == actor.name:
                lease.check(actor.name, fence)
            lease.release(actor.name, now)
        else:
            lease.renew(actor.name, fence, now)
            result = {"fence": lease.fence}
        self._show()
        return result

    async def tick(self):
        """Changes that depend on time alone; called once a second."""
        for what, who in self.lease.due(self.monotonic()):
            await self.audit(Actor(who, "rule", "shifter"), "control", {}, "done", what)
        self._show()

    def _show(self):
        """Publishes a changed lease, and keeps its number in the database. Without await: no other command may come between a check of control and its use."""
        lease = self.lease
        until_ns = self.utc_ns() + int((lease.until_s - self.monotonic()) * 1e9) if lease.holder else None
        before, self._shown = self._shown, (lease.holder, lease.fence, lease.asked_by, lease.until_s)
        if self._shown == before:
            return
        self.controller.set_lease(
            {"holder": lease.holder, "fence": lease.fence, "until_ns": until_ns, "asked_by": lease.asked_by}
        )
        if self._keeping is None or self._keeping.done():
            self._keeping = asyncio.ensure_future(self._keep())

    async def _keep(self):
        """Remembers the newest number for the next controller."""
        while self._kept != (fence := self.lease.fence):
            try:
                await self.controller.writer.remember("lease.fence", fence)
            except Exception as error:
                LOG.warning("the fencing number was not kept: %s", error)
            self._kept = fence

    async def audit(self, actor, command, arguments, outcome, detail):
        """Writes one audit row. If the run database is gone, the row waits in memory."""
        arguments = arguments if isinstance(arguments, dict) else {}
        try:
            await self.controller.writer.audit(
                actor.name, actor.whence, actor.role, command[:60], _short(arguments), outcome, detail[:2000]
            )
        except Exception:
            LOG.exception("the audit row of %s by %s was lost", command, actor.name)

    async def close(self, patience_s=2.0):
        """Waits a little for commands in progress. The next controller finds out how far the others came."""
        tasks = {*self._tasks, *([self._keeping] if self._keeping else [])}
        if tasks:
            await asyncio.wait(tasks, timeout=patience_s)


def _always():
    """The check for commands that need no control."""


def _short(arguments):
    """Shortens arguments for the audit, because a refused command may have arguments of any size and shape."""
    return {
        str(key)[:60]: value
        if isinstance(value, (bool, int, float)) or value is None
        else [str(each)[:1000] for each in value[:100]]
        if isinstance(value, list)
        else str(value)[:20_000]
        for key, value in list(arguments.items())[:20]
    }
