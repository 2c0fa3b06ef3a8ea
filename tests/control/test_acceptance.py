"""Every acceptance point of the control room has tests test_acceptance_NUMBER_..., so that `pytest -k acceptance_10_` proves one point."""

import re

from conftest import ROOT

POINTS = {
    1: "one command: emulator, readout, page",
    2: "shell, Python, browser: equal rows of the audit",
    3: "the controller is killed: no event is lost, the next one adopts the run",
    4: "an essential process is killed: the trigger is held, the run is INTERRUPTED, the first cause is named",
    5: "SIGSTOP: lost; SIGCONT heals",
    6: "an expendable one is restarted, and not a fourth time",
    7: "an essential one is missing: the start is refused by name",
    8: "a start that fails leaves no process and no open row",
    9: "a stop without triggers ends",
    10: "a slow recorder: OVERDUE names it, nothing is killed",
    11: "sent = built + lost over all processes",
    12: "two starts at once: one number, the other exits with 5",
    13: "a stale lease is refused",
    14: "a bad origin, host, CSRF number or token: 403, audited",
    15: "a viewer cannot command",
    16: "a page that hears nothing is STALE, and heals",
    17: "the disk's limit stops a run in order",
    18: "acknowledgements survive a restart",
    19: "a metric that is gone is an alarm",
    20: "a thousand log lines a second harm nothing (how old and large things are: bench/control_room.py --log-lines 1000)",
    21: "the database is down: a run ends whole, and is replayed",
    22: "two slurmd: drain, scancel, a crash with its core, an empty cgroup afterwards",
    23: "axe-core finds nothing; a cycle by keyboard alone",
    24: "nothing is asked of anybody else; under 300 kB",
    25: "the exact configuration of a run is rebuilt",
}
TESTS = [*(ROOT / "tests" / "control").glob("test_*.py"), *(ROOT / "tests" / "system").glob("test_*.py")]


def test_every_point_has_tests_named_after_it():
    named = {
        int(number)
        for file in TESTS
        for number in re.findall(r"^def test_acceptance_(\d+)_", file.read_text(), re.MULTILINE)
    }
    assert {number: POINTS.get(number, "no point") for number in named ^ set(POINTS)} == {}
