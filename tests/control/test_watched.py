"""The monitoring of a system, with real processes and a real room: rules of the system file, an external program, shelves over a restart, tests of
alarms, metrics, and the log lines of all processes in one place."""

import http.server
import json
import signal
import stat
import sys
import threading
import time

import httpx
import pytest
from conftest import scaled
from served_room import ServedRoom
from small_systems import one_card, process

RULES = """
[[control.external]]
name = "hv"
address = "http://127.0.0.1:{port}/metrics"
every = "1s"
timeout = "60s"
keep = ["hv_volts"]

[[control.alarm]]
name = "hv_low"
of = "hv"
value = 'hv_volts{{channel="1"}}'
comparison = "<"
limit = 1450
when = "always"
priority = "alarm"
text = "channel 1 has {{value}} V"
do = "ramp it up"

[[control.alarm]]
name = "events"
of = "readout"
value = "fragments.built"
comparison = ">="
limit = 50
do = "nothing: it is a test"

[[control.alarm]]
name = "overdue"
enabled = false
"""
# A program that prints free text, and writes JSON lines to a given place; then it waits for its end.
CHATTER = """
import json, os, sys, time
print('chatter begins', flush=True)
with open(os.environ['RODEO_LOG_JSON'], 'a') as file:
    for number in range(3000):
        file.write(json.dumps({'time_ns': time.time_ns(), 'level': 'warning' if number == 1500 else 'debug', 'audience': 'developer', 'process': 'x', 'pid': 1, 'message': f'line {number}'}) + chr(10))
        file.flush()
        time.sleep(0.0005)
print('no json, but bad: error', file=sys.stderr, flush=True)
time.sleep(10000)
"""


class Exporter(http.server.ThreadingHTTPServer):
    volts = 1500.0

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.serve_forever, daemon=True).start()


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        text = f'# TYPE hv_volts gauge\nhv_volts{{channel="1"}} {self.server.volts}\n'.encode()
        self.send_response(200 if self.server.volts is not None else 500)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *_):
        """Discards the output of the test."""


@pytest.fixture(scope="module")
def exporter():
    server = Exporter()
    yield server
    server.shutdown()
    server.server_close()


@pytest.fixture(scope="module")
def served(place, exporter):
    file = one_card(place, rate="500Hz")
    (place / "chatter.py").write_text(CHATTER)
    text = file.read_text() + process(
        "chatter", "program", command=[sys.executable, str(place / "chatter.py")], role="expendable"
    )
    file.write_text(text + RULES.format(port=exporter.server_port))
    with ServedRoom(file, "t") as room:
        room.place = place
        with room.client() as client:
            client.launch()
        yield room


def until(client, condition, what):
    end = time.monotonic() + scaled(120)
    while not (value := condition()):
        assert time.monotonic() < end, f"{what}: {client.status()['alarms']}"
        time.sleep(0.05)
    return value


def alarm(client, cause):
    return next((one for one in client.status()["alarms"] if one["cause"] == cause), None)


def test_an_external_value_raises_an_alarm_keeps_a_run_from_starting_and_is_kept_with_the_run(served, exporter):
    with served.client() as client:
        until(client, lambda: client.status()["externals"][0]["state"] == "good", "hv answers")
        client.start()
        client.wait(events=60, timeout=scaled(120))
        raised = until(
            client, lambda: alarm(client, "events:readout"), "the rule of the file is raised by a path into a status"
        )
        assert raised["do"] == "nothing: it is a test" and raised["value"] >= 50 and raised["process"] == "readout"
        run = client.stop()["run"]
        kept = [one for one in client.run(run)["counters"] if one["process"] == "hv"]
        assert (
            {one["name"] for one in kept} == {'hv_volts{channel="1"}'}
            and {one["value"] for one in kept} == {1500}
            and len(kept) >= 2
        ), "at begin and end of the run"
        client.wait(state="READY", timeout=scaled(120))
        exporter.volts = 1400.0
        low = until(client, lambda: alarm(client, "hv_low:hv"), "the voltage is low")
        assert (low["what"], low["severity"], low["do"]) == ("channel 1 has 1400 V", "alarm", "ramp it up")
        assert "channel 1 has 1400 V" in client.status()["commands"]["start"]
        exporter.volts = 1500.0
        until(client, lambda: alarm(client, "hv_low:hv")["cleared_ns"], "it is over")
        client.ack("hv_low:hv")
        assert alarm(client, "hv_low:hv") is None


