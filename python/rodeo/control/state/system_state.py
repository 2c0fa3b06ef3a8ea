"""The state of the system, derived from its processes, the open run and the current act. docs/reference/control-room-states.md describes all states."""

from dataclasses import dataclass, field

from rodeo.control.state.kinds import NEEDED
from rodeo.control.state.snapshots import Memory, phase_of

STATES = ("OFF", "LAUNCHING", "READY", "STARTING", "RUNNING", "PAUSED", "STOPPING", "CLOSING", "ERROR")
FLAGS = ("DEGRADED", "OVERDUE", "BLIND")

_ALIVE = ("launching", "ready", "running", "draining", "lost")
_GONE = ("absent", "done", "failed")
# Acts that change nothing until they are done: during them the state follows from the processes.
_SHORT_ACTS = ("pause", "resume", "advance", "go_on")


@dataclass(frozen=True)
class Derived:
    """The state with its reasons.

    `what`: one sentence for the operator. `waiting_for`: texts "name: phase". `phases`: {name: phase}. `foreign`: sentences on processes that do not
    belong to this system or this run. `silent`: hosts that do not answer. `left`: sentences on descendants that outlived their processes.
    `held`: whether the trigger authorities hold triggers; None if no authority answers.

    `broken` {name: why}: bad processes of classes with too few good ones. `degraded` {name: why}: bad processes that may be missing. `ended`: needed
    processes that ended by themselves while others run; they are also in `broken`. `going`: good readouts of the run. `indispensable`: broken processes
    without which no data are taken, because no process of their kind is left. `left_out`: processes without which the run continues; their numbers,
    limits and waits do not count.

    `heal`: the automatic step to finish the act of a former controller: None, "stop", "undo_start", "relaunch" or "close".
    """

    state: str
    flags: tuple = ()
    what: str = ""
    waiting_for: tuple = ()
    broken: dict = field(default_factory=dict)
    degraded: dict = field(default_factory=dict)
    ended: tuple = ()
    indispensable: tuple = ()
    left_out: frozenset = frozenset()
    foreign: tuple = ()
    going: tuple = ()
    silent: tuple = ()
    left: tuple = ()
    held: bool | None = None
    heal: str | None = None
    phases: dict = field(default_factory=dict)


def derive(looks, run=None, act=None, memory=None, *, silent_hosts=(), strangers=()):
    """Always returns a Derived, never raises. `looks`: one for each member. `run`: RunRow or None. `act`: Act or None. `memory`: Memory or None.
    `silent_hosts`: names of hosts that do not answer. `strangers`: names of processes that a launcher lists and the system file does not."""
    seen = _Seen(tuple(looks), run, act, memory or Memory(), tuple(silent_hosts), tuple(strangers))
    state, what, heal = _state(seen)
    flags = tuple(
        flag
        for flag, there in (
            ("DEGRADED", _degraded(seen, state)),
            ("OVERDUE", act is not None and act.overdue),
            ("BLIND", bool(seen.silent)),
        )
        if there
    )
    return Derived(
        state=state,
        flags=flags,
        what=what,
        waiting_for=_waiting_for(seen, state),
        broken=seen.broken,
        degraded=seen.degraded,
        ended=seen.ended,
        indispensable=seen.indispensable,
        left_out=seen.memory.without - seen.broken.keys(),
        foreign=seen.foreign,
        going=tuple(look.name for look in seen.per_run if run is not None and seen.phase[look.name] == "running"),
        silent=seen.silent,
        left=seen.left,
        held=seen.held,
        heal=heal if act is None else None,
        phases={look.name: seen.phase[look.name] for look in seen.looks},
    )


