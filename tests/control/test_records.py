"""Log lines as records: parsing, search, order, folding of repeats, and limits."""

import asyncio
import json
import logging
import os
import sys

import pytest
from rodeo.control import log_setup
from rodeo.control.processes import log_records
from rodeo.control.processes.log_records import Marks, Wanted, folded, found_in, in_order, record_of
from rodeo.control.processes.log_search import Logs

S = 10**9


def line(time_ns=1, message="hello", **more):
    return json.dumps(
        {
            "time_ns": time_ns,
            "level": "info",
            "audience": "expert",
            "process": "p",
            "pid": 1,
            "message": message,
            **more,
        },
        separators=(",", ":"),
    )


def record(message="x", *, time_ns=1, process="p", level="info", run=None, repeats=0):
    return {
        "time_ns": time_ns,
        "level": level,
        "audience": "expert",
        "run": run,
        "process": process,
        "message": message,
        "fields": {},
        "repeats": repeats,
    }


@pytest.mark.parametrize("text", ["", "no JSON", "[1]", "7", "null", '{"message": 5}', "{}", "[" * 5000, '"message"'])
def test_what_is_no_record_is_none(text):
    assert record_of(text, "p") is None


@pytest.mark.parametrize(
    ("said", "member", "is_"),
    [
        ({"level": "loud"}, "level", "info"),
        ({"audience": 5}, "audience", "expert"),
        ({"time_ns": -1}, "time_ns", None),
        ({"time_ns": "1"}, "time_ns", None),
        ({"run": True}, "run", None),
        ({"run": 2**40}, "run", None),
        ({"fields": [1]}, "fields", {}),
        ({"fields": {"a": [1]}}, "fields", {"a": "[1]"}),
        ({"repeats": -3}, "repeats", 0),
        ({"message": "y" * 10**5}, "message", "y" * log_records.LONGEST_MESSAGE),
    ],
)
def test_a_record_has_all_its_members_whatever_a_line_says(said, member, is_):
    found = record_of(json.dumps({"message": "x", **said}), "readout-1")
    assert found[member] == is_ and found["process"] == "readout-1" and set(found) == set(record())


@pytest.mark.parametrize(
    ("wanted", "takes"),
    [
        ({}, True),
        ({"level": "warning"}, True),
        ({"level": "error"}, False),
        ({"audience": "operator"}, False),
        ({"audience": "expert"}, True),
        ({"search": "DARK"}, True),
        ({"search": "0x10"}, True),
        ({"search": "light"}, False),
        ({"run": 7}, True),
        ({"run": 8}, False),
        ({"run": 8, "since_ns": 0}, False),
        ({"since_ns": 5}, True),
        ({"since_ns": 6}, False),
        ({"until_ns": 4}, False),
        ({"run": 7, "since_ns": 1, "after_ns": 5}, True),
        ({"run": 7, "since_ns": 1, "after_ns": 6}, False),
    ],
)
def test_what_is_looked_for(wanted, takes):
    said = {**record("link is dark", time_ns=5, level="warning", run=7), "fields": {"fid": "0x10"}}
    assert Wanted(**wanted).matches(said) is takes


def test_a_line_without_a_number_belongs_to_the_run_that_was_open():
    span = Wanted(run=7, since_ns=10, until_ns=20)
    assert [span.matches(record(time_ns=time_ns)) for time_ns in (9, 10, 20, 21, None)] == [
        False,
        True,
        True,
        False,
        False,
    ]
    assert not Wanted(run=7).matches(record()), "the time of the run is unknown"
    assert Wanted.from_json({**span.as_json(), "lines": 0}) == Wanted(run=7, since_ns=10, until_ns=20, lines=1)
    assert (
        Wanted.from_json({"level": 5, "run": "7", "lines": "many"}) == Wanted() and Wanted.from_json(None) == Wanted()
    )


def test_who_follows_the_log_of_a_run_is_told_each_line_once():
    said = [
        record(text, time_ns=time_ns, run=number)
        for text, time_ns, number in (
            ("its own before", 8, 7),
            ("somebody's before", 9, None),
            ("its own", 12, 7),
            ("somebody's", 13, None),
            ("its own behind", 25, 7),
            ("another run's", 26, 8),
        )
    ]
    asked = []

    class Room(Logs):
        def __init__(self):
            pass

        async def lines_of(self, since_ns):
            return await self.lines(run=7, since_ns=since_ns)

        async def _span_of(self, run):
            return {"run": run, "since_ns": 10, "until_ns": 20}

        async def _own(self, process, wanted):
            asked.append(wanted)
            return [each for each in said if wanted.matches(each)]

        c = type("Controller", (), {"hosts": {}})

    told, since_ns = [], None
    for _ in range(3):
        found = asyncio.run(Room().lines_of(since_ns))
        told += [each["message"] for each in found]
        since_ns = max([since_ns or 0, *(each["time_ns"] + 1 for each in found)])
    assert (
        told == ["its own before", "its own", "somebody's", "its own behind"]
        and Wanted.from_json(asked[-1].as_json()) == asked[-1]
    )


