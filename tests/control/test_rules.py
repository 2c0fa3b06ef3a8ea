"""Alarm rules: changes of built-in rules by a system file, its own rules, gone values, shelves, tests."""

import json
import re
from dataclasses import replace
from types import SimpleNamespace

import pytest
from conftest import BUILD, ROOT
from looking import row, seen
from rodeo.control.processes.external_programs import External, parsed_selector, values_of
from rodeo.control.processes.host_health import certain, offset_of
from rodeo.control.processes.sensors import temperatures
from rodeo.control.refused import Refused
from rodeo.control.state import rules as rules_module
from rodeo.control.state.alarms import Book, Condition
from rodeo.control.state.conditions import conditions
from rodeo.control.state.document import NUMBERS
from rodeo.control.state.rules import BUILT_IN, rules_of
from rodeo.control.state.snapshots import Memory
from rodeo.control.state.system import External as Entry
from rodeo.control.state.system import load
from rodeo.control.state.system_rules import Watch, at_path
from rodeo.control.state.system_state import derive

RUNNING = ("running", "running", "running")
MIN = 60 * 10**9


def found(rules, numbers=None, words=RUNNING, **given):
    looks = seen(*words)
    derived = derive(looks, row())
    return {one.cause: one for one in conditions(derived, looks, numbers or {}, run=row(), rules=rules, **given)}


def test_a_system_file_changes_what_it_says_of_a_built_in_rule_and_no_more():
    rules = rules_of(
        [
            {"name": "dead_time", "limit": 0.2, "priority": "alarm", "times": 2, "of_last": 9},
            {"name": "incomplete", "enabled": False},
            {"name": "stall", "do": "call Ana"},
            {"name": "back_pressure", "hold": 4.0},
        ]
    )
    got = found(
        rules,
        {"dead_time_fraction": 0.3, "incomplete_ppm": 1e6, "trigger_rate_hz": 9.0},
        process_numbers={"readout-1": {"rate_hz": 0}},
        limited_by={"process": "x", "stage": "y"},
    )
    assert set(got) == {"dead_time", "stall:readout-1", "back_pressure:x"}
    assert (got["dead_time"].severity, got["dead_time"].needs, got["dead_time"].limit) == ("alarm", (2, 9), 0.2)
    assert (
        got["stall:readout-1"].do == "call Ana"
        and got["stall:readout-1"].severity == "alarm"
        and got["stall:readout-1"].needs == BUILT_IN["stall"].needs
    )
    assert got["back_pressure:x"].needs == (5, 5), "four seconds contain five looks"
    assert found(rules, {"dead_time_fraction": 0.1}) == {}


def test_every_built_in_rule_says_when_and_what_to_do():
    for rule in BUILT_IN.values():
        assert rule.about and rule.do and rule.severity in (None, "alarm", "warning"), rule.name
        assert ("{limit}" in rule.expression) == (rule.limit is not None), rule.name


@pytest.mark.parametrize(
    ("host", "sensors", "cause"),
    [("far", {"core": 91.0, "chip": 86.0}, "temperature:far"), ("far", {"core": 85.0}, None), ("far", {}, None)],
)
def test_what_is_too_hot(host, sensors, cause):
    got = found(rules_module.DEFAULT, temperatures={host: sensors})
    assert set(got) == ({cause} if cause else set()) and (not cause or "core" in got[cause].what)


@pytest.mark.parametrize(
    ("answers", "off"),
    [
        ([(0, 5_000_000, 2_000_000)], 0.003),  # 4 ms ahead; with an answer after 2 ms, at least 3 ms
        ([(0, 5_000_000, 2_000_000), (10_000_000, 10_100_000, 10_200_000)], 0.0),  # the faster answer is more precise
        ([(0, 100_000, 10_000_000)], 0.0),
        ([(5, 5, 1)], None),
        ([], None),
    ],
)
def test_a_clock_is_off_by_what_the_quickest_answer_shows(answers, off):
    assert certain(*offset_of(answers)) == (None if off is None else pytest.approx(off))
    got = found(rules_module.DEFAULT, clocks={"far": certain(*offset_of(answers))})
    assert ("clock:far" in got) == (off is not None and off > 0.001)


