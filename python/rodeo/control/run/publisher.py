"""The controller's output: metrics, alarms and time series from its last looks, and the document for all clients."""

import asyncio
import contextlib
import logging
import time
from dataclasses import replace

from rodeo.control.refused import Refused
from rodeo.control.run import event_files
from rodeo.control.state import alarms, commands, conditions, document, headline, numbers, room_metrics
from rodeo.control.state.series import Series
from rodeo.control.state.snapshots import RunRow
from rodeo.control.state.system_rules import Watch

LOG = logging.getLogger("rodeo.control")
MOST_SHELVED_MIN = 24 * 60
EXTERNALS_NS = 60 * 10**9


def whom(waiting_for, phases, unsafe=None):
    """Returns the processes that an act waits for, as texts "name: phase". Processes that do not answer come first, and recorders with `unsafe` {name:
    events not yet on disk}, because others may wait for them."""
    named = {each.split(":")[0] for each in waiting_for}
    first = {name: "lost" for name, phase in phases.items() if phase == "lost"}
    first = {**{name: f"{count} events are not safe yet" for name, count in (unsafe or {}).items()}, **first}
    return (*(f"{name}: {why}" for name, why in first.items() if name not in named), *waiting_for)


class Telling:
    """The controller's loop uses it; `c` is the controller."""

    def __init__(self, c):
        self.c = c
        self.lease = None
        self.book = alarms.Book()
        self.watch = Watch(c.system.rules)
        self._kept_externals = None  # (run, time)
        self._tests = {}  # rule -> (user, end of the test)
        self.series = Series()
        self.last_run = None
        self.numbers, self.process_numbers, self.all_links, self._limited = {}, {}, None, None
        self.document = {"sequence": 0, "time_ns": time.time_ns()}
        self._sequence = 0
        self._state, self._since_ns = None, time.time_ns()
        self._changed = asyncio.Event()
        self._before = self._moment = None
        self._meter, self._flow = headline.FlowMeter(), headline.Flow()
        self._trouble = headline.Trouble()
        self._happened = []
        self.left_open = {}  # {path: sentence} of `.writing` files of the last run that still exist

    def run_numbers(self):
        """Returns how many run numbers are left, or None without a server."""
        return self._database()["run_numbers"]

    def _database(self):
        health = self.c.writer.health()
        return {
            "state": health.get("state", "gone"),
            "journal": health.get("journal", 0),
            "run_numbers": health.get("run_numbers"),
        }

    def evaluate(self, changed=False, fresh=False):
        """Computes metrics from the last two looks that are far enough apart, then rings and alarms. `changed`: a process has begun or ended, so evaluates
        alarms at once, because a restart may hide the end before the next look. `fresh`: uses this look, even shortly after the last one."""
        c, now_s = self.c, time.monotonic()
        members = c.observer.members.values()
        moment = numbers.Moment(
            now_s,
            {each.name: (each.member.kind, each.status if each.alive is not False else None) for each in members},
            c.disk and c.disk.get("free"),
            {each.name: each.answered_s for each in members if each.answered_s is not None},
            c.derived.left_out,
        )
        far = self._moment is None or now_s - self._moment.time_s >= numbers.LEAST_SECONDS
        if far or fresh:
            self._before, self._moment = self._moment if far else self._before, moment
            self.numbers = numbers.numbers(self._before, moment, cards_at_start=c.run.cards_before if c.run else None)
            self.process_numbers = {name: numbers.of_process(name, self._before, moment) for name in c.observer.members}
            self._limited = numbers.limited_by(self._before, moment)
            running = c.derived.state == "RUNNING"
            self._flow = (
                self._meter.update(now_s, self.numbers, self._before, moment) if running else self._meter_anew()
            )
            self.all_links = numbers.links_of(moment, self._flow.silent)
            self.series.add(now_s, self._points())
            changed = True
        if changed:
            self._alarms(now_s)

    def _meter_anew(self):
        self._meter = headline.FlowMeter()
        return headline.Flow()

    def _judged(self, derived):
        """Returns (the first cause, the headline) of this state and the last numbers."""
        c, flow, rules = self.c, self._flow, self.c.system.rules
        limits = {"partial_limit_ppm": rules["partial"].limit, "dead_time_limit": rules["dead_time"].limit}
        cause = headline.first_cause(
            derived,
            c.looks,
            self._limited,
            run=c.run,
            standing=headline.troubled(flow, **limits),
            stalled=flow.stalled,
            lost=headline.loss(flow, rules["partial"].limit),
        )
        return cause, headline.headline(
            derived, flow, cause, run=c.run, incomplete_limit_ppm=rules["incomplete"].limit, **limits
        )

    def _alarms(self, now_s):
        c, database = self.c, self._database()
        derived = self._derived()
        cause, said = self._judged(derived)
        if c.run is not None:
            c.run.trouble = self._trouble.update(now_s, said, c.run.trouble)
        if c.run is not None and c.run.stopping:  # processes end because the run stops
            derived = replace(derived, ended=())
        running = c.run is not None and derived.state == "RUNNING"
        self.watch.update(
            now_s,
            running=running,
            numbers=self.numbers,
            looks=c.looks,
            phases=derived.phases,
            left_out=derived.left_out,
            process_numbers=self.process_numbers,
            externals=c.externals.by_name,
        )
        self._tests = {name: one for name, one in self._tests.items() if one[1] > now_s}
        found = conditions.conditions(
            derived,
            c.looks,
            self.numbers,
            run=c.run and c.run.row(),
            act=c.act(),
            memory=c.memory,
            now_s=now_s,
            process_numbers=self.process_numbers,
            known=self.book.known,
            limited_by=cause,
            flow=self._flow,
            headline=said,
            links=self.all_links,
            silent_hosts=tuple(c.observer.silent_hosts),
            database_good=database["state"] == "good",
            journal=database["journal"],
            run_numbers=database["run_numbers"],
            disk_warn_bytes=c.system.disk_warn_bytes,
            disk_stop_bytes=c.system.disk_stop_bytes,
            disk_time_s=c.system.disk_time_s,
            clocks=c.host_looks.clock_offsets(),
            temperatures=c.host_looks.temperatures,
            externals=c.externals.by_name.values(),
            left_open={event_files.name_of(path): said for path, said in self.left_open.items()},
            watch=self.watch,
            tests=[(name, who) for name, (who, _) in self._tests.items()],
            rules=c.system.rules,
        )
        found = [
            each
            for each in found
            if not (
                each.process
                and each.cause.startswith("process.failed:")
                and c.observer.members[each.process].ended_here
            )
        ]
        self.book.learn(c.derived, self.process_numbers)
        happened = self.book.evaluate(found, time.time_ns())
        self._happened += [alarm for _, alarm in happened]
        for kind, alarm in happened:
            if kind == "raised":
                LOG.log(
                    logging.ERROR if alarm.severity == "alarm" else logging.WARNING,
                    "%s",
                    alarm.what,
                    extra={"fields": {"alarm": alarm.cause, "do": alarm.do}},
                )

    def _points(self):
        """Returns values for the rings: those of the system by name, those of a process as NAME.metric."""
        points = {
            name: value
            for name, value in self.numbers.items()
            if isinstance(value, (int, float)) and not isinstance(value, bool)
        }
        for name, values in self.process_numbers.items():
            points.update({f"{name}.{key}": value for key, value in values.items()})
        for look in self.c.looks:
            points[f"{look.name}.cpu"], points[f"{look.name}.rss_bytes"] = look.cpu, look.rss_bytes
        points.update(
            {
                f"lost.{reason}": count
                for reason, count in ((self.numbers.get("chunks") or {}).get("lost") or {}).items()
            }
        )
        points.update(
            {
                f"rule.{one.rule.name}" + (f".{one.subject}" if one.subject else ""): one.value
                for one in self.watch.found
            }
        )
        for external in self.c.externals.by_name.values():
            points.update({f"{external.name}.{name}": value for name, value in external.kept().items()})
        return points

    async def keep(self):
        """Writes changes of alarms since the last call to the database."""
        happened = bool(self._happened)
        while self._happened:
            await self._write(self._happened.pop(0))
        if happened:
            await self.c.remember_shelf(self.book.shelf())
        await self.keep_externals()

    async def keep_externals(self, now_ns=None):
        """Stores values of external programs with the run: at its begin, each minute, and when it is closed (`now_ns` given)."""
        c, run = self.c, self.c.run
        if run is None:
            self._kept_externals = None
            return
        when_ns = now_ns or time.time_ns()
        if (
            now_ns is None
            and self._kept_externals is not None
            and self._kept_externals[0] == run.number
            and when_ns - self._kept_externals[1] < EXTERNALS_NS
        ):
            return
        self._kept_externals = (run.number, when_ns)
        for external in c.externals.by_name.values():
            if values := external.kept():
                with contextlib.suppress(Refused):
                    await c.writer.counters(run.number, external.name, values, when_ns)

    async def _write(self, alarm):
        try:
            await self.c.writer.alarm(alarm.as_json(), self.c.run.number if self.c.run else None)
        except Refused as refused:
            LOG.warning("alarm %s was not stored: %s", alarm.cause, refused.what)

    async def acknowledge(self, cause, actor):
        alarm = self.book.acknowledge(cause, actor, time.time_ns())
        await self._write(alarm)
        self.publish()
        return {"cause": cause}

    async def shelve(self, cause, actor, minutes):
        now_ns = time.time_ns()
        until_ns = None if minutes is None else now_ns + min(minutes, MOST_SHELVED_MIN) * 60 * 10**9
        await self._write(self.book.shelve(cause, actor, until_ns, now_ns))
        await self.c.remember_shelf(self.book.shelf())
        self.publish()
        return {"cause": cause, "until_ns": until_ns}

    def test_alarm(self, name, actor):
        rules = self.c.system.rules
        if name not in rules.by_name:
            near = commands.nearest(name, rules.by_name)
            raise Refused(
                "control.no_rule",
                f"there is no alarm rule `{name[:40]}`",
                f"did you mean `{near}`?" if near else "rodeo control alarms --rules lists them",
            )
        now_s = time.monotonic()
        self._tests[name] = (actor, now_s + conditions.TEST_S)
        self._alarms(now_s)
        self.publish()
        return {"cause": f"test:{name}"}

    def metrics(self):
        c = self.c
        return room_metrics.text(
            self.document,
            rules=c.system.rules,
            found=self.watch.found,
            gone=[one for one in self.watch.found if self.watch.is_gone(one)],
            clocks=c.host_looks.clock_offsets(),
            temperatures=c.host_looks.temperatures,
            system=c.system,
            left_out=self.book.left_out,
        )

    async def find_left_open(self):
        """Finds the files that the last run left open, if another controller closed this run. Standing alarms have the sentences of these files."""
        if self.c.run is not None or self.last_run is None:
            return
        number, said = self.last_run.number, {alarm.cause: alarm.what for alarm in self.book.standing()}
        try:
            paths = await asyncio.to_thread(event_files.open_in, self.c.folders.run(number))
        except OSError as error:
            LOG.warning("files of run %d: %s", number, error)
            return
        for path in paths:
            name = event_files.name_of(path)
            self.left_open[path] = said.get(f"file.left_open:{name}", f"{name} of run {number} was left open")

    async def look_at_left_open(self):
        """Forgets files that are no longer there."""
        if not (before := self.left_open):
            return
        still = await asyncio.to_thread(event_files.still_open, dict(before))
        for path in before.keys() - still.keys():
            del before[path]

    def closed(self, run, condition, flags, reason, state):
        """Sets the last run of the document."""
        row = run.row()
        self.last_run = RunRow(
            **{**row.__dict__, "condition": condition, "flags": tuple(flags), "reason": reason, "state": state}
        )

    def _derived(self):
        """Returns the derived state, with the processes that the current act waits for."""
        act, derived = self.c.acts.now, self.c.derived
        if act is None or not act.waiting_for:
            return derived
        recorders = [each for each in self.c.observer.members.values() if each.member.kind == "recorder" and each.alive]
        unsafe = (
            {each.name: count for each in recorders if (count := numbers.value(each.status or {}, "events", "waiting"))}
            if act.name == "stop"
            else {}
        )
        return replace(derived, waiting_for=whom(act.waiting_for, derived.phases, unsafe)[:32])

    def publish(self):
        """Publishes a new document if its contents have changed, besides sequence and time, or if the last document is 0.9 s old."""
        c, now_ns = self.c, time.time_ns()
        if c.derived.state != self._state:
            self._state, self._since_ns = c.derived.state, now_ns
        derived = self._derived()
        cause, said = self._judged(derived)  # the state may have changed since the last look
        built = document.build(
            sequence=self._sequence + 1,
            time_ns=now_ns,
            system=c.system,
            build=self._build(),
            derived=derived,
            since_ns=self._since_ns,
            looks=c.looks,
            run=c.run and c.run.row(),
            act=c.act(),
            memory=c.memory,
            last_run=self.last_run,
            numbers=self.numbers,
            process_numbers=self.process_numbers,
            limited_by=cause,
            headline=said,
            links=self.all_links,
            alarms=self.book.standing(),
            lease=self.lease,
            refusals=c.refusals(),
            hosts=self._hosts(),
            database=self._database(),
            externals=[each.as_json() for each in c.externals.by_name.values()],
            now_s=time.monotonic(),
        )
        same = {**built, "sequence": self.document["sequence"], "time_ns": self.document["time_ns"]} == self.document
        if same and now_ns - self.document["time_ns"] < 900_000_000:
            return
        self._sequence += 1
        self.document = built
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()

    async def wait_change(self, sequence):
        """Returns when the document has another sequence."""
        while self.document["sequence"] == sequence:
            await self._changed.wait()

    def _build(self):
        return next((look.build for look in self.c.looks if look.build), None)

    def _hosts(self):
        observer, disk = self.c.observer, self.c.disk or {}
        return [
            {
                "name": name,
                "launcher": host.launcher,
                "state": "silent" if name in observer.silent_hosts else "good",
                "seen_ns": observer.host_seen_ns.get(name),
                "clock_offset_s": (self.c.host_looks.offsets.get(name) or (None,))[0],
                "temperature": max((self.c.host_looks.temperatures.get(name) or {}).values(), default=None),
                "disk_free_bytes": disk.get("free") if name == "local" else None,
                "disk_total_bytes": disk.get("total") if name == "local" else None,
            }
            for name, host in self.c.hosts.items()
        ]

    # Answers for the page
    def links(self, process):
        """Returns all links, or those of one process, each with fid, name, state and counters."""
        return [
            {
                "process": each.name,
                **{
                    key: link.get(key)
                    for key in (
                        "fid",
                        "name",
                        "state",
                        "chunks",
                        "missing",
                        "left_out",
                        "bad",
                        "in_doubt",
                        "moved",
                        "out_of_step",
                        "bcid_offset",
                    )
                },
            }
            for each in self.c.observer.members.values()
            if each.member.kind == "readout" and process in ("", None, each.name)
            for rob in (each.status or {}).get("robs") or []
            for link in rob.get("links") or []
        ]

    async def configuration(self):
        """Returns the configuration of each class: its file's text, the effective values with their origins, the settings that override the file."""
        c = self.c
        return {
            "system": {"file": str(c.system.file), "text": c.system.public_text, "sha256": c.system.sha256},
            "classes": {name: found.as_json() for name, found in c.launching.configured.items()},
        }
