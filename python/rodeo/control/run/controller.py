"""The controller of a system reads every process each second, derives the state, and carries out automatic steps and commands.

One asyncio loop owns the controller. If the controller is killed, data taking continues. The next one finds its state in
processes, the open row, and a few remembered facts."""

import asyncio
import contextlib
import inspect
import json
import logging
import os
import time

from rodeo.control import log_setup, paths
from rodeo.control.processes.disks import Folders
from rodeo.control.processes.external_programs import Externals
from rodeo.control.processes.host_health import HostLooks
from rodeo.control.processes.hosts import hosts_of
from rodeo.control.processes.launcher import Late, Launching
from rodeo.control.processes.log_search import Logs
from rodeo.control.refused import Refused
from rodeo.control.run import adoption, judgements, run_transitions, system_transitions
from rodeo.control.run.closing import Closing
from rodeo.control.run.command_lock import Acts, cancelled
from rodeo.control.run.observer import POLL_S, Observer
from rodeo.control.run.publisher import Telling
from rodeo.control.run.trigger import Trigger
from rodeo.control.state import reactions, refusals, snapshots, system_state
from rodeo.control.state.rules import as_json as rule_as_json

LOG = logging.getLogger("rodeo.control")
LOOK_S = 0.9  # between questions to all processes; the page's values are less than a second old
SHORTEST_S = 0.05  # shortest time between two looks
LIST_S = 0.25  # between questions to launchers for living processes; limits the delay of an end
FOR_OPERATORS = {"audience": "operator"}  # for log lines
BACK_OFF_S = (2.0, 10.0, 60.0)  # pauses before the next attempts of a failed automatic step

BODIES = {
    "launch": system_transitions.launch,
    "close": system_transitions.close,
    "abort": system_transitions.abort,
    "recover": system_transitions.recover,
    "start": run_transitions.start,
    "pause": run_transitions.pause,
    "resume": run_transitions.resume,
    "advance": run_transitions.advance,
    "go_on": run_transitions.go_on,
    "stop": run_transitions.stop,
}