def test_sensors_are_named_as_in_the_metrics_of_processes(tmp_path):
    chip = tmp_path / "sys/class/hwmon/hwmon0"
    chip.mkdir(parents=True)
    for name, text in (
        ("name", "coretemp\n"),
        ("temp1_input", "45500\n"),
        ("temp1_label", "Core 0\n"),
        ("temp2_input", "-5000\n"),
        ("temp3_input", "no\n"),
        ("fan1_input", "900\n"),
    ):
        (chip / name).write_text(text)
    assert temperatures(tmp_path) == {"coretemp Core 0 (hwmon0/temp1)": 45.5, "coretemp sensor (hwmon0/temp2)": -5.0}
    assert temperatures(tmp_path / "nowhere") == {}


# Rules of the system file
def own(**table):
    return rules_of([{"name": "mine", **table}])


def watched(
    watch,
    now_s=0.0,
    *,
    words=RUNNING,
    numbers=None,
    process_numbers=None,
    statuses=None,
    externals=(),
    running=True,
    without=(),
):
    looks = seen(*words)
    looks = tuple(replace(one, status=(statuses or {}).get(one.name, {})) for one in looks)
    derived = derive(looks, row(), None, Memory(without=frozenset(without)))
    watch.update(
        now_s,
        running=running,
        numbers=numbers,
        looks=looks,
        phases=derived.phases,
        left_out=derived.left_out,
        process_numbers=process_numbers,
        externals={one.name: one for one in externals},
    )
    return {
        one.cause: one
        for one in conditions(derived, looks, {}, run=row(), watch=watch, externals=externals, rules=watch.rules)
    }


@pytest.mark.parametrize(
    ("table", "values", "raised"),
    [
        ({"value": "events", "limit": 5, "comparison": "<"}, {"numbers": {"events": 4}}, {"mine"}),
        ({"value": "events", "limit": 5, "comparison": "<"}, {"numbers": {"events": 5}}, set()),
        (
            {"of": "readout", "value": "rate_hz", "limit": 5},
            {"process_numbers": {"readout-1": {"rate_hz": 6.0}, "readout-2": {"rate_hz": 5.0}}},
            {"mine:readout-1"},
        ),
        (
            {"of": "readout", "value": "chunks.lost.late", "limit": 5},
            {"statuses": {"readout-1": {"chunks": {"lost": {"late": 6}}}, "readout-2": {"chunks": {"lost": {}}}}},
            {"mine:readout-1"},
        ),
        (
            {"of": "readout", "value": "queue_fill.*", "limit": 0.9},
            {"statuses": {"readout-1": {"queue_fill": {"a": 0.1, "b": 0.95}}}},
            {"mine:readout-1"},
        ),
        (
            {"of": "readout", "value": "robs.*.pool_fill", "limit": 0.5, "comparison": "<"},
            {"statuses": {"readout-1": {"robs": [{"pool_fill": 0.9}, {"pool_fill": 0.4}]}}},
            {"mine:readout-1"},
        ),
        ({"value": "events", "limit": 5, "comparison": "<", "enabled": False}, {"numbers": {"events": 4}}, set()),
        ({"value": "events", "limit": 5, "comparison": "<"}, {"numbers": {"events": 4}, "running": False}, set()),
        (
            {"value": "events", "limit": 5, "comparison": "<", "when": "always"},
            {"numbers": {"events": 4}, "running": False},
            {"mine"},
        ),
    ],
)
def test_what_a_rule_looks_at(table, values, raised):
    assert set(watched(Watch(own(**table)), **values)) == raised


@pytest.mark.parametrize(
    ("when", "raised"), [("running", {"mine:readout-2"}), ("always", {"mine:readout-1", "mine:readout-2"})]
)
def test_a_rule_for_a_run_does_not_look_at_what_the_run_continues_without(when, raised):
    watch = Watch(own(of="readout", value="rate_hz", limit=5, comparison="<", when=when))
    slow = {"readout-1": {"rate_hz": 0.0}, "readout-2": {"rate_hz": 1.0}}
    assert set(watched(watch, process_numbers=slow, without=["readout-1"])) == raised


