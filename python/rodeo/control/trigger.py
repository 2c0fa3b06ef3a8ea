"""The trigger of the system: who assigns it, holding and releasing it, and how many triggers a run has had."""

import asyncio
import logging
import time

from rodeo.control.looks import phase_of
from rodeo.control.overrides import plain
from rodeo.control.refused import Refused

LOG = logging.getLogger("rodeo.control")
ANSWER_S = 2.0  # an authority says at once that it holds


class Trigger:
    """Of the controller's loop; `c` is the controller. A system whose readouts make their own events has no authority: then nothing can be held."""

    def __init__(self, c):
        self.c = c

    def authorities(self):
        """Names of the emulators that offer triggers and are there: all that follow nobody."""
        return [each.name for each in self.c.observer.members.values() if each.member.kind == "emulator" and each.alive
                and isinstance((each.status or {}).get("trigger"), dict) and not each.status["trigger"].get("link")]

    def declared(self):
        """Whether the system file has any emulator, alive or not."""
        return any(member.kind == "emulator" for member in self.c.system.members)

    async def hold(self, *, or_none=False):
        """Nothing is accepted after this has returned. Returns {authority: triggers accepted}. Refused(control.trigger) names who did not say so; `or_none`: then
        those that did are released again, for nothing is to change."""
        return await self._all({"command": "trigger_hold"}, "held", undo={"command": "trigger_release"} if or_none else None)

    async def release(self, wait_for=None):
        """Triggers come from now on. `wait_for` {authority: functions} where it is to be another number than before."""
        return await self._all({"command": "trigger_release"}, "released", wait_for or {})

    async def advance(self, *, scan_step=False):
        """The luminosity block goes on with the next trigger, and the scan step with it if asked. Returns what that trigger has: sequence, lumi_block, scan_step.
        Refused(control.trigger) names who did not say so."""
        return await self._marked({"lumi_block": True, **({"scan_step": True} if scan_step else {})})

    async def begin_blocks(self):
        """A run begins with the luminosity block and scan step of its configuration, whatever the last run came to."""
        for name in self.authorities():
            configured = self.c.launching.configured.get(self.c.observer.members[name].member.process_class.name)
            values = configured.values if configured else {}
            first = {key: plain(values.get(f"emulator.trigger.{key}")) for key in ("lumi_block", "scan_step")}
            try:
                await self._marked({key: value for key, value in first.items() if isinstance(value, int)} or {"lumi_block": 1, "scan_step": 0}, [name])
            except Refused as refused:  # no reason not to take data
                LOG.warning("%s", refused.what)

    async def _marked(self, request, names=None):
        names = self.authorities() if names is None else names
        answer = {}
        for name in names:
            try:
                answer = await self.c.observer.host_of(name).ask(name, {"command": "trigger_advance", **request}, ANSWER_S * self.c.patience)
            except Refused as refused:
                raise Refused("control.trigger", f"luminosity blocks did not go on: {name}: {refused.what}", "rodeo emulate status says how its authority is doing") from None
        return {key: answer.get(key) for key in ("sequence", "lumi_block", "scan_step")} if isinstance(answer, dict) else {}

    async def _all(self, request, done, wait_for=None, undo=None):
        names = self.authorities()

        async def ask(name):
            own = {**request, "wait_for": wait_for[name]} if wait_for and name in wait_for else request
            return await self.c.observer.host_of(name).ask(name, own, ANSWER_S * self.c.patience)

        answers = await asyncio.gather(*(ask(name) for name in names), return_exceptions=True)
        failed = [f"{name}: {getattr(answer, 'what', answer)}" for name, answer in zip(names, answers) if isinstance(answer, Exception)]
        if failed and undo:
            did = [name for name, answer in zip(names, answers) if not isinstance(answer, Exception)]
            undone = await asyncio.gather(*(self.c.observer.host_of(name).ask(name, undo, ANSWER_S * self.c.patience) for name in did), return_exceptions=True)
            failed += [f"{name} holds, and was not released again: {getattr(answer, 'what', answer)}" for name, answer in zip(did, undone) if isinstance(answer, Exception)]
        if failed:
            raise Refused("control.trigger", f"the trigger was not {done}: " + "; ".join(failed), "rodeo emulate status says how its authority is doing")
        accepted = {}
        for name, answer in zip(names, answers):
            answer = answer if isinstance(answer, dict) else {}
            trigger = (self.c.observer.members[name].status or {}).get("trigger")
            if isinstance(trigger, dict):
                trigger["held"] = request["command"] == "trigger_hold"  # so that the state says so before the next look
            accepted[name] = answer.get("accepted") if isinstance(answer.get("accepted"), int) else None
        return accepted

    def wait_for(self, missing):
        """{authority: functions to wait for}: as configured if every reader is there, else at most as many as are ready now."""
        found = {}
        for name in self.authorities():
            member = self.c.observer.members[name].member
            configured = self.c.launching.configured.get(member.process_class.name)
            wanted = plain(configured.values.get("emulator.trigger.wait_for")) if configured else None
            if not isinstance(wanted, int):
                continue
            ready = sum(each.get("ready") or 0 for each in self.c.observer.members[name].status["trigger"].get("followers") or ())
            found[name] = min(wanted, max(1, ready)) if missing else wanted
        return found

    def waits(self):
        """Whether an authority offers nothing because fewer functions are ready than it was told to wait for."""
        return any(self.c.observer.members[name].status["trigger"].get("awaited_functions") for name in self.authorities())

    def reaches(self, readout):
        """Whether a readout gets what the authorities accept: one that makes its own events, or plays a recording, does not."""
        configured = self.c.launching.configured.get(self.c.observer.members[readout].member.process_class.name)
        return configured is None or plain(configured.values.get("readout.input.type")) in ("card", "network")

    def accepted(self, run):
        """Triggers that were accepted since the run began; None if nobody knows."""
        total = None
        for name in self.authorities():
            before = (run.cards_before.get(name) or {}).get("trigger") or {}
            now = self.c.observer.members[name].status["trigger"]
            if isinstance(now.get("accepted"), int) and isinstance(before.get("accepted"), int):
                total = (total or 0) + now["accepted"] - before["accepted"]
        return total


