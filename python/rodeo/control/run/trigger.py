"""The trigger of the system: its authorities, hold and release, luminosity blocks, and the number of triggers in a run."""

import asyncio
import logging

from rodeo.control.processes.overrides import plain
from rodeo.control.refused import Refused
from rodeo.control.state.numbers import fragments_per_event

LOG = logging.getLogger("rodeo.control")
ANSWER_S = 2.0  # limit for an answer; an authority answers at once


class Trigger:
    """The controller's loop uses it; `c` is the controller. A system whose readouts make their own events has no authority, so its triggers cannot be held."""

    def __init__(self, c):
        self.c = c

    def authorities(self):
        """Returns the names of running emulators that offer triggers and follow no other emulator."""
        return [
            each.name
            for each in self.c.observer.members.values()
            if each.member.kind == "emulator"
            and each.alive
            and isinstance((each.status or {}).get("trigger"), dict)
            and not each.status["trigger"].get("link")
        ]

    def declared(self):
        """True if the system file has any emulator, alive or not."""
        return any(member.kind == "emulator" for member in self.c.system.members)

    async def hold(self, *, or_none=False):
        """Holds the trigger: when this returns, no trigger is accepted any more. Returns {authority: triggers accepted}. Refused(control.trigger) names
        authorities that did not confirm; with `or_none` the others are then released again."""
        return await self._all(
            {"command": "trigger_hold"}, "held", undo={"command": "trigger_release"} if or_none else None
        )

    async def release(self, wait_for=None):
        """Releases the trigger. `wait_for` {authority: number of functions} for authorities whose number changes."""
        return await self._all({"command": "trigger_release"}, "released", wait_for or {})

    async def advance(self, *, scan_step=False):
        """Begins the next luminosity block at the next trigger, with `scan_step` also the next scan step. Returns sequence, lumi_block and scan_step of that
        trigger. Refused(control.trigger) names the authority that did not confirm."""
        return await self._marked({"lumi_block": True, **({"scan_step": True} if scan_step else {})})

    async def begin_blocks(self):
        """Sets luminosity block and scan step to those of the configuration, for the begin of a run."""
        for name in self.authorities():
            configured = self.c.launching.configured.get(self.c.observer.members[name].member.process_class.name)
            values = configured.values if configured else {}
            first = {key: plain(values.get(f"emulator.trigger.{key}")) for key in ("lumi_block", "scan_step")}
            try:
                await self._marked(
                    {key: value for key, value in first.items() if isinstance(value, int)}
                    or {"lumi_block": 1, "scan_step": 0},
                    [name],
                )
            except Refused as refused:  # data taking is possible without this
                LOG.warning("%s", refused.what)

    async def _marked(self, request, names=None):
        names = self.authorities() if names is None else names
        answer = {}
        for name in names:
            try:
                answer = await self.c.observer.host_of(name).ask(
                    name, {"command": "trigger_advance", **request}, ANSWER_S * self.c.patience
                )
            except Refused as refused:
                raise Refused(
                    "control.trigger",
                    f"the luminosity block did not advance: {name}: {refused.what}",
                    "rodeo emulate status shows the state of the authority",
                ) from None
        return (
            {key: answer.get(key) for key in ("sequence", "lumi_block", "scan_step")}
            if isinstance(answer, dict)
            else {}
        )

    async def _all(self, request, done, wait_for=None, undo=None):
        names = self.authorities()

        async def ask(name):
            own = {**request, "wait_for": wait_for[name]} if wait_for and name in wait_for else request
            return await self.c.observer.host_of(name).ask(name, own, ANSWER_S * self.c.patience)

        answers = await asyncio.gather(*(ask(name) for name in names), return_exceptions=True)
        failed = [
            f"{name}: {getattr(answer, 'what', answer)}"
            for name, answer in zip(names, answers)
            if isinstance(answer, Exception)
        ]
        if failed and undo:
            did = [name for name, answer in zip(names, answers) if not isinstance(answer, Exception)]
            undone = await asyncio.gather(
                *(self.c.observer.host_of(name).ask(name, undo, ANSWER_S * self.c.patience) for name in did),
                return_exceptions=True,
            )
            failed += [
                f"{name} still holds the trigger: {getattr(answer, 'what', answer)}"
                for name, answer in zip(did, undone)
                if isinstance(answer, Exception)
            ]
        if failed:
            raise Refused(
                "control.trigger",
                f"the trigger was not {done}: " + "; ".join(failed),
                "rodeo emulate status shows the state of the authority",
            )
        accepted = {}
        for name, answer in zip(names, answers):
            answer = answer if isinstance(answer, dict) else {}
            trigger = (self.c.observer.members[name].status or {}).get("trigger")
            if isinstance(trigger, dict):
                trigger["held"] = request["command"] == "trigger_hold"  # makes the state right before the next look
            accepted[name] = answer.get("accepted") if isinstance(answer.get("accepted"), int) else None
        return accepted

    def wait_for(self, missing):
        """Returns {authority: number of functions to wait for}: as configured if no reader is missing, else at most the number of ready functions."""
        found = {}
        for name in self.authorities():
            member = self.c.observer.members[name].member
            configured = self.c.launching.configured.get(member.process_class.name)
            wanted = plain(configured.values.get("emulator.trigger.wait_for")) if configured else None
            if not isinstance(wanted, int):
                continue
            ready = sum(
                each.get("ready") or 0
                for each in self.c.observer.members[name].status["trigger"].get("followers") or ()
            )
            found[name] = min(wanted, max(1, ready)) if missing else wanted
        return found

    def waits(self):
        """True if an authority offers no triggers because it waits for more functions to become ready."""
        return any(
            self.c.observer.members[name].status["trigger"].get("awaited_functions") for name in self.authorities()
        )

    def reaches(self, readout):
        """True if a readout gets the accepted triggers, False if it makes its own events or plays a recording."""
        configured = self.c.launching.configured.get(self.c.observer.members[readout].member.process_class.name)
        return configured is None or plain(configured.values.get("readout.input.type")) in ("card", "network")

    def accepted(self, run):
        """Returns the number of triggers accepted since the begin of the run; None if unknown."""
        total = None
        for name in self.authorities():
            before = (run.cards_before.get(name) or {}).get("trigger") or {}
            now = self.c.observer.members[name].status["trigger"]
            if isinstance(now.get("accepted"), int) and isinstance(before.get("accepted"), int):
                total = (total or 0) + now["accepted"] - before["accepted"]
        return total


