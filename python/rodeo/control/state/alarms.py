"""The life of an alarm: raised, latched, shelved, acknowledged, cleared; one for each cause. state/conditions.py and state/rules.py say what raises alarms."""

from collections import deque
from dataclasses import dataclass, fields, replace

from rodeo.control.refused import Refused
from rodeo.control.state.rules import SEVERITIES

MOST_STANDING = 500
# An acknowledged alarm stands this number of looks after a restart, even without its condition, because metrics become known late.
RESTORED_LOOKS = 15
EXPECTED = ("rate_hz", "events")  # metrics that a running process must not cease to report; others come and go


@dataclass(frozen=True)
class Condition:
    """A fault at this moment. `cause` is its key. `needs` (n, m): the alarm is raised when n of the last m evaluations had the condition, so that
    intermittent faults are caught too; it clears when none of the last m had it."""

    cause: str
    severity: str
    what: str
    value: object = None
    limit: object = None
    do: str = ""
    process: str | None = None
    needs: tuple = (1, 1)
    rule: str = ""  # the name of the rule


@dataclass(frozen=True)
class Alarm:
    """A raised alarm. It stands until it is both cleared and acknowledged. A shelved alarm asks for no attention until `shelved_until_ns`. Times are
    UTC, for display."""

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
    shelved_by: str | None = None
    shelved_until_ns: int | None = None

    @property
    def asks(self):
        """Whether it asks for attention: it is neither acknowledged nor shelved."""
        return self.acked_by is None and self.shelved_by is None

    def as_json(self):
        return {one.name: getattr(self, one.name) for one in fields(self)}

    @staticmethod
    def from_json(value):
        """The alarm that as_json wrote; None if `value` is anything else."""
        try:
            kept = {one.name: value[one.name] for one in fields(Alarm) if one.name in value}
            alarm = Alarm(**kept)
            good = (
                isinstance(alarm.cause, str)
                and alarm.severity in SEVERITIES
                and isinstance(alarm.raised_ns, int)
                and isinstance(alarm.what, str)
            )
            return alarm if good else None
        except TypeError:
            return None