def test_what_a_rule_says_is_what_it_was_told_to():
    watch = Watch(
        own(
            of="readout",
            value="rate_hz",
            limit=5.0,
            text="{process} has {value} Hz, more than {limit}",
            do="look",
            priority="alarm",
            times=2,
            of_last=3,
        )
    )
    one = watched(watch, process_numbers={"readout-1": {"rate_hz": 6.5}})["mine:readout-1"]
    assert (one.what, one.do, one.severity, one.needs, one.value, one.limit, one.process) == (
        "readout-1 has 6.5 Hz, more than 5",
        "look",
        "alarm",
        (2, 3),
        6.5,
        5.0,
        "readout-1",
    )
    assert rules_module.BUILT_IN["dead_time"].severity == "warning"


def test_a_counter_is_looked_at_by_how_fast_it_grows():
    watch = Watch(own(of="readout", value="chunks.lost.late", limit=10, per_second=True))

    def after(now_s, late):
        return set(watched(watch, now_s, statuses={"readout-1": {"chunks": {"lost": {"late": late}}}}))

    assert after(0.0, 1000) == set() and after(2.0, 1019) == set() and after(4.0, 1045) == {"mine:readout-1"}
    assert after(4.1, 1045) == {"mine:readout-1"}, "the difference is too small"
    assert after(6.0, 5) == set(), "the counter restarted"


def test_acceptance_19_a_value_that_was_there_and_is_gone_is_an_alarm_while_its_process_runs():
    watch = Watch(own(of="readout", value="queue_fill.a", limit=2, gone="alarm"))
    assert watched(watch) == {}, "the value has never existed"
    assert watched(watch, 1.0, statuses={"readout-1": {"queue_fill": {"a": 0.5}}}) == {}
    gone = watched(watch, 2.0)
    assert set(gone) == {"metric.gone:mine:readout-1"} and gone["metric.gone:mine:readout-1"].severity == "alarm"
    assert watched(watch, 3.0, words=("running", "done", "running")).keys() == {"process.ended:readout-1"}
    assert watched(watch, 4.0) == {}, "after a restart"
    quiet = Watch(own(value="events", limit=2, gone="nothing"))
    watched(quiet, numbers={"events": 1})
    assert watched(quiet, 1.0) == {}


@pytest.mark.parametrize(
    ("value", "path", "is_"),
    [
        ({"a": {"b": 3}}, "a.b", [3.0]),
        ({"a": [{"b": 1}, {"b": 2}, {}]}, "a.*.b", [1.0, 2.0]),
        ({"a": [5, 6]}, "a.1", [6.0]),
        ({"a": True}, "a", [1.0]),
        ({"a": "x"}, "a", []),
        ({}, "a.b", []),
        ({"a": 3}, "a.b.*", []),
        ({"a": float("inf")}, "a", []),
    ],
)
def test_a_path_into_a_status(value, path, is_):
    assert at_path(value, path.split(".")) == is_


# External programs
EXPORTER = """
# HELP hv_volts Voltage of a channel.
# TYPE hv_volts gauge
hv_volts{channel="1",crate="a \\"b\\""} 1500.5
hv_volts{channel="2",crate="c"} 1400
hv_trips_total 3
hv_bad NaN
"""


def external(text=None, form="prometheus", keep=()):
    one = External(Entry("hv", "http://hv:1/metrics", form, keep=tuple(keep)))
    if text is not None:
        one.took(values_of(text, form), 5)
    return one


@pytest.mark.parametrize(
    ("selector", "values"),
    [
        ("hv_volts", [1500.5, 1400.0]),
        ('hv_volts{channel="2"}', [1400.0]),
        ('hv_volts{crate="a \\"b\\"", channel="1"}', [1500.5]),
        ('hv_volts{channel="3"}', []),
        ("hv_trips_total", [3.0]),
        ("hv_bad", []),
        ("nothing", []),
        ("hv_volts{channel=2}", []),
    ],
)
def test_a_metric_is_chosen_by_name_and_labels(selector, values):
    assert external(EXPORTER).find(selector) == values


def test_json_is_chosen_by_its_path():
    one = external('{"crate": {"volts": [1500, 1400], "on": true, "name": "a"}}', "json", keep=["crate.on"])
    assert one.find("crate.volts.1") == [1400.0] and one.find("crate.name") == [] and one.kept() == {"crate.on": 1.0}


