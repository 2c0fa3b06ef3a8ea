"""The stop of a process that would wait for ever: after stop_limit it gives up waiting data and counts them by name, and the sums are right."""

import json
import signal
import time

import pytest
from conftest import scaled
from running_readout import CONFIGURATION, adds_up, write_configuration

# No subscriber comes. Without a limit the stop would wait an hour for one.
WAITING_READOUT = (
    CONFIGURATION[: CONFIGURATION.index("[[readout.consumer]]")]
    + """
[[readout.consumer]]
type = "publish"
queue = 4
wait_for_subscriber = true
grace = "3600s"
"""
)

SUPERVISOR = """
[farm.supervisor]
name = "supervisor"
readouts = ["absent.hlt"]
readout_grace = "3600s"
drain_time = "3600s"
rebuild_time = "0s"
"""

RECORDER = """
[farm.recorder]
name = "recorder"
directory = "recorded"

[farm.recorder.target]
copy_command = ["false"]
checksum_command = ["false"]
retry_interval = "1s"
linger = "3600s"
"""


def ended(process, exit_code):
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=scaled(60))
    assert process.returncode == exit_code, err
    return json.loads(out), err


@pytest.mark.slow
def test_a_readout_that_waits_for_nobody_ends_and_counts_what_waited(rodeo):
    with rodeo.start(
        "readout",
        write_configuration(rodeo, WAITING_READOUT),
        "--json",
        "-",
        "--set",
        "readout.stop_limit=12s",
        "--set",
        "readout.builder.window=256",
        "--set",
        "readout.builder.buffers=300",
    ) as process:
        deadline = time.monotonic() + scaled(30)
        status = {"standing": []}
        while not status["standing"]:
            assert time.monotonic() < deadline, "no part is reported as standing"
            time.sleep(0.1)
            asked = rodeo("readout", "status", "--name", "test", "-o", "json", exit_code=None)
            status = json.loads(asked.stdout) if asked.returncode == 0 else status
        names = {part["name"]: part["waits_for"] for part in status["standing"]}
        assert names.get("rodeo-gbt-0 of ROB 0x00610001") == "consumers" or "consumer publish" in names, names
        report, err = ended(process, 0)
    assert adds_up(report), report["chunks"]
    assert report["run"]["condition"] == "INCOMPLETE"
    assert "what waits is given up" in err
    publish = report["consumers"]["publish"]
    lost = publish["counters"]["not_taken"] + publish["counters"].get("given_up", 0)
    assert lost == report["fragments"]["built"], report


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "verb", "text"), [("supervisor", "supervise", SUPERVISOR), ("recorder", "record", RECORDER)]
)
def test_a_process_of_the_farm_ends_though_it_would_wait_for_an_hour(rodeo, kind, verb, text):
    with rodeo.start(
        "farm", verb, write_configuration(rodeo, text), "--json", "-", "--set", f"farm.{kind}.stop_limit=6s"
    ) as process:
        deadline = time.monotonic() + scaled(30)
        while not any(socket.is_socket() for socket in rodeo.directory.rglob(f"{kind}.control")):
            assert process.poll() is None and time.monotonic() < deadline
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=scaled(30))
    assert process.returncode in (0, 6), err
    assert json.loads(out)["run"]["condition"] in ("GOOD", "INCOMPLETE")
