"""All that people read fits a terminal of 80 columns: each help text, the tables of a run, of files and of cards, and the report."""

import re

import pytest
from emulated_cards import emulated
from running_readout import running, write_configuration
from terminal import on_a_terminal, screen

COLUMNS = 80


def wide(text):
    """The lines on the screen that are wider than the terminal. A path or a hash alone on its line cannot be broken."""
    lines = [re.sub(r"\x1b\[[\d;]*m", "", line) for line in screen(text)]
    return [line for line in lines if len(line) > COLUMNS and " " in line.strip()]


def verbs_below(rodeo, path):
    text = on_a_terminal(rodeo, *path, "--help", columns=COLUMNS)
    assert not wide(text), path
    found = re.search(r"^Verbs\n((?:  .*\n)+)", text, re.MULTILINE)
    for name in re.findall(r"^  (\S+)  ", found[1], re.MULTILINE) if found else ():
        yield from verbs_below(rodeo, [*path, name])
    yield path


def test_the_help_of_every_verb_fits(rodeo):
    rodeo.environment["NO_COLOR"] = "1"
    assert len(list(verbs_below(rodeo, []))) > 100


def test_tables_and_report_of_a_run_fit(rodeo):
    rodeo.environment["NO_COLOR"] = "1"
    faults = ("readout.input.fault_late=0.01", "readout.input.fault_duplicate=0.01", "readout.input.fault_missing=0.02")
    with running(rodeo, *faults) as run:
        run.wait_until(lambda status: status["chunks"]["lost"].get("late"), "chunks are lost")
        for verb in (["readout", "status"], ["readout", "link", "list"], ["top", "--once", "--interval", "10ms"]):
            assert not wide(on_a_terminal(rodeo, *verb, columns=COLUMNS)), verb
        run.finish()
    report = on_a_terminal(rodeo, "readout", write_configuration(rodeo), "--seconds", 0.5, "--set", "run.number=8")
    assert not wide(report), wide(report)
    assert re.search(r"^  file +\d+ events in\s+/.*files/.*\.data$", report, re.MULTILINE), "the report names the file"
    for verb in (["info"], ["list"], ["verify"], ["recover"]):
        said = on_a_terminal(rodeo, "data", *verb, next((rodeo.directory / "files").glob("*.data")), columns=COLUMNS)
        assert not wide(said), verb


def test_tables_of_cards_fit(rodeo):
    with emulated(rodeo):
        for verb in (["card", "list"], ["card", "status"], ["emulate", "status"]):
            assert not wide(on_a_terminal(rodeo, *verb, columns=COLUMNS)), verb


@pytest.mark.parametrize(
    "verb",
    [
        ["doctor", "--disk-time", "0"],
        ["explain", "late"],
        ["explain", "readout.builder"],
        ["net", "formula", "--event-size", "5MB", "--rate", "12kHz"],
        ["no-verb"],
    ],
)
def test_other_verbs_fit(rodeo, verb):
    assert not wide(on_a_terminal(rodeo, *verb, columns=COLUMNS, exit_code=2 if verb == ["no-verb"] else 0))


def test_a_long_line_of_the_log_leaves_nothing_of_the_view_beside_it(rodeo):
    text = on_a_terminal(
        rodeo,
        "readout",
        write_configuration(rodeo),
        "--seconds",
        3,
        "--set",
        "readout.input.jump_link=2",
        "--set",
        "readout.input.jump_from=500",
        columns=COLUMNS,
    )
    last = screen(text)
    start = next(i for i, line in enumerate(last) if "warning link 0x1000000000020000" in line)
    logged = " ".join(line.strip() for line in last[start : start + 4])
    assert not wide(text)
    assert "dead time" not in logged.split("run 7 of test")[0] and "chunks  " not in logged.split("run 7 of test")[0]
