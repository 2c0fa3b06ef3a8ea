"""Bisection as a generator: it yields tasks, receives their results, and returns the value found. Its caller decides where tasks run.

It finds the largest rate or the smallest buffer without drops: the edge between runs with and without drops.
"""

from dataclasses import dataclass

from . import units
from .methods import Task


@dataclass(frozen=True)
class Found:
    """good: the last value without drops; bad: the nearest value with drops (None: no drops within the limits)."""

    good: float | None
    bad: float | None
    probes: int


def drops(result, allowed=0.0):
    """Whether a run counts as one with drops: it dropped more than this share of its packets, or had overload."""
    if "failed" in result:
        raise RuntimeError(result["failed"])
    if "overload" in result:
        return True
    packets = result.get("packets_data") or 1
    return result["drops"] > allowed * packets


def bisect(task: Task, quantity: str, low: float, high: float, tolerance=0.01, allowed=0.0):
    """quantity: rate (finds the highest) or buffer (finds the smallest), between low and high, to a relative tolerance.

    Values are whole hertz or bytes, so that the journal recognises them.
    """
    if not 0 < low < high:
        raise ValueError(f"a search needs 0 < low < high, not {low:g} and {high:g}")
    if not tolerance > 0:
        raise ValueError(f"a search needs a tolerance above 0, not {tolerance:g}")
    if quantity not in ("rate", "buffer"):
        raise ValueError(f"there is no search for {quantity}; use rate or buffer")
    wants_high = quantity == "rate"
    if task.method in ("simulation", "laboratory") and not allowed:
        task = task.with_settings(only_drops=True)
    probes = 0

    def probe(value):
        result = yield task.with_settings(**{quantity: round(value)})
        return not drops(result, allowed)

    good_end, bad_end = (low, high) if wants_high else (high, low)
    probes += 1
    if (yield from probe(bad_end)):
        return Found(good=round(bad_end), bad=None, probes=probes)
    probes += 1
    if not (yield from probe(good_end)):
        return Found(good=None, bad=round(good_end), probes=probes)
    good, bad = good_end, bad_end
    while abs(good - bad) > max(1.0, tolerance * max(abs(good), abs(bad))):
        middle = (good + bad) / 2
        probes += 1
        if (yield from probe(middle)):
            good = middle
        else:
            bad = middle
    return Found(good=round(good), bad=round(bad), probes=probes)


def in_bytes_or_hertz(quantity, value):
    return units.rate(value) if quantity == "rate" else units.size(value)
