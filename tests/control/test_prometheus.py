"""The rules of a system for Prometheus, their metrics, and the dashboard: all are generated, so that they stay consistent."""

import json
import re
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from conftest import ROOT
from looking import SYSTEM, row, seen
from rodeo.control.cli import prometheus_files
from rodeo.control.state import room_metrics
from rodeo.control.state.alarms import Alarm
from rodeo.control.state.conditions import conditions
from rodeo.control.state.document import build
from rodeo.control.state.rules import BUILT_IN, rules_of
from rodeo.control.state.system_rules import Found
from rodeo.control.state.system_state import derive
from test_derive import READY

MINE = [
    {
        "name": "hv_low",
        "of": "hv",
        "value": "hv_volts",
        "comparison": "<",
        "limit": 1450.0,
        "times": 3,
        "of_last": 5,
        "priority": "alarm",
        "text": "the voltage is low",
        "do": "call",
    },
    {"name": "dead_time", "limit": 0.2},
    {"name": "link", "enabled": False},
]
LAB = replace(SYSTEM, name="lab", rules=rules_of(MINE), file=Path("/lab/system.toml"))
RUN = ('rodeo_room_state{system="lab",state="RUNNING"}', "1x200")


def document(**given):
    looks = seen("running", "killed", "running")
    derived = derive(looks, row(), None, READY)
    return build(
        sequence=1,
        time_ns=10**18,
        system=LAB,
        build="r1",
        derived=derived,
        since_ns=1,
        looks=looks,
        run=row(),
        memory=READY,
        **given,
    )


def samples(text):
    return {
        line.rsplit(" ", 1)[0]: float(line.rsplit(" ", 1)[1]) for line in text.splitlines() if not line.startswith("#")
    }


def test_the_room_says_what_it_knows():
    numbers = {
        "trigger_rate_hz": 1000.0,
        "dead_time_fraction": None,
        "chunks": {"sent": 5, "built": 4, "lost": {"late": 1}},
    }
    text = room_metrics.text(
        document(
            numbers=numbers,
            limited_by={"process": "readout-1", "stage": 'a "b"\\'},
            alarms=(
                Alarm("process.failed:x", "alarm", 1, "x"),
                Alarm("hv_low:hv", "warning", 1, "y", shelved_by="ana"),
            ),
        ),
        rules=LAB.rules,
        system=LAB,
        found=(Found(LAB.rules["hv_low"], "hv", 1400.0),),
        clocks={"far": 0.002, "new": None},
        temperatures={"far": {"core": 45.5}},
    )
    got = samples(text)
    assert (
        got['rodeo_room_state{system="lab",state="RUNNING"}'] == 1
        and got['rodeo_room_state{system="lab",state="OFF"}'] == 0
    )
    assert (
        got['rodeo_room_trigger_rate_hz{system="lab"}'] == 1000
        and 'rodeo_room_dead_time_fraction{system="lab"}' not in got
    ), "an unknown value is not 0"
    assert got['rodeo_room_chunks_lost{system="lab",reason="late"}'] == 1
    assert got['rodeo_room_limited_by{system="lab",process="readout-1",stage="a \\"b\\"\\\\"}'] == 1
    assert (
        got[
            'rodeo_room_process_phase{system="lab",process="readout-1",class="readout",kind="readout",host="local",phase="failed"}'
        ]
        == 1
    )
    assert (
        got[
            'rodeo_room_alarm{system="lab",cause="process.failed:x",rule="process_failed",severity="alarm",asks="true"}'
        ]
        == 1
    )
    assert got['rodeo_room_alarm{system="lab",cause="hv_low:hv",rule="hv_low",severity="warning",asks="false"}'] == 1
    assert (
        got['rodeo_room_rule_value{system="lab",rule="hv_low",subject="hv"}'] == 1400
        and got['rodeo_room_host_clock_offset_seconds{system="lab",host="far"}'] == 0.002
    )
    assert 'rodeo_room_host_clock_offset_seconds{system="lab",host="new"}' not in got
    assert room_metrics.text({"sequence": 0, "time_ns": 1}, rules=LAB.rules, system=LAB) == ""