def test_a_shelved_alarm_is_kept_over_a_restart_and_does_not_keep_a_run_from_starting(served, exporter):
    exporter.volts = 1300.0
    with served.client() as client:
        until(client, lambda: alarm(client, "hv_low:hv"), "the voltage is low")
        assert "shelved" not in served.shell("alarms").stdout
        assert (
            json.loads(served.shell("shelve", "hv_low:hv", "--minutes", "5", "-o", "json").stdout)["until_ns"]
            > time.time_ns()
        )
        assert client.status()["commands"]["start"] is None
    assert served.end(signal.SIGKILL) == -signal.SIGKILL
    served.begin()
    with served.client() as client:
        client.wait(state="READY", timeout=scaled(120))
        again = until(client, lambda: alarm(client, "hv_low:hv"), "it is there again")
        assert again["shelved_by"] and again["shelved_until_ns"] > time.time_ns() and again["acked_by"] is None
        assert "shelved by" in served.shell("alarms").stdout and client.status()["commands"]["start"] is None
        client.shelve("hv_low:hv", back=True)
        assert alarm(client, "hv_low:hv")["shelved_by"] is None
        exporter.volts = 1500.0
        client.ack("hv_low:hv")
        until(client, lambda: alarm(client, "hv_low:hv") is None, "it is over")


def test_a_test_alarm_is_heard_acknowledged_and_over(served):
    said = served.shell("alarm", "test", "stall", "--as", "ana").stdout
    assert "test:stall is raised" in said
    with served.client() as client:
        assert alarm(client, "test:stall")["what"].startswith("TEST by ana of the alarm stall")
        assert "TEST by" in client.status()["commands"]["start"]
        served.shell("ack", "test:stall")
        assert client.status()["commands"]["start"] is None
        assert any(
            one["fields"].get("alarm") == "test:stall" and one["level"] == "error"
            for one in client.logs("control", audience="operator", fold=False)
        )
    assert "did you mean `dead_time`?" in served.shell("alarm", "test", "ded_time", status=2).stderr


def test_rules_are_listed_with_what_the_file_changes(served):
    listed = served.shell("alarms", "--rules").stdout
    assert (
        "hv_low" in listed
        and "ramp it up" in listed
        and any(line.split()[:2] == ["overdue", "off"] for line in listed.splitlines())
    )
    assert (
        "events:readout" in served.shell("alarms", "--history").stdout
        or "readout: fragments.built" in served.shell("alarms", "--history").stdout
    )
    with served.client() as client:
        assert {one["name"] for one in client.rules()} >= {"dead_time", "hv_low"}


def test_prometheus_gets_the_metrics_with_the_token_that_is_left_for_it(served):
    file = served.place / "t" / "viewer.token"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    base = served.address.split("/?")[0]
    answer = httpx.get(
        f"{base}/api/metrics", headers={"Authorization": f"Bearer {file.read_text().strip()}"}, timeout=scaled(60)
    )
    assert answer.status_code == 200 and 'rodeo_room_state{system="t",state="READY"} 1' in answer.text
    assert (
        'rodeo_room_rule_value{system="t",rule="hv_low",subject="hv"}' in answer.text
        and 'rodeo_room_external_up{system="t",external="hv"} 1' in answer.text
    )
    assert (
        httpx.post(
            f"{base}/api/commands/stop",
            headers={"Authorization": f"Bearer {file.read_text().strip()}"},
            timeout=scaled(60),
        ).status_code
        == 403
    )


def test_what_all_processes_said_is_in_one_place(served):
    with served.client() as client:
        client.wait(state="READY", timeout=scaled(120))
        run = client.start()["run"]
        client.wait(events=20, timeout=scaled(120))
        client.stop()
        client.wait(state="READY", timeout=scaled(120))
        of_run = client.logs(run=run, audience="expert", lines=1000, fold=False)
        names = {one["process"] for one in of_run}
        assert "control" in names and "readout" in names, names
        assert {one["run"] for one in of_run if one["process"] == "readout"} >= {run}
        assert not [one for one in of_run if one["run"] not in (None, run)]
        assert [
            one["message"]
            for one in of_run
            if one["process"] == "control" and one["audience"] == "operator" and one["message"].startswith("start by")
        ]
        assert of_run == sorted(of_run, key=lambda one: one["time_ns"] or 0)
        assert any("launched" in one["message"] for one in client.logs("agent", lines=1000))
        with pytest.raises(Exception, match="there is no process"):
            client.logs("nobody")


def test_acceptance_20_a_program_that_talks_much_is_searched_folded_and_bounded(served):
    with served.client() as client:
        until(client, lambda: client.logs("chatter", search="no json, but bad"), "it has printed all lines")
        words = client.logs("chatter", search="no json")[0]
        assert (words["level"], words["audience"]) == ("error", "operator") and words["time_ns"] > 1e18, (
            "free text has the time of its second of arrival"
        )
        assert [
            one["message"] for one in client.logs("chatter", level="warning", audience="developer", search="line")
        ] == ["line 1500"]
        assert client.logs("chatter", search="line", audience="operator") == []
        folded = client.logs("chatter", search="line 2", lines=2000)
        assert len(folded) == 1 and folded[0]["repeats"] > 500 and folded[0]["first_ns"] < folded[0]["time_ns"]
        assert len(client.logs("chatter", search="line", lines=2000, fold=False)) == 2000
        page = client.logs(lines=150)
        assert len(json.dumps(page)) < 60_000 and len(page) <= 150, (
            "the page's first request stays small with many lines"
        )
        said = served.shell("logs", "chatter", "--search", "line 2999", "--level", "debug").stdout
        assert "debug" in said and "line 2999" in said
