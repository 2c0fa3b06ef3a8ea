"""Alarm rules with their defaults, and how an alarm lives: raised, latched, acknowledged, cleared; one for each cause."""

from collections import deque
from dataclasses import dataclass, fields, replace

from .reactions import MOST_RESTARTS, given_up
from .refused import Refused

SEVERITIES = ("alarm", "warning")  # the worst first
MOST_STANDING = 500
EXPECTED = ("rate_hz", "events")  # of a process that runs and has said them once; others come and go with what it does


@dataclass(frozen=True)
class Limits:
    """What is too much, too little or too long."""

    dead_time_fraction: float = 0.05
    incomplete_ppm: float = 1000.0
    links: int = 16  # so many bad links are alarms of their own


@dataclass(frozen=True)
class Condition:
    """Something is not as it should be now. `cause` is its key. `needs` (n, m): it is raised when n of the last m evaluations had it, so that one that
    comes and goes is raised too; it is cleared when none of the last m had it."""

    cause: str
    severity: str
    what: str
    value: object = None
    limit: object = None
    do: str = ""
    process: str | None = None
    needs: tuple = (1, 1)


@dataclass(frozen=True)
class Alarm:
    """One that was raised. It stands until it is both cleared and acknowledged. Times are UTC, for display."""

    cause: str
    severity: str
    raised_ns: int
    what: str
    value: object = None
    limit: object = None
    do: str = ""
    process: str | None = None
    acked_by: str | None = None
    acked_ns: int | None = None
    cleared_ns: int | None = None

    def as_json(self):
        return {one.name: getattr(self, one.name) for one in fields(self)}

    @staticmethod
    def from_json(value):
        """What as_json wrote; None if it is nothing of the kind."""
        try:
            kept = {one.name: value[one.name] for one in fields(Alarm) if one.name in value}
            alarm = Alarm(**kept)
            good = isinstance(alarm.cause, str) and alarm.severity in SEVERITIES and isinstance(alarm.raised_ns, int) and isinstance(alarm.what, str)
            return alarm if good else None
        except TypeError:
            return None


def conditions(
    derived,
    looks,
    numbers=None,
    *,
    run=None,
    act=None,
    memory=None,
    now_s=0.0,
    process_numbers=None,
    known=frozenset(),
    limited_by=None,
    links=None,
    silent_hosts=(),
    database_good=True,
    journal=0,
    disk_warn_bytes=0,
    disk_stop_bytes=0,
    disk_time_s=0.0,
    limits=None,
):
    """All Conditions of this moment. Pure. `numbers`, `process_numbers` {name: numbers}, `limited_by` and `links` are the document's;
    `known`: (process, number) pairs that had a value before (Book.known)."""
    numbers, process_numbers, limits = numbers or {}, process_numbers or {}, limits or Limits()
    found = []
    found += _of_processes(derived, looks, run, memory, now_s)
    found += _of_hosts(silent_hosts, database_good, journal, derived, act)
    found += _of_the_disk(numbers, disk_warn_bytes, disk_stop_bytes, disk_time_s, run)
    found += _vanished(derived, process_numbers, known)
    if run is not None and derived.state == "RUNNING":
        found += _of_the_data(derived, looks, numbers, process_numbers, limited_by, limits)
    if run is not None:
        found += _of_links(links, limits)
    return tuple(sorted(found, key=lambda one: (SEVERITIES.index(one.severity), one.cause)))


_DO = {
    "emulator": "look at its log; in a run choose go_on or stop, then recover",
    "readout": "look at its log; go_on without its links, or stop the run",
    "router": "look at its log; its readouts get nothing: stop the run, then recover",
    "program": "look at its log",
}


def _of_processes(derived, looks, run, memory, now_s):
    for look in looks:
        phase, name = derived.phases.get(look.name), look.name
        needed = name in derived.broken
        severity = "alarm" if needed else "warning"
        reason = derived.broken.get(name) or derived.degraded.get(name) or f"is {phase}"
        do = _DO.get(look.member.kind, "look at its log")
        if phase == "failed":
            core = look.exit.core if look.exit else None
            yield Condition(f"process.failed:{name}", severity, f"{name} {reason}", do=f"core file {core}; {do}" if core else do, process=name)
            if memory is not None and look.member.process_class.restart != "never" and given_up(memory, name, now_s):
                yield Condition(
                    f"process.given_up:{name}",
                    "alarm",
                    f"{name} was restarted {MOST_RESTARTS} times in 10 min and failed again",
                    MOST_RESTARTS,
                    MOST_RESTARTS,
                    "find out why it fails; it is not restarted by itself now",
                    name,
                )
        elif phase == "lost":
            yield Condition(f"process.lost:{name}", severity, f"{name} {reason}", do=f"it may answer again; else {do}", process=name)
        elif name in derived.ended and not (run is not None and run.stopping):  # who was told to stop comes to its end
            yield Condition(f"process.ended:{name}", severity, f"{name} {reason}", do="stop the run, or go_on without it", process=name)
        if look.problems:
            yield Condition(
                f"process.status:{name}",
                "warning",
                f"{name}: its status is not understood: {look.problems[0]}",
                len(look.problems),
                0,
                "versions of the processes may differ; nothing is decided on what is not understood",
                name,
                (2, 3),
            )
    for sentence in derived.foreign:
        yield Condition("foreign:" + sentence.split(" ", 1)[0], "alarm", sentence, do="end what is not of this system, or abort; then recover")