def test_prometheus_own_library_reads_it():
    from prometheus_client.parser import text_string_to_metric_families

    families = {
        family.name: family
        for family in text_string_to_metric_families(room_metrics.text(document(), rules=LAB.rules, system=LAB))
    }
    assert set(families) == {metric.name for metric in room_metrics.METRICS}
    assert all(family.documentation and family.type == "gauge" for family in families.values())


def test_rules_look_at_metrics_that_there_are():
    names = {metric.name for metric in room_metrics.METRICS}
    for entry in prometheus_files.rules(LAB):
        used = set(re.findall(r"rodeo_room_\w+", entry["expr"]))
        assert used and used <= names, entry
        assert entry["expr"].count('system="lab"') == len(re.findall(r"rodeo_room_\w+", entry["expr"])), (
            "only of this system"
        )


def test_the_rule_file_has_what_the_system_file_says():
    by_name = {entry["alert"]: entry for entry in prometheus_files.rules(LAB)}
    assert "> 0.20" in by_name["dead_time"]["expr"] and "link" not in by_name
    assert (
        by_name["hv_low"]["expr"]
        == 'count_over_time((rodeo_room_rule_value{system="lab", rule="hv_low"} < 1450)[5s:1s]) >= 3'
    )
    assert by_name["hv_low"]["labels"] == {
        "severity": "critical",
        "priority": "alarm",
        "rule": "hv_low",
        "system": "lab",
    }
    assert (
        by_name["hv_low"]["annotations"] == {"summary": "the voltage is low", "action": "call"}
        and "hv_low_gone" in by_name
    )
    assert set(by_name) >= {name for name, rule in BUILT_IN.items() if rule.expression} - {"link"}


def test_the_dashboard_that_is_committed_is_of_the_metrics_that_there_are():
    committed = (ROOT / "examples" / "monitoring" / "rodeo-dashboard.json").read_text()
    assert committed == prometheus_files.dashboard_text(), (
        "rodeo control prometheus --dashboard > examples/monitoring/rodeo-dashboard.json"
    )
    shown = {target["expr"].split("{")[0] for panel in json.loads(committed)["panels"] for target in panel["targets"]}
    assert shown <= {metric.name for metric in room_metrics.METRICS} and len(shown) > 20


def test_the_reference_lists_every_metric():
    text = (ROOT / "docs" / "reference" / "metrics.md").read_text()
    for metric in room_metrics.METRICS:
        labels = ", ".join(f"`{name}`" for name in metric.labels)
        assert f"| `{metric.name}` | {labels} | {metric.help} |" in text, metric.name