class _Seen:
    """The looks, classified: good, waiting, degraded, broken."""

    def __init__(self, looks, run, act, memory, silent, strangers):
        self.looks, self.run, self.act, self.memory, self.silent = looks, run, act, memory, silent
        self.phase = {look.name: phase_of(look) for look in looks}
        self.per_run = [look for look in looks if look.member.per_run and look.name not in memory.without]
        self.alive = [look for look in looks if self.phase[look.name] in _ALIVE]
        self.in_run = [look for look in self.per_run if self.phase[look.name] in _ALIVE]
        self.unknown = [look for look in looks if look.alive is None]
        self.left = tuple(
            f"{look.name} has ended, but processes that it started still run: {', '.join(map(str, look.left))}"
            for look in looks
            if look.left
        )
        self.held = held(looks)
        self.broken, self.degraded, self.waiting, self.ended = {}, {}, {}, ()
        self._sort()
        self.foreign = tuple(_foreign(self, strangers))

    def _sort(self):
        classes = {}
        for look in self.looks:
            classes.setdefault(look.member.process_class.name, []).append(look)
        ended, stalled = [], _stalled_kinds(self.looks, self.memory)
        for members in classes.values():
            counted = [look for look in members if look.name not in self.memory.without]
            verdicts = {look.name: self._verdict(look) for look in members}
            hopeful = sum(verdicts[look.name] in ("good", "waiting") for look in counted)
            needed = max(0, members[0].member.process_class.needed - (len(members) - len(counted)))
            for look in members:
                verdict = verdicts[look.name]
                without = look.name in self.memory.without
                if verdict == "good" and not without:
                    continue
                if verdict == "waiting" and not without:
                    self.waiting[look.name] = self.phase[look.name]
                    # Before the first event it is waited for like all others; nothing is missing yet.
                    if (
                        not _unheard_of(look)
                        and members[0].member.role != "essential"
                        and self.run is not None
                        and self.run.first_event_ns is not None
                    ):
                        self.degraded[look.name] = problem_of(look, self.phase[look.name])
                elif (without or hopeful >= needed) and look.member.kind in stalled:
                    ended_for_good = "" if self.phase[look.name] == "lost" else ", is not restarted"
                    self.broken[look.name] = (
                        f"{problem_of(look, self.phase[look.name])}{ended_for_good}, and no event flows without it"
                    )
                    if verdict == "ended":
                        ended.append(look.name)
                elif without or hopeful >= needed:
                    self.degraded[look.name] = (
                        "left out of this run"
                        if without and verdict == "good"
                        else problem_of(look, self.phase[look.name])
                    )
                elif verdict == "ended":
                    ended.append(look.name)
                    self.broken[look.name] = "has ended while the others continue"
                else:
                    self.broken[look.name] = problem_of(look, self.phase[look.name])
        self.ended = tuple(ended)
        left = {
            look.member.kind
            for look in self.looks
            if look.name not in self.broken and look.name not in self.memory.gone | self.memory.without
        }
        self.indispensable = tuple(
            look.name for look in self.looks if look.name in self.broken and look.member.kind in set(NEEDED) - left
        )

    def _verdict(self, look):
        """good | waiting | bad | ended, judged by the needs of the run, or of a system without a run."""
        phase = self.phase[look.name]
        if phase == "launching" or _unheard_of(look):
            return "waiting"
        if not look.member.per_run:
            return "good" if phase in ("ready", "running") else "bad"
        if self.run is None:
            return {"ready": "good", "draining": "waiting"}.get(phase, "bad")
        if phase in ("running", "draining"):
            return "good"
        if phase == "ready":  # the process was ordered to start, or was restarted after a failure
            return "waiting" if self.run.first_event_ns is None or look.member.role != "essential" else "bad"
        return "ended" if phase == "done" else "bad"


def _stalled_kinds(looks, memory):
    """Kinds that data taking needs, of which no process is left, answers again in time or restarts automatically: their processes are then not expendable."""
    kinds = {look.member.kind for look in looks} & set(NEEDED)
    return {
        kind
        for kind in kinds
        if {look.name for look in looks if look.member.kind == kind} <= memory.gone | memory.without
    }


def _unheard_of(look):
    """Whether its host has been silent since the begin of this controller: then the controller only waits."""
    return look.alive is None and look.answered_age_s is None and look.launched_age_s is None


def _state(seen):
    """Returns the fields (state, what, heal) of Derived."""
    act = seen.act
    if act is not None and act.name not in _SHORT_ACTS:
        return (*_under_act(seen, act.name), None)
    if seen.foreign:
        return "ERROR", "foreign: " + "; ".join(seen.foreign), None
    return _with_run(seen) if seen.run is not None else _without_run(seen)


