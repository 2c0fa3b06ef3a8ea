"""The controller of a system: looks at every process each second, derives the state, does what happens by itself, and carries out commands.

One asyncio loop owns all of it. Nothing is held in it that the next controller could not find again: processes, the open row, and a few
remembered facts. If it is killed, data go on."""

import asyncio
import contextlib
import inspect
import json
import logging
import os
import time

from rodeo.control import adopt, derive, judging, looks, place, reactions, refusals, run_transitions, talk, transitions
from rodeo.control.acts import Acts, cancelled
from rodeo.control.disks import Folders
from rodeo.control.externals import Externals
from rodeo.control.host_looks import HostLooks
from rodeo.control.hosts import hosts_of
from rodeo.control.launching import Late, Launching
from rodeo.control.logs import Logs
from rodeo.control.observing import POLL_S, Observer
from rodeo.control.refused import Refused
from rodeo.control.rules import as_json as rule_as_json
from rodeo.control.run_closing import Closing
from rodeo.control.telling import Telling
from rodeo.control.trigger import Trigger

LOG = logging.getLogger("rodeo.control")
LOOK_S = 0.9  # how often all processes are asked: with the way to a page, what it shows is less than a second old
SHORTEST_S = 0.05  # between two looks, however long they take
LIST_S = 0.25  # how often launchers are asked who lives: a process that dies is known that soon
FOR_OPERATORS = {"audience": "operator"}  # of a log line
BACK_OFF_S = (2.0, 10.0, 60.0)  # of a rule that could not do what it had to

BODIES = {
    "launch": transitions.launch, "close": transitions.close, "abort": transitions.abort, "recover": transitions.recover, "start": run_transitions.start,
    "pause": run_transitions.pause, "resume": run_transitions.resume, "advance": run_transitions.advance, "go_on": run_transitions.go_on, "stop": run_transitions.stop,
}
# Which commands may take the place of one that is under way: whoever wants to stop need not wait for what waits itself.
OVERTAKEN_BY = {"launch": ("abort",), "start": ("stop", "abort"), "stop": ("abort",), "pause": ("stop", "abort"), "resume": ("stop", "abort"), "advance": ("stop", "abort"),
                "go_on": ("stop", "abort"), "recover": ("abort",), "close": ("abort",), "abort": ()}