class Settling:
    """Decides whether the readouts have built all events that were accepted before the hold. Times are of the monotonic clock."""

    QUIET_S = 1.0  # missing events do not come after so long without a change

    def __init__(self, patience=1.0):
        self.quiet_s = self.QUIET_S * patience
        self.before, self.since_s = None, None

    def done(self, statuses, accepted, now_s):
        """Returns (True if all is built, a text for each readout that is behind). `statuses`: {running readout: its status or None}. `accepted`: triggers,
        or None."""
        seen, behind = [], []
        for name, status in statuses.items():
            status = status or {}
            due = None if accepted is None else accepted * fragments_per_event(status)
            built = (status.get("fragments") or {}).get("built") or 0
            skipped = (status.get("fragments") or {}).get("skipped_events") or 0
            waiting = sum(rob.get("open_events") or 0 for rob in status.get("robs") or ())
            queued = max([value for value in (status.get("queue_fill") or {}).values()], default=0.0)
            seen.append((name, built, skipped, (status.get("chunks") or {}).get("sent"), waiting, queued))
            if due is None or built + skipped < due or waiting:
                behind.append(
                    f"{name}: {built} built"
                    + (f" of {due}" if due is not None else "")
                    + (f", {waiting} open" if waiting else "")
                )
        if not behind:
            return True, []
        if seen != self.before:
            self.before, self.since_s = seen, now_s
        return now_s - self.since_s >= self.quiet_s, behind