def _under_act(seen, name):
    run = seen.run
    number = f"run {run.number}" if run else "the run"
    if name == "start":
        return "STARTING", f"{number} starts" if run else "a run starts"
    if name == "launch":
        return "LAUNCHING", "processes are launched"
    if name == "close":
        return "CLOSING", "processes are ended"
    if name == "recover" and (seen.foreign or seen.broken) and run is None:
        return "ERROR", "recovering: " + _first(seen.foreign, seen.broken)
    if run is not None:
        verb = {"abort": "is aborted", "recover": "is closed after an error"}.get(name, "stops")
        if seen.in_run:
            return "STOPPING", f"{number} {verb}"
        return "CLOSING", f"{number}: reports, files and sums are collected"
    if name == "abort":
        return "CLOSING", "processes are ended at once"
    if name in ("stop", "recover"):
        return "LAUNCHING", "the processes of the next run are launched"
    return "ERROR", f"the act `{name}` is unknown"


def _with_run(seen):
    run = seen.run
    number = f"run {run.number}"
    if not seen.in_run:
        if any(look.alive is None for look in seen.per_run):
            state = run.state if run.state in ("STARTING", "RUNNING", "PAUSED", "STOPPING", "CLOSING") else "RUNNING"
            return (
                state,
                f"host {', '.join(sorted(seen.silent)) or '?'} is silent: the state of {number} is unknown, and nothing is done",
                None,
            )
        return "CLOSING", f"{number}: {_how_it_ended(seen)}", "stop"
    needed = [look for look in seen.per_run if look.member.role != "expendable"] or seen.per_run
    phases = {seen.phase[look.name] for look in needed} - set(_GONE)
    if run.stopping or phases <= {"draining"} and not any(_unheard_of(look) for look in needed):
        return (
            "STOPPING",
            f"{number} stops"
            if run.stopping
            else f"{number}: {_how_it_ended(seen) if not phases else 'every readout is ending'}",
            "stop",
        )
    needed_waits = [
        name for name in seen.waiting if name not in seen.degraded and seen.phase[name] in ("ready", "launching")
    ]
    begun = "running" in phases or "draining" in phases
    if run.first_event_ns is None and (not begun and phases != {"lost"} or needed_waits or seen.held):
        return "STARTING", f"the start of {number} was not finished", "undo_start"
    if seen.broken:
        return ("PAUSED" if seen.held else "RUNNING"), f"{number}: {_first((), seen.broken)}", None
    return ("PAUSED", f"{number}: triggers are held", None) if seen.held else ("RUNNING", f"{number} takes data", None)


def _without_run(seen):
    wanted = seen.memory.wanted
    if not seen.alive:
        if seen.unknown:
            return (
                ("ERROR" if wanted == "ready" else "OFF"),
                f"host {', '.join(sorted(seen.silent)) or '?'} is silent: its processes are unknown",
                None,
            )
        failed = {name: reason for name, reason in seen.broken.items() if seen.phase[name] == "failed"}
        return (
            ("ERROR", _first((), failed), None)
            if failed and wanted != "off"
            else ("OFF", seen.left[0] if seen.left else "no process runs", None)
        )
    if wanted == "off":
        return "CLOSING", "processes still run after the system was closed", "close"
    bad = {name: reason for name, reason in seen.broken.items() if seen.phase[name] in ("failed", "lost")}
    if bad:
        return "ERROR", _first((), bad), None
    if seen.broken:
        if wanted == "ready":
            return "LAUNCHING", f"{', '.join(sorted(seen.broken))}: will be launched for the next run", "relaunch"
        return "ERROR", _first((), seen.broken), None
    if any(name not in seen.degraded for name in seen.waiting):
        return "LAUNCHING", "processes become ready", None
    builds = sorted({look.build for look in seen.alive if look.build and look.member.kind != "program"})
    if len(builds) > 1:
        return "ERROR", f"processes are of different builds: {', '.join(builds)}", None
    return "READY", "ready for a run" + (f", without {', '.join(sorted(seen.degraded))}" if seen.degraded else ""), None


