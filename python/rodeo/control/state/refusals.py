"""Why a command is refused now: one table of states and commands for shell, Python and the page's disabled buttons, so that all of them agree.

docs/reference/control-room-states.md describes the table."""

from dataclasses import dataclass

COMMANDS = ("launch", "start", "pause", "resume", "advance", "go_on", "stop", "abort", "recover", "close")


def refusals(
    derived,
    *,
    run=None,
    act=None,
    memory=None,
    overrides=False,
    run_numbers=None,
    disk_free_bytes=None,
    disk_stop_bytes=0,
    disk_seconds_left=None,
    disk_time_s=0.0,
    clocks=None,
    clock_limit_s=None,
    alarms=(),
):
    """Returns {command: None if it is possible now, else the reason, one sentence}. Pure. Role and lease are checked elsewhere.

    `alarms`: the standing ones (alarms.Alarm); `clocks` {host: clock offset in seconds, None: unknown}; `disk_seconds_left` counts for a start only if it is
    known. `overrides`: the launch has, or removes, KEY=VALUE.
    """
    seen = _Situation(derived, run, act, memory, alarms)
    seen.overrides, seen.run_numbers = overrides, run_numbers
    seen.clocks = _clocks(clocks or {}, clock_limit_s)
    seen.disk = _disk(disk_free_bytes, disk_stop_bytes, disk_seconds_left, disk_time_s)
    return {command: _refusal(TABLE[command], seen) for command in COMMANDS}


def allowed(answer):
    """Names of the possible commands, in the order of their use."""
    return tuple(command for command in COMMANDS if answer.get(command) is None)


def overtaken_by(name):
    """Commands that may interrupt the act `name`."""
    return tuple(command for command in COMMANDS if name in TABLE[command].interrupts)


class _Situation:
    def __init__(self, derived, run, act, memory, alarms):
        self.derived, self.state, self.run, self.act, self.alarms = derived, derived.state, run, act, alarms
        self.choice = memory.choice if memory else None


def _disk(free, stop, seconds, least_seconds):
    if free is not None and free < stop:
        return f"the disk has {free / 1e9:.1f} GB free, and runs need {stop / 1e9:.1f} GB (control.disk_stop)"
    if seconds is not None and seconds < least_seconds:
        return f"the disk is full in {seconds:.0f} s, and runs need {least_seconds:.0f} s (control.disk_time)"
    return None


def _clocks(clocks, limit_s):
    """The refusal if clocks differ: events of several hosts are combined by their clocks."""
    off = [
        (seconds, host)
        for host, seconds in clocks.items()
        if seconds is not None and limit_s is not None and seconds > limit_s
    ]
    if off:
        seconds, host = max(off)
        return f"the clock of host {host} is off by {seconds * 1e3:.1f} ms, and runs need {limit_s * 1e3:g} ms (the alarm `clock`)"
    return None


def _run_is_open(seen):
    return f"run {seen.run.number} is open: stop it first" if seen.run else None


def _silent_host(seen):
    silent = seen.derived.silent
    return f"host {', '.join(silent)} is silent: its processes are unknown" if silent else None


def _left(seen):
    return f"{seen.derived.left[0]}; abort ends it" if seen.derived.left else None


def _number(seen):
    return "the run database is gone: no run number is left" if seen.run_numbers == 0 else None


def _alarm(seen):
    for alarm in seen.alarms:
        if alarm.severity == "alarm" and alarm.asks and alarm.cleared_ns is None:
            return f"an alarm is not acknowledged: {alarm.what}"
    return None


def _held(seen):
    if seen.state == "PAUSED":
        return "triggers are held already"
    if seen.derived.held is None and seen.state == "RUNNING":
        return "no trigger authority answers: triggers cannot be held"
    return None


def _choice(seen):
    return f"{seen.choice.process} is lost: go_on without it, or stop" if seen.choice else None


def _no_choice(seen):
    return None if seen.choice else "no essential process is lost"


def _no_authority(seen):
    return "no trigger authority answers: luminosity blocks cannot advance" if seen.derived.held is None else None


def _nothing_goes_on(seen):
    if not seen.derived.going:
        return "no readout is left to continue"
    return f"no event flows without {seen.derived.indispensable[0]}: stop" if seen.derived.indispensable else None


def _closing(seen):
    """The closing of a run's books is not interrupted."""
    closing = seen.run and seen.state == "CLOSING" and seen.act
    return "every process of the run has ended, and its books are being closed" if closing else None


def _nothing_to_end(seen):
    alive = {"launching", "ready", "running", "draining", "lost"} & set(seen.derived.phases.values())
    return None if alive or seen.run or seen.derived.foreign or seen.derived.left else "there is nothing to end"


def _off(seen):
    return "no process runs" if seen.state == "OFF" else None


@dataclass(frozen=True)
class Row:
    """When a command is possible. `states`: all if empty. `run`: True: only with an open run; False: only without one. `interrupts`: the acts under way that
    it may interrupt. `before`: refusals that have precedence over the state; `after`: refusals in a right state. `settles` (a launch in READY): a condition
    under which the state does not matter."""

    states: tuple = ()
    run: bool | None = None
    interrupts: tuple = ()
    before: tuple = ()
    after: tuple = ()
    settles: object = None


# A launch in READY launches missing processes, or those whose settings it changes. `stop` and `abort` are the ways out: a stop also ends a start, a pause and
# a choice; an abort ends everything but the closing of a run's books.
TABLE = {
    "launch": Row(
        ("OFF",),
        run=False,
        after=(_silent_host, _left),
        settles=lambda seen: seen.state == "READY" and (seen.derived.degraded or seen.overrides),
    ),
    "start": Row(
        ("READY",),
        run=False,
        after=(_silent_host, _number, lambda seen: seen.disk, lambda seen: seen.clocks, _alarm),
    ),
    "pause": Row(("RUNNING",), run=True, before=(_held,)),
    "resume": Row(("PAUSED",), run=True, before=(_choice,)),
    "advance": Row(("RUNNING", "PAUSED"), run=True, before=(_choice,), after=(_no_authority,)),
    "go_on": Row(("RUNNING", "PAUSED"), run=True, before=(_no_choice,), after=(_nothing_goes_on,)),
    "stop": Row(run=True, interrupts=("start", "pause", "resume", "advance", "go_on"), after=(_closing,)),
    "abort": Row(interrupts=tuple(name for name in COMMANDS if name != "abort"), after=(_closing, _nothing_to_end)),
    "recover": Row(("ERROR",)),
    "close": Row(("READY", "ERROR", "LAUNCHING", "CLOSING"), before=(_run_is_open, _off)),
}


def _refusal(row, seen):
    starts = seen.act is not None and seen.act.name == "start" and "start" in row.interrupts
    if row.run is True and not seen.run and not starts:
        return "no run is open"
    if row.run is False and seen.run:
        return f"run {seen.run.number} is open"
    if seen.act and seen.act.name not in row.interrupts:
        return f"`{seen.act.name}` is under way"
    if row.settles and row.settles(seen):
        return None
    return next(
        (reason for check in (*row.before, lambda one: _state(row, one), *row.after) if (reason := check(seen))), None
    )


def _state(row, seen):
    if not row.states or seen.state in row.states:
        return None
    what = f" ({seen.derived.what})" if seen.state == "ERROR" and seen.derived.what else ""
    return f"the system is {seen.state}{what}, not {' or '.join(row.states)}"
