"""One system, controlled by shell, Python and browser: the same commands, state and rows of the audit."""

import json
import os
import re
import signal
import subprocess
import sys

import pytest
from conftest import BUILD, ROOT, scaled
from served_room import ServedRoom
from small_systems import one_card


@pytest.fixture(scope="module")
def served(place):
    with ServedRoom(one_card(place, rate="500Hz"), "t") as room:
        yield room


def brought_to(served, state):
    """Brings the system to OFF or READY, from either of these states."""
    with served.client() as client:
        if client.status()["state"] != state:
            client.command("launch" if state == "READY" else "close")
        assert client.wait(state=state, timeout=scaled(120))
        acknowledge_all(client)


def acknowledge_all(client):
    """Acknowledges alarms: those raised on a slow machine would block the next start."""
    for alarm in client.status()["alarms"]:
        client.ack(alarm["cause"])


def rows(client):
    """Audit rows without times, oldest first."""
    return [
        {name: each[name] for name in ("actor", "whence", "role", "command", "arguments", "outcome", "detail")}
        for each in reversed(client.audit(limit=1000))
    ]


def test_one_command_gives_a_page_and_a_whole_cycle(served):
    brought_to(served, "OFF")
    with served.browser() as browser:
        assert browser.get("/api/state").json()["state"] == "OFF"
    assert "READY" in served.shell("launch").stdout
    run = json.loads(served.shell("start", "--comment", "night", "-o", "json").stdout)["run"]
    served.shell("wait", "--events", "100", "--timeout", scaled(300))
    assert re.search(rf"t  RUNNING  run {run} \(physics\)", served.shell("status").stdout)
    stopped = served.shell("stop").stdout
    assert f"run {run} (physics) GOOD" in stopped
    with served.client() as client:
        row = client.run(run)
        assert row["condition"] == "GOOD" and row["comment"] == "night" and row["files"]
        assert client.runs()[0]["number"] == run
    assert served.shell("logs", "readout", "--lines", "5").stdout.strip()
    assert "OFF" in served.shell("close").stdout


def test_acceptance_2_equal_commands_by_shell_python_and_browser_leave_equal_rows(served):
    def cycle(send):
        send("start", comment="x")
        send("launch")
        send("stop")
        send("stop")
        send("note", text="y")

    def by_shell(name, **arguments):
        options = [each for key, value in arguments.items() if key != "text" for each in (f"--{key}", value)]
        subprocess.run(
            [str(BUILD / "rodeo"), "control", name, *options, *([arguments["text"]] if "text" in arguments else [])],
            capture_output=True,
            timeout=scaled(300),
        )

    def by_python(name, **arguments):
        from rodeo.control import Refused

        with served.client() as client:
            try:
                client.command(name, **arguments)
            except Refused as refused:
                assert refused.code.startswith("control.")

    left = {}
    brought_to(served, "READY")
    with served.client() as client, served.browser() as browser:
        for whence, send in (
            ("shell", by_shell),
            ("python", by_python),
            ("browser", lambda name, **arguments: browser.post(f"/api/commands/{name}", json=arguments)),
        ):
            acknowledge_all(client)
            before = len(rows(client))
            cycle(send)
            found = [row for row in rows(client)[before:] if row["actor"] != "rule" and row["whence"] != "rule"]
            assert {row["whence"] for row in found} == {whence}
            left[whence] = [
                {**row, "whence": "", "detail": re.sub(r"run \d+", "run N", row["detail"])} for row in found
            ]
    assert [row["command"] for row in left["shell"]] == ["start", "launch", "stop", "stop", "note"]
    assert [row["outcome"] for row in left["shell"]] == ["done", "refused", "done", "refused", "done"]
    assert left["shell"] == left["python"] == left["browser"]


def test_acceptance_12_of_two_starts_at_once_one_has_a_number_and_the_other_exits_with_5(served):
    brought_to(served, "READY")
    with served.client() as client:
        before = [each["number"] for each in client.runs(limit=1000)]
        starts = [
            subprocess.Popen(
                [str(BUILD / "rodeo"), "control", "start"],
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                stdin=subprocess.DEVNULL,
            )
            for _ in range(2)
        ]
        said = [each.communicate(timeout=scaled(300))[1].decode() for each in starts]
        assert sorted(each.returncode for each in starts) == [0, 5], said
        number = client.status()["run"]["number"]
        client.stop()
        assert [each["number"] for each in client.runs(limit=1000)] == [number, *before]


def test_the_example_scans_a_setting(served):
    done = subprocess.run(
        [sys.executable, str(ROOT / "examples" / "control" / "scan.py"), "3", "0.3"],
        capture_output=True,
        text=True,
        timeout=scaled(300),
        stdin=subprocess.DEVNULL,
    )
    assert done.returncode == 0, done.stderr
    points = re.findall(r"(?m)^ *(\d+) Hz +(\d+) +GOOD +(\d+)", done.stdout)
    assert [point[0] for point in points] == ["200", "400", "600"] and len({point[1] for point in points}) == 3, (
        done.stdout
    )
    with served.client() as client:
        assert [each["comment"] for each in client.runs(limit=3)] == ["600 Hz", "400 Hz", "200 Hz"]
        assert client.status()["state"] == "OFF" and client.status()["lease"]["holder"] is None


def test_what_the_state_forbids_is_5_and_says_why(served):
    with served.client() as client:
        why = client.status()["commands"]["pause"]
    assert why and why in served.shell("pause", status=5).stderr


def test_ctrl_c_says_what_goes_on_and_the_next_room_finds_it(served):
    brought_to(served, "READY")
    run = json.loads(served.shell("start", "-o", "json").stdout)["run"]
    assert served.end(signal.SIGINT) == 0
    assert f"run {run} continues without the control room" in served.said.read_text()
    assert served.shell("stop", status=4).stderr.startswith("error[control.no_room]")
    served.begin()
    with served.client() as client:
        document = client.wait(state="RUNNING", timeout=scaled(120))
        assert document["run"]["number"] == run
        client.wait(lambda document: (document["numbers"]["events"] or 0) > 50, timeout=scaled(300))
        client.stop()
        assert client.run(run)["condition"] == "GOOD"
        client.close()


def test_a_second_room_of_the_system_is_refused(served):
    error = served.shell(served.file, status=5).stderr
    assert error.startswith("error[control.room_runs]")


def test_a_system_file_that_is_wrong_is_3_and_has_every_error(served, tmp_path):
    (tmp_path / "bad.toml").write_text(
        '[control]\nname = "bad"\ndisk_stp = "1GB"\n[[control.process]]\nname = "x"\nkind = "readot"\n'
    )
    error = served.shell(tmp_path / "bad.toml", status=3).stderr
    assert "bad.toml:3" in error and "disk_stop" in error and "bad.toml:6" in error


def test_what_init_writes_runs(place):
    directory = place / "lab"
    subprocess.run(
        [str(BUILD / "rodeo"), "control", "init", str(directory)], check=True, capture_output=True, timeout=scaled(60)
    )
    system = directory / "system.toml"
    system.write_text(
        re.sub(r'disk_(stop|warn) = "\w+"', r'disk_\1 = "1MB"', system.read_text()).replace(
            "[control]", '[control]\ndisk_time = "0s"', 1
        )
    )
    with ServedRoom(system, "lab", "--no-page") as room, room.client() as client:
        assert not room.address.startswith("http") and client.addresses() == {}
        client.launch()
        client.start()
        client.wait(events=50, timeout=scaled(300))
        client.stop()
        assert client.runs()[0]["condition"] == "GOOD"
        client.close()
    assert not os.path.exists(room.address)