# rule -> (series, values at 1 s): series that make the rule fire, and series just below its limit
PROCESS = 'system="lab",process="r",class="readout",kind="readout",host="local"'
CASES = {
    "control_room_gone": ([('rodeo_room_state{system="other",state="OFF"}', "1x200")], [RUN]),
    "process_failed": (
        [(f'rodeo_room_process_phase{{{PROCESS},phase="failed"}}', "1x200")],
        [(f'rodeo_room_process_phase{{{PROCESS},phase="running"}}', "1x200")],
    ),
    "process_lost": (
        [(f'rodeo_room_process_phase{{{PROCESS},phase="lost"}}', "1x200")],
        [(f'rodeo_room_process_phase{{{PROCESS},phase="failed"}}', "1x200")],
    ),
    "host_silent": (
        [('rodeo_room_host_silent{system="lab",host="far"}', "1x200")],
        [('rodeo_room_host_silent{system="lab",host="far"}', "0x200")],
    ),
    "database": (
        [('rodeo_room_database_good{system="lab"}', "0x200")],
        [('rodeo_room_database_good{system="lab"}', "1x200")],
    ),
    "overdue": (
        [('rodeo_room_flag{system="lab",flag="OVERDUE"}', "1x200")],
        [('rodeo_room_flag{system="lab",flag="BLIND"}', "1x200")],
    ),
    "disk": (
        [('rodeo_room_disk_free_bytes{system="lab"}', "5x200"), ('rodeo_room_disk_warn_bytes{system="lab"}', "6x200")],
        [('rodeo_room_disk_free_bytes{system="lab"}', "6x200"), ('rodeo_room_disk_warn_bytes{system="lab"}', "6x200")],
    ),
    "disk_time": (
        [
            ('rodeo_room_disk_seconds_left{system="lab"}', "29x200"),
            ('rodeo_room_disk_time_seconds{system="lab"}', "10x200"),
        ],
        [
            ('rodeo_room_disk_seconds_left{system="lab"}', "31x200"),
            ('rodeo_room_disk_time_seconds{system="lab"}', "10x200"),
        ],
    ),
    "metric_gone": (
        [RUN, (f"rodeo_room_process_rate_hz{{{PROCESS}}}", "5x100 stale")],
        [RUN, (f"rodeo_room_process_rate_hz{{{PROCESS}}}", "5x200")],
    ),
    "no_data": (
        [('rodeo_room_headline{system="lab",word="NO DATA",severity="alarm"}', "1x200")],
        [('rodeo_room_headline{system="lab",word="LOSES DATA",severity="alarm"}', "1x200")],
    ),
    "no_triggers": (
        [RUN, ('rodeo_room_trigger_rate_hz{system="lab"}', "0x200")],
        [('rodeo_room_trigger_rate_hz{system="lab"}', "0x200")],
    ),
    "stall": (
        [
            RUN,
            ('rodeo_room_trigger_rate_hz{system="lab"}', "9x200"),
            (f"rodeo_room_process_rate_hz{{{PROCESS}}}", "0x200"),
        ],
        [
            RUN,
            ('rodeo_room_trigger_rate_hz{system="lab"}', "9x200"),
            (f"rodeo_room_process_rate_hz{{{PROCESS}}}", "0x200"),
            (f"rodeo_room_process_left_out{{{PROCESS}}}", "1x200"),
        ],
    ),
    "dead_time": (
        [RUN, ('rodeo_room_dead_time_fraction{system="lab"}', "0.3x200")],
        [RUN, ('rodeo_room_dead_time_fraction{system="lab"}', "0.2x200")],
    ),
    "incomplete": (
        [RUN, ('rodeo_room_incomplete_ppm{system="lab"}', "1001x200")],
        [RUN, ('rodeo_room_incomplete_ppm{system="lab"}', "1000x200")],
    ),
    "partial": (
        [RUN, ('rodeo_room_partial_ppm{system="lab"}', "1001x200")],
        [RUN, ('rodeo_room_partial_ppm{system="lab"}', "1000x200")],
    ),
    "back_pressure": (
        [RUN, ('rodeo_room_limited_by{system="lab",process="r",stage="s"}', "1x200")],
        [('rodeo_room_limited_by{system="lab",process="r",stage="s"}', "1x200")],
    ),
    "out_of_step": (
        [('rodeo_room_link_out_of_step{system="lab",process="r",fid="0x10"}', "1x200")],
        [('rodeo_room_link_out_of_step{system="lab",process="r",fid="0x10"}', "0x200")],
    ),
    "clock": (
        [('rodeo_room_host_clock_offset_seconds{system="lab",host="far"}', "0.002x200")],
        [('rodeo_room_host_clock_offset_seconds{system="lab",host="far"}', "0.001x200")],
    ),
    "temperature": (
        [('rodeo_room_host_temperature_celsius{system="lab",host="far",sensor="s"}', "86x200")],
        [('rodeo_room_host_temperature_celsius{system="lab",host="far",sensor="s"}', "85x200")],
    ),
    "external": (
        [('rodeo_room_external_up{system="lab",external="hv"}', "0x200")],
        [('rodeo_room_external_up{system="lab",external="hv"}', "1x200")],
    ),
    # Three of five: a value that is low repeatedly raises the alarm, a single low value does not.
    "hv_low": (
        [('rodeo_room_rule_value{system="lab",rule="hv_low",subject="hv"}', " ".join(["1400 1500"] * 90))],
        [
            (
                'rodeo_room_rule_value{system="lab",rule="hv_low",subject="hv"}',
                " ".join(["1400 1500 1500 1500 1500"] * 40),
            )
        ],
    ),
    "hv_low_gone": (
        [('rodeo_room_rule_gone{system="lab",rule="hv_low",subject="hv"}', "1x200")],
        [('rodeo_room_rule_gone{system="lab",rule="hv_low",subject="hv"}', "0x200")],
    ),
}
AT_S = 120


