"""What other programs read of processes: the keys of reports and statuses, and the metrics. `frozen/NAME.json` has each as it is today.

A change there is a change of what docs/reference/stability.md promises. RODEO_FREEZE=1 writes the files anew: then read the difference.
"""

import json
import os
import re
from pathlib import Path

HERE = Path(__file__).parent / "frozen"
BY_NAME = {"lost", "incomplete_by_reason", "counters", "input"}  # the keys of these members differ from run to run


def shape(value, by_name=False):
    """A document with the names of types instead of values. A list has the shape of all its elements; null fits each type."""
    if isinstance(value, dict):
        if by_name:
            return {"*": merged([shape(each) for each in value.values()])}
        return {key: shape(each, key in BY_NAME and isinstance(each, dict)) for key, each in sorted(value.items())}
    if isinstance(value, list):
        return [merged([shape(each) for each in value])]
    if value is None:
        return None
    return {bool: "bool", str: "text"}.get(type(value), "number")


def merged(shapes):
    """One shape for all: what is null in one may have any type in another. Raises if two differ."""
    known = None
    for each in shapes:
        known = each if known is None else known if each is None else joined(known, each)
    return known


def joined(one, other):
    if isinstance(one, dict) and isinstance(other, dict):
        return {key: merged([one.get(key), other.get(key)]) for key in sorted({*one, *other})}
    if isinstance(one, list) and isinstance(other, list):
        return [merged([*one, *other])]
    assert one == other, f"{one} and {other} in one place"
    return one


def differences(known, now, place=""):
    """Places where a shape has other keys or types."""
    if known is None or now is None:
        return []
    if isinstance(known, dict) and isinstance(now, dict):
        found = [f"{place}.{key} is gone" for key in known.keys() - now.keys() if key != "*"]
        found += [f"{place}.{key} is new" for key in now.keys() - known.keys() if key != "*"]
        return found + [
            each
            for key in sorted(known.keys() & now.keys())
            for each in differences(known[key], now[key], f"{place}.{key}")
        ]
    if isinstance(known, list) and isinstance(now, list):
        return differences(known[0], now[0], f"{place}[]")
    return [] if known == now else [f"{place} was {known} and is {now}"]


def check(name, now):
    file = HERE / f"{name}.json"
    if os.environ.get("RODEO_FREEZE"):
        HERE.mkdir(exist_ok=True)
        file.write_text(json.dumps(now, indent=1, sort_keys=True) + "\n")
    known = json.loads(file.read_text())
    assert not (found := differences(known, now)), f"{name}: {found}; see tests/system/frozen.py"


def check_document(name, document):
    """Compares the keys and types of a report or a status with those that are known."""
    check(name, shape(document))


def check_metrics(name, text):
    """Compares names, types and labels of metrics in Prometheus' text format with those that are known."""
    types = dict(re.findall(r"^# TYPE (\w+) (\w+)$", text, re.MULTILINE))
    labels = {}
    for metric, labelled in re.findall(r"^(\w+)(?:\{(.*)\})? \S+$", text, re.MULTILINE):
        labels.setdefault(metric, set()).update(re.findall(r'(\w+)="', labelled))
    check(name, {metric: " ".join([types.get(metric, "?"), *sorted(found)]) for metric, found in labels.items()})