class Settling:
    """Have the readouts built all that was accepted before the trigger was held? Times are of the monotonic clock."""

    QUIET_S = 1.0  # nothing open and nothing new for so long: what is not there will not come

    def __init__(self, patience=1.0):
        self.quiet_s = self.QUIET_S * patience
        self.before, self.since_s = None, None

    def done(self, observer, names, accepted, now_s=None):
        """(whether it is over, what each that is behind still has to do)."""
        now_s = time.monotonic() if now_s is None else now_s
        seen, behind = [], []
        for name in names:
            each = observer.members[name]
            status = each.status or {}
            if phase_of(each.look(now_s)) not in ("running", "draining"):
                continue
            robs = status.get("robs") or []
            built = (status.get("fragments") or {}).get("built") or 0
            skipped = (status.get("fragments") or {}).get("skipped_events") or 0
            waiting = sum(rob.get("open_events") or 0 for rob in robs)
            queued = max([value for value in (status.get("queue_fill") or {}).values()], default=0.0)
            seen.append((name, built, skipped, (status.get("chunks") or {}).get("sent"), waiting, queued))
            if accepted is None or built + skipped < accepted * max(1, len(robs)) or waiting:
                behind.append(f"{name}: {built} built" + (f" of {accepted * max(1, len(robs))}" if accepted is not None else "") + (f", {waiting} open" if waiting else ""))
        if not behind:
            return True, []
        if seen != self.before:
            self.before, self.since_s = seen, now_s
        return now_s - self.since_s >= self.quiet_s, behind