def _of_hosts(silent_hosts, database_good, journal, derived, act):
    for host in silent_hosts:
        yield Condition(
            f"host.silent:{host}",
            "alarm",
            f"host {host} does not answer",
            do="nothing was ended: data may go on; look at the network and at the host",
            needs=(3, 3),
        )
    if not database_good:
        yield Condition(
            "database",
            "alarm",
            f"the run database is not there; {journal} records wait in the journal",
            journal,
            0,
            "a run goes on, none can be started; the journal is replayed when the database is back",
            needs=(2, 3),
        )
    if "OVERDUE" in derived.flags and act is not None:
        waits = ", ".join(derived.waiting_for[:3]) or "nothing that is known"
        yield Condition(
            f"overdue:{act.name}",
            "warning",
            f"{act.name} takes longer than {act.limit_s:g} s; it waits for {waits}",
            round(act.age_s),
            act.limit_s,
            "nothing is ended for that; wait, or abort",
        )


def _of_the_disk(numbers, warn_bytes, stop_bytes, time_s, run):
    free, left = numbers.get("disk_free_bytes"), numbers.get("disk_seconds_left")
    if free is not None and free < stop_bytes:
        yield Condition(
            "disk", "alarm", f"{free / 1e9:.2f} GB are free on the disk", free, stop_bytes, "move or remove data; runs stop in order and cannot start"
        )
    elif free is not None and free < warn_bytes:
        yield Condition("disk", "warning", f"{free / 1e9:.2f} GB are free on the disk", free, warn_bytes, "move or remove data")
    if run is not None and left is not None and left < 3 * time_s:
        yield Condition(
            "disk.time",
            "alarm" if left < time_s else "warning",
            f"the disk is full in {left:.0f} s",
            round(left),
            time_s,
            "move data; the run stops in order",
            needs=(2, 3),
        )


def _vanished(derived, process_numbers, known):
    for name, metric in sorted(known):
        if derived.phases.get(name) == "running" and process_numbers.get(name, {}).get(metric) is None:
            yield Condition(
                f"metric.gone:{name}:{metric}",
                "warning",
                f"{name} no longer says its {metric}",
                do="no data is not good data: look at its status and its log",
                process=name,
                needs=(3, 4),
            )


def _of_the_data(derived, looks, numbers, process_numbers, limited_by, limits):
    triggers, dead, ppm = numbers.get("trigger_rate_hz"), numbers.get("dead_time_fraction"), numbers.get("incomplete_ppm")
    if triggers == 0:
        yield Condition(
            "no_triggers",
            "warning",
            "no trigger is accepted, and triggers are not held",
            0,
            None,
            "is a card busy, or waited for? rodeo emulate status says so",
            needs=(10, 12),
        )
    for name in (look.name for look in looks if look.member.kind == "readout"):
        if triggers and derived.phases.get(name) == "running" and process_numbers.get(name, {}).get("rate_hz") == 0:
            yield Condition(
                f"stall:{name}",
                "alarm",
                f"{name} builds nothing, and triggers come with {triggers:.0f} Hz",
                0,
                triggers,
                "look at its links and its log",
                name,
                (5, 6),
            )
    if dead is not None and dead > limits.dead_time_fraction:
        yield Condition(
            "dead_time",
            "warning",
            f"{dead * 100:.1f} % of the triggers are lost to dead time",
            dead,
            limits.dead_time_fraction,
            "see what the run is limited by",
            needs=(5, 6),
        )
    if ppm is not None and ppm > limits.incomplete_ppm:
        yield Condition(
            "incomplete",
            "warning",
            f"{ppm:.0f} of a million fragments are incomplete",
            ppm,
            limits.incomplete_ppm,
            "see the worst links",
            needs=(3, 4),
        )
    if limited_by is not None:
        where = f"{limited_by['process']}: {limited_by['stage']}"
        yield Condition(
            f"back_pressure:{limited_by['process']}",
            "warning",
            f"data wait for {where}",
            do="give it more threads, a faster disk or less to do",
            process=limited_by["process"],
            needs=(8, 10),
        )