def labels_of(series):
    return dict(re.findall(r'(\w+)="([^"]*)"', series))


def alert(name):
    """The expected result of promtool: the labels of the firing series, and the labels of the rule."""
    entry = next(one for one in prometheus_files.rules(LAB) if one["alert"] == name)
    fires = next(
        series
        for series, _ in CASES[name][0]
        if series.split("{")[0] == re.search(r"rodeo_room_\w+", entry["expr"]).group(0)
    )
    labels = {} if name == "control_room_gone" else labels_of(fires)
    return {"exp_labels": {**labels, **entry["labels"]}, "exp_annotations": entry["annotations"]}


def test_every_rule_has_a_case():
    assert set(CASES) == {entry["alert"] for entry in prometheus_files.rules(LAB)}


@pytest.mark.slow
def test_promtool_raises_each_rule_when_it_should_and_only_then(tmp_path):
    promtool = shutil.which("promtool")
    assert promtool, "tools/setup all"
    (tmp_path / "rules.yml").write_text(prometheus_files.rule_file(LAB))
    checked = subprocess.run(
        [promtool, "check", "rules", "rules.yml"], cwd=tmp_path, capture_output=True, text=True, timeout=120
    )
    assert checked.returncode == 0 and f"{len(CASES)} rules found" in checked.stdout, checked.stdout + checked.stderr
    tests = []
    for name, (fires, not_quite) in CASES.items():
        for series, expected in ((fires, [alert(name)]), (not_quite, [])):
            tests.append(
                {
                    "interval": "1s",
                    "name": f"{name} {'fires' if expected else 'does not'}",
                    "input_series": [{"series": one, "values": values} for one, values in series],
                    "alert_rule_test": [{"eval_time": f"{AT_S}s", "alertname": name, "exp_alerts": expected}],
                }
            )
    (tmp_path / "tests.yml").write_text(
        json.dumps({"rule_files": ["rules.yml"], "evaluation_interval": "1s", "tests": tests})
    )
    done = subprocess.run(
        [promtool, "test", "rules", "tests.yml"], cwd=tmp_path, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize(
    ("name", "numbers"),
    [
        ("dead_time", {"dead_time_fraction": 0.3}),
        ("dead_time", {"dead_time_fraction": 0.2}),
        ("incomplete", {"incomplete_ppm": 1001.0}),
        ("incomplete", {"incomplete_ppm": 1000.0}),
    ],
)
def test_the_room_and_prometheus_decide_alike_at_the_limit(name, numbers):
    """The room evaluates the same numbers as the cases of promtool above."""
    looks = seen("running", "running", "running")
    raised = name in {one.cause for one in conditions(derive(looks, row()), looks, numbers, run=row(), rules=LAB.rules)}
    metric = {"dead_time": "rodeo_room_dead_time_fraction", "incomplete": "rodeo_room_incomplete_ppm"}[name]
    value = next(iter(numbers.values()))
    side = 0 if raised else 1
    assert any(
        series.startswith(metric) and float(values.split("x")[0]) == value for series, values in CASES[name][side]
    )
