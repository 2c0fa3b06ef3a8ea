"""The values that the rules of a system file check: metrics of the system, of processes and their status, of external programs."""

from dataclasses import dataclass

from rodeo.control.state.rules import Rules

MOST_VALUES = 10_000  # limit of the values of one rule with * in its path
ALWAYS = ("running", "ready", "draining")  # the phases in which the values of a process count


@dataclass(frozen=True)
class Found:
    """A value that a rule checks. `subject`: the process or external program, empty for the system. `value` is None if unknown. `there`: the counter exists,
    even if its growth is unknown."""

    rule: object
    subject: str
    value: float | None
    external: bool = False
    there: bool = False


class Watch:
    """Keeps earlier values for rates, and to detect lost values. Not thread-safe: the controller's loop owns it."""

    def __init__(self, rules: Rules):
        self.rules = rules
        self._before = {}  # (rule, subject) -> (seconds, value, growth per second)
        self._known = set()  # (rule, subject) of rules that had a value
        self.found = ()

    def update(self, now_s, *, running, numbers, looks, phases, process_numbers, externals, left_out=frozenset()):
        """Returns all Found of this moment, and keeps them in `found`. `running`: a run is open and triggers are not held. `externals`: {name: External}.
        `left_out`: processes without which the run continues; rules for a run do not check them."""
        found = []
        for rule in self.rules.own:
            if not rule.enabled or (rule.when == "running" and not running):
                self._forget(lambda key, name=rule.name: key[0] == name)
                continue
            checked = [look for look in looks if rule.when != "running" or look.name not in left_out]
            for subject, value in _values(rule, numbers, checked, phases, process_numbers, externals):
                key = (rule.name, subject)
                there = value is not None
                if there:
                    self._known.add(key)
                found.append(
                    Found(
                        rule,
                        subject,
                        self._grown(key, now_s, value) if rule.per_second else value,
                        rule.of in externals,
                        there,
                    )
                )
        there = {(one.rule.name, one.subject) for one in found}
        self._forget(lambda key: key not in there)
        self.found = tuple(found)
        return self.found

    def _grown(self, key, now_s, value):
        before = self._before.get(key)
        if value is None:
            self._before.pop(key, None)
            return None
        if before is not None and now_s - before[0] < 0.5:
            return before[2]
        growth = None
        if before is not None and value >= before[1]:
            growth = (value - before[1]) / (now_s - before[0])
        self._before[key] = (now_s, value, growth)
        return growth

    def _forget(self, whom):
        for key in [key for key in self._known if whom(key)]:
            self._known.discard(key)
        for key in [key for key in self._before if whom(key)]:
            del self._before[key]

    def is_gone(self, one):
        """Whether a value is missing that was there before. If an external program answers without it, it counts as gone at once: its name may be wrong."""
        return not one.there and ((one.rule.name, one.subject) in self._known or one.external)


def _values(rule, numbers, looks, phases, process_numbers, externals):
    """Yields (subject, value) for each subject of a rule; the value is None if unknown."""
    if not rule.of:
        yield "", number((numbers or {}).get(rule.value))
    elif rule.of in externals:
        external = externals[rule.of]
        if external.answers:  # another alarm reports a silent program
            yield rule.of, rule.worst(external.find(rule.value))
    else:
        for look in looks:
            if look.member.process_class.name == rule.of and phases.get(look.name) in ALWAYS:
                yield look.name, _of_process(rule, look, (process_numbers or {}).get(look.name) or {})


def _of_process(rule, look, numbers):
    if "." not in rule.value:
        return number({"cpu": look.cpu, "rss_bytes": look.rss_bytes}.get(rule.value, numbers.get(rule.value)))
    return rule.worst(at_path(look.status or {}, rule.value.split(".")))


def at_path(value, path):
    """Numbers at a path into JSON; * means each item of a list or object, a number one item of a list. Booleans count as 0 and 1."""
    places = [value]
    for name in path:
        reached = []
        for place in places:
            if name == "*":
                reached += list(place.values()) if isinstance(place, dict) else place if isinstance(place, list) else []
            elif isinstance(place, dict) and name in place:
                reached.append(place[name])
            elif isinstance(place, list) and name.isascii() and name.isdigit() and int(name) < len(place):
                reached.append(place[int(name)])
        places = reached[:MOST_VALUES]
    return [found for one in places if (found := number(one)) is not None]


def number(value):
    """A finite number as a float, else None."""
    if isinstance(value, bool):
        return float(value)
    return float(value) if isinstance(value, (int, float)) and abs(value) < 1e300 else None