def written(directory, structured=(), plain=(), older=()):
    for name, lines in (("p.jsonl", structured), ("p.jsonl.1", older), ("p.log", plain)):
        if lines:
            (directory / name).write_text("".join(f"{each}\n" for each in lines))
    return directory / "p.log"


def test_both_files_and_the_words_for_people_make_one_list_and_nothing_is_there_twice(tmp_path):
    log = written(
        tmp_path,
        structured=[line(30 * S, "third"), line(40 * S, "fourth"), '{"time_ns": 1, "mess'],
        older=[line(10 * S, "first"), line(20 * S, "second")],
        plain=[
            "2026-11-25 22:14:38.123 info third",
            "error[card.gone]: the card is gone",
            "==4711==ERROR: AddressSanitizer",
            "metrics at http://127.0.0.1:9464",
        ],
    )
    marks = Marks()
    size = os.stat(log).st_size
    marks.note(0, 5 * S)
    marks.note(size - 33, 35 * S)
    marks.note(size, 45 * S)
    found = found_in(log, "p", Wanted(), marks.known())
    assert [each["message"] for each in found] == [
        "first",
        "second",
        "third",
        "==4711==ERROR: AddressSanitizer",
        "fourth",
        "metrics at http://127.0.0.1:9464",
    ]
    assert (
        [each["level"] for each in found][3] == "error"
        and found[3]["audience"] == "operator"
        and found[3]["time_ns"] == 35 * S
    )
    assert [each["message"] for each in found_in(log, "p", Wanted(lines=2), marks.known())] == [
        "fourth",
        "metrics at http://127.0.0.1:9464",
    ]
    assert [each["message"] for each in found_in(log, "p", Wanted(search="SECOND"), marks.known())] == ["second"]


def test_a_program_that_writes_no_json_is_heard(tmp_path):
    log = written(tmp_path, plain=["12:00:01 I begins", "Traceback (most recent call last):"])
    assert [(each["message"], each["level"], each["time_ns"]) for each in found_in(log, "p", Wanted())] == [
        ("12:00:01 I begins", "info", None),
        ("Traceback (most recent call last):", "error", None),
    ]
    assert found_in(tmp_path / "none.log", "p", Wanted()) == []
    (tmp_path / "p.log").write_text("0:00:30  triggers 1.02 kHz  lost 0  limited by nothing\n")
    assert [(each["level"], each["audience"]) for each in found_in(log, "p", Wanted())] == [("debug", "developer")], (
        "lines that come every five seconds are for developers"
    )


def test_a_search_reads_no_more_than_it_may(tmp_path):
    log = written(tmp_path, structured=[line(number, f"line {number}") for number in range(1, 20_001)])
    found = found_in(log, "p", Wanted(lines=20_000), budget=100_000)
    assert 500 < len(found) < 1500 and found[-1]["message"] == "line 20000"
    assert (
        found[0]["message"].startswith("older lines were not searched") and found[0]["time_ns"] == found[1]["time_ns"]
    )
    assert [each["level"] for each in found_in(log, "p", Wanted(search="line 3"), budget=100_000)] == ["warning"], (
        "also if nothing is found"
    )
    assert len(found_in(log, "p", Wanted(lines=20), budget=100_000)) == 20
    assert [each["message"] for each in found_in(log, "p", Wanted(search='"'))] == []


def test_a_run_of_last_week_is_found_behind_what_was_said_since(tmp_path):
    log = written(
        tmp_path,
        structured=[line(number * S, f"line {number}") for number in range(20_000)],
        older=[line(1, "long ago")],
    )
    found = found_in(log, "p", Wanted(run=7, since_ns=1000 * S, until_ns=1002 * S), budget=400_000)
    assert [each["message"] for each in found] == ["line 1000", "line 1001", "line 1002"]


def test_plain_lines_beyond_the_bound_are_not_said_to_be_none(tmp_path, monkeypatch):
    log = written(tmp_path, plain=[f"line {number}" for number in range(1000)])
    marks = Marks()
    marks.note(0, 1)
    marks.note(os.stat(log).st_size, 5 * S)
    monkeypatch.setattr(log_records, "LONGEST_PLAIN", 1000)
    assert [each["message"].split()[0] for each in found_in(log, "p", Wanted(search="line 3"), marks.known())] == [
        "older"
    ]
    assert found_in(log, "p", Wanted(search="line 3", since_ns=6 * S), marks.known()) == [], (
        "the whole requested range was searched"
    )


def test_lines_are_read_backwards_whole_over_the_borders_of_blocks(tmp_path, monkeypatch):
    (tmp_path / "x").write_text("first\n\nsecond is longer\nthird")
    for block in range(1, 40):
        monkeypatch.setattr(log_records, "BLOCK", block)
        found = list(log_records.lines_backwards(tmp_path / "x", 10**6))
        assert found == [(b"third", 29), (b"second is longer", 23), (b"first", 5)], block