@pytest.mark.parametrize(
    ("text", "form"),
    [
        ("", "prometheus"),
        ("{ is this", "prometheus"),
        ("<html>", "prometheus"),
        ("", "json"),
        ("[" * 5000, "json"),
        ('{"a": "b"}', "json"),
        ("{a b} 1 2 3 4", "prometheus"),
    ],
)
def test_what_is_no_answer_is_said(text, form):
    with pytest.raises(ValueError, match="."):
        values_of(text, form)


def test_what_is_kept_with_a_run():
    assert external(EXPORTER, keep=["hv_trips_total", 'hv_volts{channel="2"}', "nothing"]).kept() == {
        "hv_trips_total": 3.0,
        'hv_volts{channel="2",crate="c"}': 1400.0,
    }


def test_values_of_external_programs_raise_alarms_and_so_does_their_silence():
    rules = own(of="hv", value="hv_volts", limit=1450, comparison="<", when="always")
    watch, one = Watch(rules), external()
    assert watched(watch, externals=[one]) == {}, "the program has not been asked yet"
    one.took(values_of(EXPORTER, "prometheus"), 5)
    raised = watched(watch, externals=[one])
    assert set(raised) == {"mine:hv"} and raised["mine:hv"].value == 1400.0, "the worse of two values"
    one.took(values_of("other 1", "prometheus"), 6)
    assert set(watched(watch, externals=[one])) == {"metric.gone:mine:hv"}, "it answers without this value"
    one.failed("no answer")
    assert set(watched(watch, externals=[one])) == {"external:hv"}
    assert external().as_json()["state"] == "unknown" and one.as_json()["state"] == "silent"


def test_a_metric_that_never_was_there_is_gone_too_for_its_name_may_be_wrong():
    watch = Watch(own(of="hv", value="hv_vlots", limit=1, when="always"))
    assert set(watched(watch, externals=[external(EXPORTER)])) == {"metric.gone:mine:hv"}


def test_selectors():
    assert parsed_selector(' a:b { c = "d,e" , f="g" } ') == ("a:b", {"c": "d,e", "f": "g"})
    assert [parsed_selector(text) for text in ("", "a{", "1a", 'a{b="c"', "a{b}")] == [None] * 5


# Shelves and tests
DARK = Condition("mine", "warning", "dark")


def test_a_shelved_alarm_asks_for_nothing_until_its_time_is_over():
    book = Book()
    book.evaluate([DARK], 1)
    assert book.shelve("mine", "ana", 30 * MIN).shelved_by == "ana"
    assert not book.standing()[0].asks and book.standing()[0].acked_by is None
    assert book.evaluate([DARK], 29 * MIN) == []
    assert [(kind, one.asks) for kind, one in book.evaluate([DARK], 30 * MIN)] == [("raised", True)], (
        "it must be acknowledged again"
    )


def test_what_comes_and_goes_on_the_shelf_stays_there():
    book = Book()
    book.evaluate([DARK], 1)
    book.shelve("mine", "ana", 30 * MIN)
    assert [(kind, one.acked_by) for kind, one in book.evaluate([], 2)] == [
        ("cleared", "ana"),
        ("gone", "ana"),
    ] and book.standing() == ()
    assert [(kind, one.asks) for kind, one in book.evaluate([DARK], 3)] == [("raised", False)]


def test_what_becomes_worse_leaves_the_shelf():
    book = Book()
    book.evaluate([DARK], 1)
    book.shelve("mine", "ana", 30 * MIN)
    assert [(kind, one.asks) for kind, one in book.evaluate([replace(DARK, severity="alarm")], 2)] == [
        ("raised", True)
    ] and book.shelf() == {}


def test_a_shelf_is_kept_over_a_restart_and_what_is_taken_back_asks_again():
    book = Book()
    book.evaluate([DARK], 1)
    book.shelve("mine", "ana", 30 * MIN)
    kept = [
        {name: value for name, value in one.as_json().items() if not name.startswith("shelved")}
        for one in book.standing()
    ]  # the alarms as the database stores them
    again = Book(json.loads(json.dumps(kept)), json.loads(json.dumps(book.shelf())))
    assert again.standing() == book.standing() and again.evaluate([DARK], 2) == []
    assert again.shelve("mine", "ana", None).asks and again.shelf() == {}
    assert Book([], {"x": 5, "y": {"by": "a"}}).shelf() == {} and Book([], [1]).shelf() == {}