class Controller:
    """`system` as system.load() gives it. `hosts` {name: Host} and `database` are made from it if they are not given; `patience` stretches all that is
    decided by silence, for slow machines (else $RODEO_CONTROL_PATIENCE, else control.patience)."""

    def __init__(self, system, *, rodeo=None, hosts=None, database=None, patience=None):
        self.system = system
        self.rodeo = rodeo or place.rodeo_command()
        self.patience = patience or float(os.environ.get("RODEO_CONTROL_PATIENCE") or system.patience)
        self.hosts = hosts or hosts_of(system, self.patience)
        self.database = database or adopt.database_of(system)
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
        self.memory = looks.Memory()
        self.run = None
        self.derived = derive.derive(self.observer.looks())
        self.disk = None
        self._remembered = {}
        self._tasks = set()
        self._keeping = None  # the task of _keep(), one at a time
        self._failed_rules = {}  # kind -> (how often in a row, when it may be tried again)

    # Life
    async def open(self):
        """Finds what is there, adopts it, and begins to look. Refused if the directory, the database or a host cannot be used."""
        await asyncio.to_thread(self.folders.make)
        await self.database.open()
        for opened in await asyncio.gather(*(host.open() for host in self.hosts.values()), return_exceptions=True):  # one that is silent takes half a minute
            if isinstance(opened, BaseException):
                raise opened
        await adopt.adopt(self)
        self.evaluate()
        self.publish()
        self._spawn(self._watch())
        self._spawn(self._watch_disk())
        self._spawn(self.host_looks.watch())
        self._spawn(self.externals.watch())

    async def close(self):
        """Leaves; processes go on. What is under way is left at once, and the next controller finishes it."""
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
        """All processes on a beat of LOOK_S, more often who lives."""
        next_s = 0.0
        while True:
            try:
                now_s = time.monotonic()
                whole = now_s >= next_s
                if whole:
                    next_s = max(next_s, now_s - LOOK_S) + LOOK_S  # a beat that was missed is not made up for
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
                LOG.exception("looking at the processes")
            await asyncio.sleep(max(SHORTEST_S, min(LIST_S, next_s - time.monotonic())))

    async def _keep(self):
        """What looks have shown, onto the disk; they do not wait for it."""
        await self._remember("memory", self.memory.as_json())
        await self.telling.keep()
        await self.closing.keep_blocks()

    async def _watch_disk(self):
        """By itself, for a disk that hangs must not keep the processes from being looked at."""
        host = self.hosts.get("local") or next(iter(self.hosts.values()))
        while True:
            try:
                self.disk = await host.disk(str(self.folders.runs))
            except Refused:
                self.disk = None
            await asyncio.sleep(POLL_S)

    async def look(self):
        """A look at everything, now, and what follows from it."""
        await self.observer.look()
        self.derive()

    async def until(self, act, done, *, limit_s=None, what="{1}"):
        """Looks until `done()` (which may be asynchronous) is true. Late after `limit_s`; left if another command takes the place of this act."""
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
        """The state, from the last look."""
        talk.set_run(self.run.number if self.run else None)
        self.looks = self.observer.looks()
        self.derived = derive.derive(self.looks, self.run and self.run.row(), self.act(), self.memory,
                                     silent_hosts=tuple(self.observer.silent_hosts), strangers=self.observer.strangers)

    def evaluate(self, changed=False, fresh=False):
        """The state, the numbers and the alarms, from the last look. `changed`: a process has begun or ended, so that alarms are looked at now. `fresh`: numbers
        are of this look, however near the last one is."""
        self.derive()
        self.telling.evaluate(changed, fresh)

    def act(self):
        """What is under way, as the deciding modules are given it."""
        act = self.acts.now
        return act and looks.Act(act.name, act.actor, max(0.0, time.monotonic() - act.began_s), act.limit_s, act.began_ns)

    # What happens by itself
    async def _react(self):
        now_s, numbers = time.monotonic(), self.telling.numbers or {}
        disk = reactions.Disk(self.disk and self.disk.get("free"), numbers.get("disk_seconds_left"), self.system.disk_stop_bytes, self.system.disk_time_s)
        todo, self.memory = reactions.react(self.derived, self.looks, run=self.run and self.run.row(), act=self.act(), memory=self.memory, now_s=now_s,
                                       choose_limit_s=self.system.choose_limit_s, disk=disk)
        for each in sorted(todo, key=lambda one: one.kind != "hold"):  # the trigger waits for nothing
            try:
                await self._do_by_rule(each)
            except Refused as refused:
                LOG.warning("%s by rule: %s", each.kind, refused.what)
        if self.derived.state == "RUNNING" and self.derived.degraded and not self.derived.broken and self.acts.now is None and self.trigger.waits():
            with contextlib.suppress(Refused):  # for one that may be missing nobody waits
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
            await asyncio.sleep(0)  # it takes its place before anything else is decided

    async def _act_by_rule(self, reaction):
        bodies = {
            "stop": ("stop", lambda act: run_transitions.stop(self, act, {"reason": reaction.why, "flags": reaction.flags})),
            "undo_start": ("stop", lambda act: run_transitions.undo(self, act, reaction.why)),
            "relaunch": ("launch", lambda act: run_transitions.relaunch(self, act)),
            "close": ("close", lambda act: transitions.close(self, act, {})),
        }
        name, body = bodies[reaction.kind]
        if name == "stop" and self.run is not None and self.run.aborting:  # the controller that began the abort was killed in it
            name, body = "abort", lambda act: transitions.abort(self, act, {})
        try:
            await self.acts.do(name, "rule", self.limit_of(name), body, may_be_overtaken_by=OVERTAKEN_BY[name])
        except Refused as refused:
            times = self._failed_rules.get(reaction.kind, (0, 0.0))[0]
            self._failed_rules[reaction.kind] = (times + 1, time.monotonic() + BACK_OFF_S[min(times, len(BACK_OFF_S) - 1)])
            await self._say(reaction, "refused", refused.what)
            return
        self._failed_rules.pop(reaction.kind, None)
        await self._say(reaction)

    async def _restart(self, reaction):
        """One life more of a process that failed. It joins the run that is open, if it lives one run."""
        each, run = self.observer.members[reaction.process], self.run
        outcome, detail = "done", reaction.why
        try:
            await self.launching.prepare([each.member])
            if not await self.launching.launch(each.name, wanted=lambda: self.acts.now is None and self.run is run and self.memory.wanted != "off"):
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
        """What was done by itself stands in the audit beside what people did."""
        LOG.info("%s by rule: %s %s %s", reaction.kind, reaction.process or "", reaction.why, "" if outcome == "done" else f"({outcome}: {detail})", extra=FOR_OPERATORS)
        with contextlib.suppress(Refused):
            await self.writer.audit("rule", "rule", "rule", reaction.kind, {"process": reaction.process} if reaction.process else {}, outcome, detail or reaction.why)

    # Commands
    async def command(self, name, arguments, actor, still=lambda: None):
        """Carries out a command and returns a small JSON object. Refused: control.busy, control.not_now, or what the command says. It goes on to its end
        if whoever sent it goes away. `still()` raises Refused if they may not any more: asked after the look, before anything is done."""
        if name == "ack":
            return await self.telling.acknowledge(arguments["cause"], actor)
        if name == "shelve":
            return await self.telling.shelve(arguments["cause"], actor, None if arguments["back"] else arguments["minutes"])
        if name == "alarm_test":
            return self.telling.test_alarm(arguments["rule"], actor)
        if name == "note":
            number = arguments.get("run") or (self.run.number if self.run else None)
            await self.writer.note(number, actor, arguments["text"])
            return {"run": number} if number else {}
        if name in ("quality", "taint"):
            return await getattr(judging, name)(self, arguments, actor)
        if name not in BODIES:
            raise Refused("control.unknown_command", f"there is no command `{name}`", "")
        await self.look()
        if refusal := self.refusal(name, arguments):
            possible = refusals.allowed(self.refusals())
            raise Refused("control.busy" if self.acts.refusal(name) else "control.not_now", f"`{name}` is refused: {refusal}",
                          f"possible now: {', '.join(possible)}" if possible else "")
        still()
        if name in ("launch", "recover", "abort", "close"):
            self._failed_rules.clear()
        LOG.info("%s by %s", name, actor, extra=FOR_OPERATORS)
        result = await self.acts.do(name, actor, self.limit_of(name), lambda act: BODIES[name](self, act, arguments), may_be_overtaken_by=OVERTAKEN_BY[name])
        LOG.info("%s by %s is done", name, actor, extra=FOR_OPERATORS)
        return result

    def refusals(self):
        """{command: why not now, or None}."""
        answer = refusals.refusals(
            self.derived, run=self.run and self.run.row(), act=self.act(), memory=self.memory, database_good=self.telling.database_good(),
            disk_free_bytes=self.disk and self.disk.get("free"), disk_stop_bytes=self.system.disk_stop_bytes,
            disk_seconds_left=None, disk_time_s=self.system.disk_time_s, alarms=self.telling.book.standing(),
            clocks=self.host_looks.off_by(), clock_limit_s=self.system.rules["clock"].limit if self.system.rules["clock"].enabled else None)
        if self.derived.state == "READY" and self.acts.now is None and self.run is None and self.derived.degraded:
            answer["launch"] = None  # what is missing
        return answer

    def refusal(self, name, arguments):
        """Why a command is refused now, or None. A launch with other settings is possible between runs: what it changes is started anew."""
        if name == "launch" and (arguments.get("set") or self.launching.lines) and self.derived.state == "READY" and self.acts.now is None and self.run is None:
            return None
        return self.refusals().get(name)

    def limit_of(self, name):
        """Seconds after which an act is OVERDUE."""
        classes = self.system.classes
        launch_s = max((one.launch_limit_s for one in classes), default=60.0)
        return {"launch": launch_s, "start": max((one.start_limit_s for one in classes), default=10.0) + self.system.event_limit_s, "pause": 2.0, "resume": 2.0, "advance": 2.0,
                "go_on": 10.0, "stop": max((one.stop_limit_s for one in classes), default=60.0), "abort": 30.0, "recover": 60.0, "close": 30.0}[name] * self.patience

    # What is kept
    async def keep_memory(self, memory):
        """The facts that cannot be derived, here and in the database."""
        before, self.memory = self.memory, memory
        if before.as_json() != memory.as_json():
            await self._remember("memory", memory.as_json())

    async def remember(self, *, wanted, clear=False):
        """What the holder wants; `clear` forgets what was chosen for a run."""
        kept = looks.Memory(wanted=wanted, restarts=self.memory.restarts) if clear else looks.Memory(**{**self.memory.__dict__, "wanted": wanted})
        await self.keep_memory(kept)

    async def keep_run(self, *, flags=(), **changes):
        """Changes what is known of the open run, here and in the database."""
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
        """What processes said of themselves when they were ready, so that the next controller knows whether they are these."""
        await self._remember("launched", {
            "lines": [[name, values] for name, values in self.launching.lines.items()],
            "processes": {each.name: {"pid": each.remembered[0] if each.pid is None else each.pid, "sha256": each.expected_sha256 or each.remembered[1], "writers": each.writers,
                                      "settings": each.settings} for each in self.observer.members.values() if each.alive is not False}})

    async def remember_shelf(self, shelf):
        await self._remember("shelf", shelf or None)

    async def _remember(self, key, value):
        """A database that is gone is no reason to stop: what it does not have, this controller has."""
        text = json.dumps(value, sort_keys=True)
        if self._remembered.get(key) == text:
            return
        try:
            await self.writer.remember(key, value)
            self._remembered[key] = text
        except Refused as refused:
            LOG.warning("%s was not remembered: %s", key, refused.what)

    async def transition(self, act, name, from_, to, began_ns, outcome, detail, run=None):
        """A row of what was done in a run."""
        number = run or (self.run.number if self.run else None)
        if number is None:
            return
        with contextlib.suppress(Refused):
            await self.writer.transition(number, name, from_, to, act.actor, began_ns, time.time_ns(), outcome, detail)

    # Of the system
    def too_few(self, missing):
        """Names of `missing` that leave their class with too few processes that are good."""
        names = []
        for one in self.system.classes:
            members = [member.name for member in one.members()]
            bad = [name for name in members if name in missing or self.observer.members[name].phase in ("failed", "absent", "lost")]
            if len(members) - len(bad) < one.needed:
                names += [name for name in bad if name in missing]
        return names

    def foreign(self):
        """Names of processes that are not this system's or this run's."""
        return {sentence.split(" ", 1)[0] for sentence in self.derived.foreign}

    async def end_strangers(self):
        """Ends what a launcher has of another system file of this name. Returns what stays."""
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
        """A new document, of the last look and of what is under way now."""
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
        """What the room knows, for Prometheus (room_metrics.py)."""
        return self.telling.metrics()

    def rules(self):
        """The alarm rules, built-in ones first."""
        return [rule_as_json(rule) for rule in self.system.rules]

    async def links(self, process):
        return self.telling.links(process)

    async def log_lines(self, process, **wanted):
        return await self.logs.lines(process, **wanted)

    async def configuration(self):
        return await self.telling.configuration()

    # Of a run: run_closing.py
    async def open_run(self, act, arguments, readouts):
        return await self.closing.open_run(act, arguments, readouts)

    async def close_books(self, act, state, aborted):
        return await self.closing.close_books(act, state, aborted)

    def links_brought_by(self, name):
        return self.closing.router_links.get(name, set())


class Unnoticed:
    """Stands for an act where a rule waits beside the act that is under way."""

    waiting_for = ()
    sealed = False

    def check(self):
        """Nobody takes its place."""