class Controller:
    """`system` comes from system.load(), and so do `hosts` {name: Host} and `database` by default. `patience` multiplies
    time-outs, for slow machines (default: $RODEO_CONTROL_PATIENCE, else control.patience)."""

    def __init__(self, system, *, rodeo=None, hosts=None, database=None, patience=None):
        self.system = system
        self.rodeo = rodeo or paths.rodeo_command()
        self.patience = patience or float(os.environ.get("RODEO_CONTROL_PATIENCE") or system.patience)
        self.hosts = hosts or hosts_of(system, self.patience)
        self.database = database or adoption.database_of(system)
        self.writer, self.reads = self.database.writer, self.database.reads
        self.folders = Folders(system.directory, system.group)
        self.observer = Observer(system, self.hosts, self.patience)
        self.launching = Launching(self)
        self.trigger = Trigger(self)
        self.closing = Closing(self)
        self.telling = Telling(self)
        self.logs = Logs(self)
        self.externals = Externals(system.externals)
        self.host_looks = HostLooks(self.hosts)
        self.acts = Acts(self.publish)
        self.memory = snapshots.Memory()
        self.run = None
        self.derived = system_state.derive(self.observer.looks())
        self.disk = None
        self._remembered = {}
        self._tasks = set()
        self._keeping = None  # the task of _keep(), one at a time
        self._failed_rules = {}  # kind -> (failures in a row, time of the next attempt)

    # Life
    async def open(self):
        """Adopts the existing state, and begins to look. Refused if the directory, the database or a host cannot be used."""
        await asyncio.to_thread(self.folders.make)
        await self.database.open()
        for opened in await asyncio.gather(
            *(host.open() for host in self.hosts.values()), return_exceptions=True
        ):  # all together, because a silent host takes half a minute
            if isinstance(opened, BaseException):
                raise opened
        await adoption.adopt(self)
        self.evaluate()
        self.publish()
        self._spawn(self._watch())
        self._spawn(self._watch_disk())
        self._spawn(self.host_looks.watch())
        self._spawn(self.externals.watch())

    async def close(self):
        """Ends the controller; processes continue. Cancels the current act, which the next controller finishes."""
        await cancelled(self._tasks)
        await self.acts.leave()
        await self.observer.close()
        for host in self.hosts.values():
            with contextlib.suppress(Refused):
                await host.close()
        await self.database.close()

    def _spawn(self, work):
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)
        return task

    def _ended(self, task):
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None and not isinstance(error, Refused):
            LOG.error("a task failed", exc_info=error)

    # Looking
    async def _watch(self):
        """Asks all processes every LOOK_S, and the launchers every LIST_S."""
        next_s = 0.0
        while True:
            try:
                now_s = time.monotonic()
                whole = now_s >= next_s
                if whole:
                    next_s = max(next_s, now_s - LOOK_S) + LOOK_S  # missed beats are skipped
                await self.observer.look(statuses=whole)
                changed, self.observer.changed = self.observer.changed, False
                if changed and not whole:
                    await self.observer.look()
                if whole or changed:
                    self.evaluate(changed)
                    await self._react()
                    if self._keeping is None or self._keeping.done():
                        self._keeping = self._spawn(self._keep())
                    self.publish()
            except Exception:
                LOG.exception("a look at the processes failed")
            await asyncio.sleep(max(SHORTEST_S, min(LIST_S, next_s - time.monotonic())))

    async def _keep(self):
        """Writes the results of looks to disk; the looks do not wait for this."""
        await self._remember("memory", self.memory.as_json())
        await self.telling.keep()
        await self.closing.keep_blocks()

    async def _watch_disk(self):
        """Watches the disk in a task of its own, because a disk that hangs must not delay the looks at processes."""
        host = self.hosts.get("local") or next(iter(self.hosts.values()))
        while True:
            try:
                self.disk = await host.disk(str(self.folders.runs))
            except Refused:
                self.disk = None
            await self.telling.look_at_left_open()
            await asyncio.sleep(POLL_S)

    async def look(self):
        """Reads all hosts and processes now, and derives the state."""
        await self.observer.look()
        self.derive()

    async def until(self, act, done, *, limit_s=None, what="{1}"):
        """Looks until `done()` (may be asynchronous) is true. Raises Late after `limit_s`, Overtaken if another command interrupts this act."""
        began_s, pause_s = time.monotonic(), 0.02
        while True:
            await self.look()
            result = done()
            if inspect.isawaitable(result):
                result = await result
            self.publish()
            if result:
                return
            act.check()
            if limit_s is not None and time.monotonic() - began_s > limit_s:
                raise Late(what.format(limit_s, ", ".join(act.waiting_for[:5])))
            await asyncio.sleep(pause_s)
            pause_s = min(1.3 * pause_s, LIST_S)

    def derive(self):
        """Derives the state from the last look."""
        log_setup.set_run(self.run.number if self.run else None)
        self.looks = self.observer.looks()
        self.derived = system_state.derive(
            self.looks,
            self.run and self.run.row(),
            self.act(),
            self.memory,
            silent_hosts=tuple(self.observer.silent_hosts),
            strangers=self.observer.strangers,
        )

    def evaluate(self, changed=False, fresh=False):
        """Derives the state, the numbers and the alarms from the last look. `changed`: a process has begun or ended, so evaluates the alarms now.
        `fresh`: computes the numbers from this look, even shortly after the last one."""
        self.derive()
        self.telling.evaluate(changed, fresh)

    def act(self):
        """Returns the current act, in the form for the deciding modules."""
        act = self.acts.now
        return act and snapshots.Act(
            act.name, act.actor, max(0.0, time.monotonic() - act.began_s), act.limit_s, act.began_ns
        )

    # Automatic steps
    async def _react(self):
        now_s, numbers = time.monotonic(), self.telling.numbers or {}
        disk = reactions.Disk(
            self.disk and self.disk.get("free"),
            numbers.get("disk_seconds_left"),
            self.system.disk_stop_bytes,
            self.system.disk_time_s,
        )
        todo, self.memory = reactions.react(
            self.derived,
            self.looks,
            run=self.run and self.run.row(),
            act=self.act(),
            memory=self.memory,
            now_s=now_s,
            choose_limit_s=self.system.choose_limit_s,
            disk=disk,
        )
        for each in sorted(todo, key=lambda one: one.kind != "hold"):  # holds the trigger first
            try:
                await self._do_by_rule(each)
            except Refused as refused:
                LOG.warning("%s by rule: %s", each.kind, refused.what)
        if (
            self.derived.state == "RUNNING"
            and self.derived.degraded
            and not self.derived.broken
            and self.acts.now is None
            and self.trigger.waits()
        ):
            with contextlib.suppress(Refused):  # optional processes do not delay the trigger
                await self.trigger.release(self.trigger.wait_for(True))

    async def _do_by_rule(self, reaction):
        if reaction.kind == "mark":
            if self.run is not None:
                await self.keep_run(flags=set(reaction.flags))
        elif reaction.kind == "hold":
            await self.trigger.hold()
            self._spawn(self._say(reaction))
        elif reaction.kind == "release":
            await self.trigger.release(self.trigger.wait_for(bool(self.memory.without)))
            self._spawn(self._say(reaction))
        elif reaction.kind == "restart":
            self._spawn(self._restart(reaction))
        elif self.acts.now is None and self._failed_rules.get(reaction.kind, (0, 0.0))[1] <= time.monotonic():
            self._spawn(self._act_by_rule(reaction))
            await asyncio.sleep(0)  # lets the act begin before the next decision

    async def _act_by_rule(self, reaction):
        bodies = {
            "stop": (
                "stop",
                lambda act: run_transitions.stop(self, act, {"reason": reaction.why, "flags": reaction.flags}),
            ),
            "undo_start": ("stop", lambda act: run_transitions.undo(self, act, reaction.why)),
            "relaunch": ("launch", lambda act: run_transitions.relaunch(self, act)),
            "close": ("close", lambda act: system_transitions.close(self, act, {})),
        }
        name, body = bodies[reaction.kind]
        if (
            name == "stop" and self.run is not None and self.run.aborting
        ):  # the former controller was killed during an abort
            name, body = "abort", lambda act: system_transitions.abort(self, act, {})
        try:
            await self.acts.do(name, "rule", self.limit_of(name), body, may_be_overtaken_by=refusals.overtaken_by(name))
        except Refused as refused:
            times = self._failed_rules.get(reaction.kind, (0, 0.0))[0]
            self._failed_rules[reaction.kind] = (
                times + 1,
                time.monotonic() + BACK_OFF_S[min(times, len(BACK_OFF_S) - 1)],
            )
            await self._say(reaction, "refused", refused.what)
            return
        self._failed_rules.pop(reaction.kind, None)
        await self._say(reaction)

    async def _restart(self, reaction):
        """Restarts a failed process. If it is one that lives for one run, it joins the open run."""
        each, run = self.observer.members[reaction.process], self.run
        outcome, detail = "done", reaction.why
        try:
            await self.launching.prepare([each.member])
            if not await self.launching.launch(
                each.name, wanted=lambda: self.acts.now is None and self.run is run and self.memory.wanted != "off"
            ):
                return
            each.restarts += 1
            bad = await self.launching.ready(Unnoticed(), [each.name])
            if bad:
                outcome, detail = "failed", f"{each.name} {bad[each.name]}"
            elif each.member.per_run and run is not None and self.run is run and not run.stopping:
                await self.closing.join(run, each)
            await self.keep_launched()
        except Refused as refused:
            outcome, detail = "refused", refused.what
        await self._say(reaction, outcome, detail)

    async def _say(self, reaction, outcome="done", detail=""):
        """Logs and audits an automatic step in the same way as a command."""
        LOG.info(
            "%s by rule: %s %s %s",
            reaction.kind,
            reaction.process or "",
            reaction.why,
            "" if outcome == "done" else f"({outcome}: {detail})",
            extra=FOR_OPERATORS,
        )
        with contextlib.suppress(Refused):
            await self.writer.audit(
                "rule",
                "rule",
                "rule",
                reaction.kind,
                {"process": reaction.process} if reaction.process else {},
                outcome,
                detail or reaction.why,
            )

    # Commands
    async def command(self, name, arguments, actor, still=lambda: None):
        """Carries out a command and returns a small JSON object. Refused: control.busy, control.not_now, or a refusal of the command. The command continues
        if its sender disconnects. `still()` runs after the look, before the command begins; it raises Refused if the sender has lost the right."""
        if name == "ack":
            return await self.telling.acknowledge(arguments["cause"], actor)
        if name == "shelve":
            return await self.telling.shelve(
                arguments["cause"], actor, None if arguments["back"] else arguments["minutes"]
            )
        if name == "alarm_test":
            return self.telling.test_alarm(arguments["rule"], actor)
        if name == "note":
            number = arguments.get("run") or (self.run.number if self.run else None)
            await self.writer.note(number, actor, arguments["text"])
            return {"run": number} if number else {}
        if name in ("quality", "taint"):
            return await getattr(judgements, name)(self, arguments, actor)
        if name not in BODIES:
            raise Refused("control.unknown_command", f"there is no command `{name}`", "")
        await self.look()
        if refusal := self.refusals(overrides=arguments.get("set") or self.launching.lines)[name]:
            possible = refusals.allowed(self.refusals())
            raise Refused(
                "control.busy" if self.acts.refusal(name) else "control.not_now",
                f"`{name}` is refused: {refusal}",
                f"possible now: {', '.join(possible)}" if possible else "",
            )
        still()
        if name in ("launch", "recover", "abort", "close"):
            self._failed_rules.clear()
        LOG.info("%s by %s", name, actor, extra=FOR_OPERATORS)
        result = await self.acts.do(
            name,
            actor,
            self.limit_of(name),
            lambda act: BODIES[name](self, act, arguments),
            may_be_overtaken_by=refusals.overtaken_by(name),
        )
        LOG.info("%s by %s is done", name, actor, extra=FOR_OPERATORS)
        return result

    def refusals(self, overrides=False):
        """Returns {command: why it is refused now, or None}. `overrides`: a launch has other settings than the last one, and restarts the processes that use
        them."""
        return refusals.refusals(
            self.derived,
            run=self.run and self.run.row(),
            act=self.act(),
            memory=self.memory,
            overrides=bool(overrides),
            run_numbers=self.telling.run_numbers(),
            disk_free_bytes=self.disk and self.disk.get("free"),
            disk_stop_bytes=self.system.disk_stop_bytes,
            disk_seconds_left=None,
            disk_time_s=self.system.disk_time_s,
            alarms=self.telling.book.standing(),
            clocks=self.host_looks.clock_offsets(),
            clock_limit_s=self.system.rules["clock"].limit if self.system.rules["clock"].enabled else None,
        )

    def limit_of(self, name):
        """Returns the seconds after which an act is OVERDUE."""
        classes = self.system.classes
        launch_s = max((one.launch_limit_s for one in classes), default=60.0)
        return {
            "launch": launch_s,
            "start": max((one.start_limit_s for one in classes), default=10.0) + self.system.event_limit_s,
            "pause": 2.0,
            "resume": 2.0,
            "advance": 2.0,
            "go_on": 10.0,
            "stop": max((one.stop_limit_s for one in classes), default=60.0),
            "abort": 30.0,
            "recover": 60.0,
            "close": 30.0,
        }[name] * self.patience

    # Kept facts
    async def keep_memory(self, memory):
        """Keeps the facts that cannot be derived, here and in the database."""
        before, self.memory = self.memory, memory
        if before.as_json() != memory.as_json():
            await self._remember("memory", memory.as_json())

    async def remember(self, *, wanted, clear=False):
        """Remembers what the holder wants; `clear` forgets the choices made for a run."""
        kept = (
            snapshots.Memory(wanted=wanted, restarts=self.memory.restarts)
            if clear
            else snapshots.Memory(**{**self.memory.__dict__, "wanted": wanted})
        )
        await self.keep_memory(kept)

    async def keep_run(self, *, flags=(), **changes):
        """Changes the facts about the open run, here and in the database."""
        if self.run is None:
            return
        for name, value in changes.items():
            setattr(self.run, name, value)
        self.run.flags |= set(flags)
        await self._remember("run", self.run.as_json())
        self.derive()

    async def forget_run(self):
        self.run = None
        await self._remember("run", None)
        self.derive()

    async def keep_launched(self):
        """Remembers what processes reported when ready, so that the next controller recognizes them."""
        await self._remember(
            "launched",
            {
                "lines": [[name, values] for name, values in self.launching.lines.items()],
                "processes": {
                    each.name: {
                        "pid": each.remembered[0] if each.pid is None else each.pid,
                        "sha256": each.expected_sha256 or each.remembered[1],
                        "writers": each.writers,
                        "settings": each.settings,
                    }
                    for each in self.observer.members.values()
                    if each.alive is not False
                },
            },
        )

    async def remember_shelf(self, shelf):
        await self._remember("shelf", shelf or None)

    async def _remember(self, key, value):
        """Remembers a fact. Without the database the controller continues, with the fact in memory only."""
        text = json.dumps(value, sort_keys=True)
        if self._remembered.get(key) == text:
            return
        try:
            await self.writer.remember(key, value)
            self._remembered[key] = text
        except Refused as refused:
            LOG.warning("%s was not remembered: %s", key, refused.what)

    async def transition(self, act, name, from_, to, began_ns, outcome, detail, run=None):
        """Writes a row for a step of a run."""
        number = run or (self.run.number if self.run else None)
        if number is None:
            return
        with contextlib.suppress(Refused):
            await self.writer.transition(number, name, from_, to, act.actor, began_ns, time.time_ns(), outcome, detail)

    # Of the system
    def too_few(self, missing):
        """Returns those of `missing` whose class has too few good processes without them."""
        names = []
        for one in self.system.classes:
            members = [member.name for member in one.members()]
            bad = [
                name
                for name in members
                if name in missing or self.observer.members[name].phase in ("failed", "absent", "lost")
            ]
            if len(members) - len(bad) < one.needed:
                names += [name for name in bad if name in missing]
        return names

    def foreign(self):
        """Returns the names of processes that do not belong to this system or this run."""
        return {sentence.split(" ", 1)[0] for sentence in self.derived.foreign}

    async def end_strangers(self):
        """Ends processes that another system file of this name has launched. Returns the remaining ones."""
        left = []
        for name in self.observer.strangers:
            for host in self.hosts.values():
                try:
                    if any(each.name == name for each in await host.list()):
                        await host.end(name, 5.0)
                        await host.forget(name)
                except Refused as refused:
                    left.append(f"{name} ({refused.what})")
        return left

    # For the server
    def publish(self):
        """Publishes a new document, from the last look and the current act."""
        self.derive()
        self.telling.publish()

    def document(self):
        return self.telling.document

    async def wait_change(self, sequence):
        await self.telling.wait_change(sequence)

    def set_lease(self, lease):
        self.telling.lease = lease
        self.publish()

    def series(self, names, span_s):
        return self.telling.series.get(names, span_s)

    def metrics(self):
        """Returns the room's metrics for Prometheus (state/room_metrics.py)."""
        return self.telling.metrics()

    def rules(self):
        """Returns the alarm rules, built-in ones first."""
        return [rule_as_json(rule) for rule in self.system.rules]

    async def links(self, process):
        return self.telling.links(process)

    async def log_lines(self, process, **wanted):
        return await self.logs.lines(process, **wanted)

    async def configuration(self):
        return await self.telling.configuration()

    # Of a run: run/closing.py
    async def open_run(self, act, arguments, readouts):
        return await self.closing.open_run(act, arguments, readouts)

    async def close_books(self, act, state, aborted):
        return await self.closing.close_books(act, state, aborted)

    def links_brought_by(self, name):
        return self.closing.router_links.get(name, set())


class Unnoticed:
    """Replaces an act while an automatic step waits beside the current act."""

    waiting_for = ()
    sealed = False

    def check(self):
        """Returns at once, because no command may interrupt this wait."""