def held(looks):
    """Whether the trigger authorities among `looks` hold: True if all that answer hold their triggers, None if none answers."""
    said = []
    for look in looks:
        trigger = (look.status or {}).get("trigger") if look.member.kind == "emulator" else None
        if (
            isinstance(trigger, dict)
            and not trigger.get("link")
            and isinstance(trigger.get("held"), bool)
            and phase_of(look) in ("ready", "running")
        ):
            said.append(trigger["held"])
    return all(said) if said else None


def _foreign(seen, strangers):
    for name in sorted(strangers):
        yield f"{name} does not belong to this system"
    for look in seen.looks:
        if seen.phase[look.name] not in ("ready", "running", "draining"):
            continue
        if look.expected_sha256 and look.configuration_sha256 and look.expected_sha256 != look.configuration_sha256:
            yield f"{look.name} has another configuration ({look.configuration_sha256[:8]}, not {look.expected_sha256[:8]})"
        if look.expected_build and look.build and look.expected_build != look.build:
            yield f"{look.name} is of another build ({look.build}, not {look.expected_build})"
        if look.member.per_run and seen.phase[look.name] in ("running", "draining"):
            if seen.run is not None and look.run_number is not None and look.run_number != seen.run.number:
                yield f"{look.name} has run {look.run_number}, and run {seen.run.number} is open"
            if seen.run is None and seen.phase[look.name] == "running":
                yield f"{look.name} has run {look.run_number if look.run_number is not None else '?'}, and no run is open"


def problem_of(look, phase):
    """A part of a sentence: the problem of a process."""
    if phase == "failed":
        return look.exit.text() if look.exit else "reports that it has failed"
    if phase == "lost":
        if look.alive is None:
            return f"nothing was heard of it or its host {look.member.host}" + (
                f" for {look.answered_age_s:.0f} s" if look.answered_age_s is not None else ""
            )
        if look.problems and not look.phase_said:
            return f"sends an invalid status: {look.problems[0]}"
        return f"runs, but has not answered for {look.answered_age_s or 0:.0f} s"
    return {
        "absent": "is not there",
        "done": "has ended",
        "draining": "is ending",
        "ready": "is ready, but was not started",
        "running": "runs",
    }.get(phase, f"is {phase}")


def _degraded(seen, state):
    if seen.run is None and state in ("OFF", "LAUNCHING", "CLOSING"):
        return False
    run, missing = seen.run, seen.degraded.keys() | seen.broken.keys()
    if run is not None and run.stopping:  # while the run stops, processes end one after the other
        missing = missing - {
            look.name for look in seen.looks if look.member.per_run and seen.phase[look.name] == "done"
        }
    return bool(missing or (run is not None and _links_removed(seen.looks)))


def _links_removed(looks):
    for look in looks:
        for rob in (look.status or {}).get("robs") or ():
            if any(link.get("state") == "removed" for link in rob.get("links") or ()):
                return True
    return False


def _waiting_for(seen, state):
    if state in ("LAUNCHING", "STARTING"):
        names = [look for look in seen.looks if look.name in seen.waiting or look.name in seen.broken]
    elif state == "STOPPING":
        names = seen.in_run
    elif state == "CLOSING":
        names = seen.alive if seen.run is None else []
    else:
        return ()
    return tuple(f"{look.name}: {seen.phase[look.name]}" for look in names)


def _how_it_ended(seen):
    failed = [look for look in seen.per_run if seen.phase[look.name] == "failed"]
    if failed:
        return f"{failed[0].name} {problem_of(failed[0], 'failed')}, and no readout is left"
    if any(seen.phase[look.name] == "done" for look in seen.per_run):
        return "every readout has ended"
    return "no process of the run is left"


def _first(foreign, broken):
    if foreign:
        return foreign[0]
    for name, reason in broken.items():
        return f"{name} {reason}" + (f" (and {len(broken) - 1} more)" if len(broken) > 1 else "")
    return "a fault without a name"