class Book:
    """Standing alarms by cause. Not thread-safe: the controller's loop owns it."""

    def __init__(self, standing=(), shelf=None):
        """`standing` and `shelf` are those of before a restart, from the database, as Alarm.as_json and shelf() wrote them. Acknowledgements stay."""
        self._shelf = (
            {cause: one for cause, one in shelf.items() if _is_shelved(one)} if isinstance(shelf, dict) else {}
        )
        alarms = (self._on_shelf(alarm) for one in standing if (alarm := Alarm.from_json(one)) is not None)
        self._alarms = {alarm.cause: alarm for alarm in alarms if alarm is not None}
        self._history = {}
        for cause, alarm in self._alarms.items():
            if alarm.cleared_ns is None:
                looks = RESTORED_LOOKS if alarm.acked_by else 1
                self._history[cause] = deque([True] * looks, maxlen=looks)
        self._known = {}
        self._full = set()  # causes that hold now and have no place among the alarms
        self.left_out = 0  # number of causes that had no place since the room began

    @property
    def known(self):
        """Returns (process, metric) pairs that had a value since the process began to run: a lost one is an alarm."""
        return frozenset((name, metric) for name, metrics in self._known.items() for metric in metrics)

    def learn(self, derived, process_numbers):
        """Remembers which metrics running processes report; forgets processes that no longer run."""
        self._known = {
            name: metrics for name, metrics in self._known.items() if derived.phases.get(name) in ("running", "lost")
        }
        for name, numbers in process_numbers.items():
            if derived.phases.get(name) == "running":
                self._known.setdefault(name, set()).update(
                    metric for metric in EXPECTED if numbers.get(metric) is not None
                )

    def evaluate(self, found, now_ns):
        """Takes the current Conditions. Returns the changes: [("raised" | "cleared" | "gone", Alarm)]; "gone": cleared and acknowledged."""
        happened = self._taken_off(now_ns)
        by_cause = {}
        for one in found:
            by_cause.setdefault(one.cause, one)
        for cause, one in by_cause.items():
            history = self._history.get(cause)
            if history is None or history.maxlen != one.needs[1]:
                history = self._history[cause] = deque(history or (), maxlen=one.needs[1])
            history.append(True)
            standing = self._alarms.get(cause)
            if standing is None and (sum(history) < one.needs[0] or not self._place(one, now_ns, happened)):
                continue
            happened += self._holds(one, standing, now_ns)
        for cause in [cause for cause in self._history if cause not in by_cause]:
            history = self._history[cause]
            history.append(False)
            if not any(history):
                del self._history[cause]
                self._full.discard(cause)
                happened += self._over(cause, now_ns)
        return happened

    def _place(self, one, now_ns, happened):
        """Makes room for one more; False without room. An alarm replaces the oldest warning, cleared ones first; that acknowledges a cleared one."""
        if len(self._alarms) >= MOST_STANDING:
            warnings = (
                [each for each in self._alarms.values() if each.severity == "warning"]
                if one.severity == "alarm"
                else []
            )
            oldest = min(warnings, key=lambda each: (each.cleared_ns is None, each.raised_ns), default=None)
            if oldest is None:
                self.left_out += one.cause not in self._full
                self._full.add(one.cause)
                return False
            del self._alarms[oldest.cause]
            if oldest.cleared_ns is not None:
                happened.append(
                    ("gone", oldest if oldest.acked_by else replace(oldest, acked_by="rule", acked_ns=now_ns))
                )
            else:
                self.left_out += oldest.cause not in self._full
                self._full.add(oldest.cause)
        self._full.discard(one.cause)
        return True

    def _holds(self, one, standing, now_ns):
        worse = standing is not None and SEVERITIES.index(one.severity) < SEVERITIES.index(standing.severity)
        if worse:  # the alarm is worse now than when it was shelved
            self._shelf.pop(one.cause, None)
        fresh = self._on_shelf(
            Alarm(one.cause, one.severity, now_ns, one.what, one.value, one.limit, one.do, one.process)
        )
        if (
            standing is None or standing.cleared_ns is not None or worse
        ):  # an alarm that returns or becomes worse must be acknowledged again
            self._alarms[one.cause] = fresh
            return [("raised", fresh)]
        severity = standing.severity  # latched: a standing alarm does not become less severe
        self._alarms[one.cause] = replace(
            standing, what=one.what, value=one.value, limit=one.limit, do=one.do, severity=severity
        )
        return []

    def _over(self, cause, now_ns):
        standing = self._alarms.get(cause)
        if standing is None or standing.cleared_ns is not None:
            return []
        cleared = replace(standing, cleared_ns=now_ns)
        if standing.shelved_by is not None and standing.acked_by is None:  # a user who shelves an alarm has seen it
            cleared = replace(cleared, acked_by=standing.shelved_by, acked_ns=now_ns)
        self._alarms[cause] = cleared
        happened = [("cleared", cleared)]
        if not cleared.asks:
            del self._alarms[cause]
            happened.append(("gone", cleared))
        return happened

    def acknowledge(self, cause, by, now_ns):
        """Returns the acknowledged Alarm; it stands until it is cleared. Raises Refused("control.no_alarm") if no alarm of that cause stands."""
        alarm = self._alarms.get(cause)
        if alarm is None:
            raise Refused("control.no_alarm", f"no alarm `{cause}` stands", "rodeo control status lists those that do")
        if alarm.acked_by is None:
            alarm = self._alarms[cause] = replace(alarm, acked_by=by, acked_ns=now_ns)
        if alarm.cleared_ns is not None:
            del self._alarms[cause]
        return alarm

    def shelve(self, cause, by, until_ns, now_ns=0):
        """Returns the shelved Alarm. It asks for no attention until `until_ns`, also if it returns, unless it becomes worse. `until_ns` None takes it off
        the shelf. Raises Refused("control.no_alarm")."""
        alarm = self._alarms.get(cause)
        if alarm is None:
            raise Refused("control.no_alarm", f"no alarm `{cause}` stands", "rodeo control alarms lists those that do")
        if until_ns is None:
            self._shelf.pop(cause, None)
            alarm = replace(alarm, shelved_by=None, shelved_until_ns=None)
        else:
            self._shelf[cause] = {"by": by, "until_ns": until_ns}
            alarm = self._on_shelf(alarm)
        self._alarms[cause] = alarm
        if alarm.cleared_ns is not None and until_ns is not None:
            return self.acknowledge(cause, by, now_ns)
        return alarm

    def shelf(self):
        """Returns {cause: {"by", "until_ns"}}, for the next controller."""
        return {cause: dict(one) for cause, one in self._shelf.items()}

    def _on_shelf(self, alarm):
        one = self._shelf.get(alarm.cause)
        return replace(alarm, shelved_by=one["by"], shelved_until_ns=one["until_ns"]) if one else alarm

    def _taken_off(self, now_ns):
        """Unshelves alarms whose time is over: those that still stand must be acknowledged again."""
        happened = []
        for cause in [cause for cause, one in self._shelf.items() if one["until_ns"] <= now_ns]:
            del self._shelf[cause]
            alarm = self._alarms.get(cause)
            if alarm is not None:
                self._alarms[cause] = replace(
                    alarm, shelved_by=None, shelved_until_ns=None, acked_by=None, acked_ns=None
                )
                happened.append(("raised", self._alarms[cause]))
        return happened

    def standing(self):
        """Alarms in order: first those that ask for attention, then the most severe, then the newest."""
        return tuple(
            sorted(
                self._alarms.values(),
                key=lambda one: (
                    not one.asks,
                    SEVERITIES.index(one.severity),
                    one.cleared_ns is not None,
                    -one.raised_ns,
                    one.cause,
                ),
            )
        )


def _is_shelved(one):
    return isinstance(one, dict) and isinstance(one.get("by"), str) and type(one.get("until_ns")) is int