def _of_links(links, limits):
    for one in ((links or {}).get("bad") or ())[: limits.links]:
        if one.get("state") not in (None, "active"):
            yield Condition(
                f"link:{one['process']}:{one['fid']}",
                "warning",
                f"link {one['fid']} of {one['process']} is {one['state']}",
                do="look at its light; rodeo readout link restore",
                process=one["process"],
            )


class Book:
    """Standing alarms by cause. Not thread-safe: the controller's loop owns it."""

    def __init__(self, standing=()):
        """`standing`: what the database has of before a restart, as Alarm.as_json wrote it; acknowledgements stay."""
        alarms = (Alarm.from_json(one) for one in standing)
        self._alarms = {alarm.cause: alarm for alarm in alarms if alarm is not None}
        self._history = {cause: deque([True], maxlen=1) for cause, alarm in self._alarms.items() if alarm.cleared_ns is None}
        self._known = {}

    @property
    def known(self):
        """(process, number) pairs that had a value since the process began to run: one that is gone is an alarm."""
        return frozenset((name, metric) for name, metrics in self._known.items() for metric in metrics)

    def learn(self, derived, process_numbers):
        """Remembers which numbers processes say while they run; what does not run any more is forgotten."""
        self._known = {name: metrics for name, metrics in self._known.items() if derived.phases.get(name) in ("running", "lost")}
        for name, numbers in process_numbers.items():
            if derived.phases.get(name) == "running":
                self._known.setdefault(name, set()).update(metric for metric in EXPECTED if numbers.get(metric) is not None)

    def evaluate(self, found, now_ns):
        """Takes the Conditions of this moment. Returns what changed: [("raised" | "cleared" | "gone", Alarm)]; "gone": cleared and acknowledged."""
        happened = []
        by_cause = {}
        for one in found:
            by_cause.setdefault(one.cause, one)
        for cause, one in by_cause.items():
            history = self._history.get(cause)
            if history is None or history.maxlen != one.needs[1]:
                history = self._history[cause] = deque(history or (), maxlen=one.needs[1])
            history.append(True)
            standing = self._alarms.get(cause)
            if standing is None and (sum(history) < one.needs[0] or len(self._alarms) >= MOST_STANDING):
                continue
            happened += self._holds(one, standing, now_ns)
        for cause in [cause for cause in self._history if cause not in by_cause]:
            history = self._history[cause]
            history.append(False)
            if not any(history):
                del self._history[cause]
                happened += self._over(cause, now_ns)
        return happened

    def _holds(self, one, standing, now_ns):
        fresh = Alarm(one.cause, one.severity, now_ns, one.what, one.value, one.limit, one.do, one.process)
        worse = standing is not None and SEVERITIES.index(one.severity) < SEVERITIES.index(standing.severity)
        if standing is None or standing.cleared_ns is not None or worse:  # what came again, or became worse, wants to be seen again
            self._alarms[one.cause] = fresh
            return [("raised", fresh)]
        severity = standing.severity  # latched: it does not become better while it stands
        self._alarms[one.cause] = replace(standing, what=one.what, value=one.value, limit=one.limit, do=one.do, severity=severity)
        return []

    def _over(self, cause, now_ns):
        standing = self._alarms.get(cause)
        if standing is None or standing.cleared_ns is not None:
            return []
        cleared = self._alarms[cause] = replace(standing, cleared_ns=now_ns)
        happened = [("cleared", cleared)]
        if cleared.acked_by is not None:
            del self._alarms[cause]
            happened.append(("gone", cleared))
        return happened

    def acknowledge(self, cause, by, now_ns):
        """The Alarm as it is now; it stands on until it is cleared. Raises Refused("control.no_alarm") if none of that cause stands."""
        alarm = self._alarms.get(cause)
        if alarm is None:
            raise Refused("control.no_alarm", f"no alarm `{cause}` stands", "rodeo control status lists those that do")
        if alarm.acked_by is None:
            alarm = self._alarms[cause] = replace(alarm, acked_by=by, acked_ns=now_ns)
        if alarm.cleared_ns is not None:
            del self._alarms[cause]
        return alarm

    def standing(self):
        """Alarms: those that nobody has acknowledged first, then the worst, then the newest."""
        return tuple(
            sorted(
                self._alarms.values(),
                key=lambda one: (one.acked_by is not None, SEVERITIES.index(one.severity), one.cleared_ns is not None, -one.raised_ns, one.cause),
            )
        )