def test_what_is_over_and_shelved_is_seen():
    book = Book()
    book.evaluate([DARK], 1)
    book.evaluate([], 2)
    assert book.shelve("mine", "ana", 30 * MIN, 3).acked_by == "ana" and book.standing() == ()


def test_a_test_alarm_is_as_bad_as_the_real_one_and_says_that_it_is_none():
    one = found(rules_module.DEFAULT, tests=[("stall", "ana"), ("process_lost", "ana")])
    assert (
        one["test:stall"].severity == "alarm"
        and one["test:stall"].what.startswith("TEST by ana of the alarm stall")
        and one["test:stall"].do == BUILT_IN["stall"].do
    )
    assert one["test:process_lost"].severity == "alarm", "if the role decides, the higher priority"


def test_the_rule_of_a_cause_is_known():
    rules = own(value="events", limit=1.0)
    for cause, name in (
        ("dead_time", "dead_time"),
        ("process.lost:readout-1", "process_lost"),
        ("disk.time", "disk_time"),
        ("mine:readout-1", "mine"),
        ("test:mine", "mine"),
        ("x", None),
    ):
        assert (rules.rule_of(cause) or SimpleNamespace(name=None)).name == name, cause


def test_the_check_of_a_system_file_and_the_room_know_the_same_rules_and_numbers():
    source = (ROOT / "src" / "process" / "alarm_configuration.cpp").read_text()
    known = {name: has_limit == "true" for name, has_limit in re.findall(r'BuiltIn\{"(\w+)", (true|false)\}', source)}
    assert known == {rule.name: rule.limit is not None for rule in BUILT_IN.values()}

    def listed(name):
        return set(re.findall(r'"(\w+)"', re.search(rf"{name} = {{(.*?)}};", source, re.DOTALL).group(1)))

    assert listed("kOfSystem") == set(NUMBERS) - {"recording", "farm"}, "these are not single numbers"
    assert listed("kOfProcess") == {"rate_hz", "events", "incomplete", "fill", "cpu", "rss_bytes"}


RULED = """
[control]
name = "lab"
[[control.process]]
name = "watcher"
kind = "program"
command = ["true"]
[[control.external]]
name = "hv"
address = "http://127.0.0.1:9/metrics"
every = "30s"
[[control.alarm]]
name = "dead_time"
limit = 0.2
[[control.alarm]]
name = "mine"
of = "hv"
value = 'volts{channel="1"}'
comparison = "<="
limit = -3.5
hold = "2500ms"
do = "a \\"quoted\\" word"
"""


def test_rules_of_a_system_file_come_through_its_check(tmp_path):
    (tmp_path / "system.toml").write_text(RULED)
    lab = load(tmp_path / "system.toml", BUILD / "rodeo", check_classes=False)
    assert [(one.name, one.address, one.every_s, one.timeout_s, one.keep) for one in lab.externals] == [
        ("hv", "http://127.0.0.1:9/metrics", 30.0, 2.0, ())
    ]
    mine = lab.rules["mine"]
    assert (mine.of, mine.value, mine.comparison, mine.limit, mine.needs, mine.do, mine.severity, mine.own) == (
        "hv",
        'volts{channel="1"}',
        "<=",
        -3.5,
        (4, 4),
        'a "quoted" word',
        "warning",
        True,
    )
    assert lab.rules["dead_time"] == replace(BUILT_IN["dead_time"], limit=0.2), "nothing else of it has changed"
    (tmp_path / "system.toml").write_text(RULED + '\n[[control.alarm]]\nname = "ded_time"\nlimit = 1\n')
    with pytest.raises(Refused) as refused:
        load(tmp_path / "system.toml", BUILD / "rodeo", check_classes=False)
    assert re.search(r"system.toml:\d+:\d+", refused.value.what) and "did you mean `dead_time`" in refused.value.next
