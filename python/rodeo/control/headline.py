"""How the data are, in one word for page, shell and Python, and the first cause where they are not well. Pure.

The state says what the system does. The headline says whether the run takes data: a run that is RUNNING and takes none has a word and a colour of its own. The
first cause is derived here alone: the picture, the alarms and the reason of the run name the same one.
"""

from dataclasses import dataclass

from .kinds import kind_of
from .numbers import growth_of, value

NO_DATA, NO_TRIGGERS, LOSES_DATA, LOSES_TRIGGERS = "NO DATA", "NO TRIGGERS", "LOSES DATA", "LOSES TRIGGERS"
OF_STATES = {"OFF": "idle", "LAUNCHING": "busy", "READY": "ready", "STARTING": "busy", "RUNNING": "good", "PAUSED": "warning", "STOPPING": "busy", "CLOSING": "busy",
             "ERROR": "alarm"}
SEVERITIES = ("idle", "ready", "busy", "good", "warning", "alarm")
BLOCKED_S = 2.0  # triggers are offered and none is accepted for so long: a run of a few hertz has single seconds without one
IDLE_S = 10.0  # nothing is offered, or the offer is not known
SILENT_POLLS = 2  # answers that a process owes before it counts as the cause of what stands still
_DEAD = {"failed": "has failed", "lost": "does not answer", "absent": "is not there", "done": "has ended", "launching": "is being started again"}


@dataclass(frozen=True)
class Headline:
    """`word`: a state, or one of the four above. `severity`: one of SEVERITIES. `cause`: {"process", "stage"} of the first cause, None where none is known."""

    word: str
    severity: str
    cause: dict | None = None

    def as_json(self):
        return {"word": self.word, "severity": self.severity, "cause": self.cause}

    @property
    def what(self):
        """A sentence for alarms and for the reason of the run."""
        said = {NO_DATA: "the run takes no data", NO_TRIGGERS: "no trigger comes", LOSES_DATA: "the run loses data", LOSES_TRIGGERS: "the run loses triggers"}
        return f"{said[self.word]}: {told(self.cause)}" if self.word in said else self.word


def told(cause):
    return f"{cause['process']}: {cause['stage']}" if cause else "the cause is not known yet"


@dataclass(frozen=True)
class Flow:
    """`zero_s`: for how long no trigger was accepted, None while triggers come or their rate is not known. `offered`: triggers were offered meanwhile.
    `incomplete_ppm`: of the fragments of the last look. `dead_time`: the share of triggers that the last look lost; both None if unknown."""

    zero_s: float | None = None
    offered: bool = False
    incomplete_ppm: float | None = None
    dead_time: float | None = None


class FlowMeter:
    """Makes a Flow of the numbers of each look. The time is given."""

    def __init__(self):
        self._zero_since_s = None

    def look(self, now_s, numbers, before, after):
        rate = numbers.get("trigger_rate_hz")
        self._zero_since_s = None if rate != 0 else now_s if self._zero_since_s is None else self._zero_since_s
        built = incomplete = None
        if before is not None:
            built = growth_of(before, after, "readout", lambda status: value(status, "fragments", "built"))
            incomplete = growth_of(before, after, "readout", lambda status: value(status, "fragments", "incomplete"))
        return Flow(zero_s=None if self._zero_since_s is None else now_s - self._zero_since_s, offered=bool(numbers.get("offered_rate_hz")),
                    incomplete_ppm=1e6 * incomplete / built if built and incomplete is not None else None, dead_time=numbers.get("dead_time_fraction"))


def first_cause(derived, looks, limited, *, run, standing):
    """{"process", "stage"} of what holds the data up, None if nothing does or the cause is unknown. A process of the data's way that is gone or silent comes before what
    others say of their waiting: it makes them wait. Of several the one that went first. `limited`: what processes say, numbers.limited_by(). `standing`: data are held up now."""
    if run is None:
        return limited
    ours = [look for look in looks if kind_of(look.member.kind).order and look.member.kind != "program"]
    dead = [look for look in ours if derived.phases.get(look.name) in _DEAD and (look.name in derived.broken or standing)]
    if dead:
        first = min(dead, key=lambda look: (look.since_ns is None, look.since_ns or 0, kind_of(look.member.kind).order, look.name))
        return {"process": first.name, "stage": _DEAD[derived.phases[first.name]]}
    if standing:
        silent = [look for look in ours if look.alive and look.unanswered >= SILENT_POLLS]
        if silent:
            first = max(silent, key=lambda look: (look.answered_age_s or 0, -kind_of(look.member.kind).order))
            return {"process": first.name, "stage": "does not answer"}
    return limited


def standing(flow):
    """Triggers wait, and none is accepted."""
    return flow.zero_s is not None and flow.zero_s >= BLOCKED_S and flow.offered


def troubled(flow, dead_time_limit):
    """Triggers are lost, or none comes while some are offered: a process that is gone or silent counts as the cause of that."""
    return standing(flow) or (flow.zero_s is not None and flow.offered) or (flow.dead_time is not None and flow.dead_time > dead_time_limit)


def headline(derived, flow, cause, *, run, incomplete_limit_ppm, dead_time_limit):
    """The Headline of this moment. `flow`: Flow. `cause`: from first_cause()."""
    if run is None or derived.state != "RUNNING":
        return Headline(derived.state, OF_STATES.get(derived.state, "alarm"))
    if standing(flow) or (flow.zero_s is not None and flow.zero_s >= BLOCKED_S and derived.broken):
        return Headline(NO_DATA, "alarm", cause)
    if flow.zero_s is not None and flow.zero_s >= IDLE_S:
        return Headline(NO_TRIGGERS, "warning", cause)
    if derived.broken:
        return Headline(LOSES_DATA, "alarm", cause)
    if flow.incomplete_ppm is not None and flow.incomplete_ppm > incomplete_limit_ppm:
        return Headline(LOSES_DATA, "warning", cause)
    if flow.dead_time is not None and flow.dead_time > dead_time_limit:
        return Headline(LOSES_TRIGGERS, "warning", cause)
    return Headline("RUNNING", "good")