def test_the_time_of_a_line_is_when_the_file_was_first_seen_so_long():
    marks = Marks(most=3)
    for size, now_ns in ((10, 1), (10, 2), (20, 3), (30, 4), (40, 5)):
        marks.note(size, now_ns)
    assert [log_records.time_of(marks.known(), end) for end in (5, 20, 21, 40, 41)] == [None, None, 4, 5, 5], (
        "the time of the first lines is unknown"
    )
    marks.note(7, 9)
    assert [log_records.time_of(marks.known(), end) for end in (5, 7)] == [9, 9], (
        "the file was truncated and starts again"
    )
    assert log_records.time_of(([], []), 1) is None


def test_a_plain_line_that_was_there_before_anybody_looked_is_of_no_run(tmp_path):
    log = written(tmp_path, plain=["the cause of last week"])
    marks = Marks()
    marks.note(os.stat(log).st_size, 15 * S)
    assert [each["time_ns"] for each in found_in(log, "p", Wanted(), marks.known())] == [None]
    assert found_in(log, "p", Wanted(run=7, since_ns=10 * S, until_ns=20 * S), marks.known()) == []


def test_lines_of_several_processes_are_in_order_of_time_and_one_without_stays_with_its_neighbours():
    together = [
        record("a", time_ns=5),
        record("b", time_ns=None),
        record("c", time_ns=9),
        record("d", time_ns=7, process="q"),
    ]
    assert [each["message"] for each in in_order(together)] == ["a", "b", "d", "c"]


def test_repeats_of_a_process_are_folded_into_the_last_of_them():
    said = [
        record("event 1 built", time_ns=1),
        record("other", time_ns=2, process="q"),
        record("event 2 built", time_ns=3, repeats=4),
        record("end", time_ns=4),
        record("event 3 built", time_ns=5),
        record("event 3 built", time_ns=6, level="error"),
    ]
    assert [(each["message"], each["repeats"], each.get("first_ns")) for each in folded(said)] == [
        ("other", 0, None),
        ("event 2 built", 5, 1),
        ("end", 0, None),
        ("event 3 built", 0, None),
        ("event 3 built", 0, None),
    ]


class Clock:
    now_s = 0.0

    def __call__(self):
        return self.now_s


@pytest.fixture
def logger(tmp_path):
    made = logging.Logger("test", logging.DEBUG)
    clock = Clock()
    handler = log_setup.Records("control", tmp_path / "logs" / "control.jsonl", log_setup.Bounded(10.0, 3.0, clock))
    made.addHandler(handler)
    yield made, handler, clock, tmp_path / "logs" / "control.jsonl"
    handler.close()
    log_setup.set_run(None)


def test_python_writes_the_same_lines(logger):
    made, _, _, file = logger
    made.info("%s by %s", "start", "ana", extra={"audience": "operator"})
    log_setup.set_run(7)
    try:
        raise ValueError("so \ud800 bad")
    except ValueError:
        made.exception("a look")
    made.warning("raised", extra={"fields": {"alarm": "disk"}})
    found = [record_of(each, "control") for each in file.read_bytes().splitlines()]
    assert [(each["level"], each["audience"], each["run"], each["message"].splitlines()[0]) for each in found] == [
        ("info", "operator", None, "start by ana"),
        ("error", "operator", 7, "a look"),
        ("warning", "operator", 7, "raised"),
    ]
    assert (
        "ValueError" in found[1]["message"]
        and found[2]["fields"] == {"alarm": "disk"}
        and all(each["time_ns"] > S for each in found)
    )
    assert json.loads(file.read_text().splitlines()[0])["process"] == "control"


def test_python_writes_no_more_than_it_may_and_counts_the_rest(logger):
    made, handler, clock, file = logger
    for number in range(1000):
        made.info("line %d", number)
    assert len(file.read_text().splitlines()) == 3
    clock.now_s = 1.0
    made.info("later")
    assert json.loads(file.read_text().splitlines()[-1])["fields"] == {"left_out_before": "997"}


def test_python_goes_on_when_the_file_cannot_be_written(tmp_path, capsys):
    (tmp_path / "folder").mkdir()
    handler = log_setup.Records("control", tmp_path / "folder")
    made = logging.Logger("test")
    made.addHandler(handler)
    made.warning("said")
    assert handler.lost == 1 and capsys.readouterr().err == ""


def test_python_talks_on_without_the_library_that_writes_json(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "structlog.stdlib", None)
    root = logging.getLogger()
    before = list(root.handlers)
    log_setup.begin("agent", tmp_path / "agent.jsonl")
    assert not [
        handler for handler in root.handlers if isinstance(handler, log_setup.Records) and handler not in before
    ]


def test_one_that_repeats_itself_hides_nobody(tmp_path):
    (tmp_path / "p.jsonl").write_text(
        "".join(line(1000 + number, f"event {number} built") + "\n" for number in range(500))
    )
    (tmp_path / "q.jsonl").write_text(line(5, "the disk is full") + "\n")
    logs = {name: (tmp_path / f"{name}.log", ((), ())) for name in "pq"}
    assert [
        (each["process"], each["repeats"]) for each in log_records.newest(logs, Wanted(lines=60, fold=True), 10**7)
    ] == [("q", 0), ("p", 499)]
    assert {each["process"] for each in log_records.newest(logs, Wanted(lines=60), 10**7)} == {"p"}
