"""Why a command is refused now: one table for shell, Python and the page's disabled buttons, so that all of them agree."""

COMMANDS = ("launch", "start", "pause", "resume", "advance", "go_on", "stop", "abort", "recover", "close")


def refusals(
    derived,
    *,
    run=None,
    act=None,
    memory=None,
    database_good=True,
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
    known.
    """
    seen = _Situation(derived, run, act, memory, alarms)
    seen.database_good = database_good
    seen.clocks = _clocks(clocks or {}, clock_limit_s)
    seen.disk = _disk(disk_free_bytes, disk_stop_bytes, disk_seconds_left, disk_time_s)
    return {command: _RULES[command](seen) for command in COMMANDS}


def allowed(answer):
    """Names of the possible commands, in the order of their use."""
    return tuple(command for command in COMMANDS if answer.get(command) is None)


class _Situation:
    def __init__(self, derived, run, act, memory, alarms):
        self.derived, self.state, self.run, self.act, self.alarms = derived, derived.state, run, act, alarms
        self.choice = memory.choice if memory else None

    @property
    def busy(self):
        """The refusal while another act is in progress."""
        return f"`{self.act.name}` is under way" if self.act else None

    @property
    def blind(self):
        return (
            f"host {', '.join(self.derived.silent)} is silent: its processes are unknown"
            if self.derived.silent
            else None
        )

    def not_in(self, *states):
        if self.state in states:
            return None
        return (
            f"the system is {self.state}"
            + (f" ({self.derived.what})" if self.state == "ERROR" and self.derived.what else "")
            + f", not {' or '.join(states)}"
        )


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


def _launch(seen):
    if seen.run:
        return f"run {seen.run.number} is open"
    return (
        seen.busy
        or seen.not_in("OFF")
        or seen.blind
        or (f"{seen.derived.left[0]}; abort ends it" if seen.derived.left else None)
    )


def _start(seen):
    if seen.run:
        return f"run {seen.run.number} is open"
    reason = seen.busy or seen.not_in("READY") or seen.blind
    if reason:
        return reason
    if not seen.database_good:
        return "the run database is gone: no run number can be taken"
    if seen.disk:
        return seen.disk
    if seen.clocks:
        return seen.clocks
    for alarm in seen.alarms:
        if alarm.severity == "alarm" and alarm.asks and alarm.cleared_ns is None:
            return f"an alarm is not acknowledged: {alarm.what}"
    return None


def _pause(seen):
    if not seen.run:
        return "no run is open"
    if seen.busy:
        return seen.busy
    if seen.state == "PAUSED":
        return "triggers are held already"
    if seen.derived.held is None and seen.state == "RUNNING":
        return "no trigger authority answers: triggers cannot be held"
    return seen.not_in("RUNNING")


def _resume(seen):
    if not seen.run:
        return "no run is open"
    if seen.busy:
        return seen.busy
    if seen.choice:
        return f"{seen.choice.process} is lost: go_on without it, or stop"
    return seen.not_in("PAUSED")


def _advance(seen):
    if not seen.run:
        return "no run is open"
    if seen.busy:
        return seen.busy
    if seen.choice:
        return f"{seen.choice.process} is lost: go_on without it, or stop"
    return seen.not_in("RUNNING", "PAUSED") or (
        "no trigger authority answers: luminosity blocks cannot advance" if seen.derived.held is None else None
    )


def _go_on(seen):
    if not seen.run:
        return "no run is open"
    if not seen.choice:
        return "no essential process is lost"
    if seen.busy:
        return seen.busy
    if reason := seen.not_in("RUNNING", "PAUSED"):
        return reason
    if not seen.derived.going:
        return "no readout is left to continue"
    return f"no event flows without {seen.derived.indispensable[0]}: stop" if seen.derived.indispensable else None


def _stop(seen):
    """Always possible while a run is open: it also ends a start, a pause and a choice. Refused while a stop is in progress."""
    if not seen.run:
        return "no run is open" if not (seen.act and seen.act.name == "start") else None
    if seen.act and seen.act.name in ("stop", "abort", "recover"):
        return f"`{seen.act.name}` is under way"
    return (
        "every process of the run has ended, and its books are being closed"
        if seen.state == "CLOSING" and seen.act
        else None
    )


def _abort(seen):
    """Possible while any process can be ended. The closing of a run's books is not interrupted."""
    if seen.act and seen.act.name == "abort":
        return "`abort` is under way"
    if seen.run and seen.state == "CLOSING" and seen.act:
        return "every process of the run has ended, and its books are being closed"
    alive = any(
        phase in ("launching", "ready", "running", "draining", "lost") for phase in seen.derived.phases.values()
    )
    return None if alive or seen.run or seen.derived.foreign or seen.derived.left else "there is nothing to end"


def _recover(seen):
    return seen.busy or seen.not_in("ERROR")


def _close(seen):
    if seen.run:
        return f"run {seen.run.number} is open: stop it first"
    if seen.busy:
        return seen.busy
    return "no process runs" if seen.state == "OFF" else seen.not_in("READY", "ERROR", "LAUNCHING", "CLOSING")


_RULES = {
    "launch": _launch,
    "start": _start,
    "pause": _pause,
    "resume": _resume,
    "advance": _advance,
    "go_on": _go_on,
    "stop": _stop,
    "abort": _abort,
    "recover": _recover,
    "close": _close,
}
