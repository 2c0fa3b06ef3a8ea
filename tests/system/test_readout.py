"""`rodeo readout`: the end of a run, the faults that it survives, and sums of its numbers."""

import hashlib
import json
import os
import signal
import subprocess
import time
import urllib.request
import zlib
from pathlib import Path

import pytest
from conftest import scaled
from event_files import read_event_file
from running_readout import CONFIGURATION, Running, adds_up, running, write_configuration


def files_of(rodeo, suffix):
    return sorted((rodeo.directory / "files").glob(f"*{suffix}"))


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM], ids=["ctrl_c", "sigterm"])
def test_a_signal_ends_a_run_in_order(rodeo, how):
    with running(rodeo) as run:
        report, talk = run.finish(how)
    assert report["run"]["condition"] == "GOOD" and adds_up(report)
    assert "ending the run in order" in talk
    assert [str(path.resolve()) for path in files_of(rodeo, ".data")] == [
        str(Path(rodeo.directory, f).resolve()) for f in report["files"]
    ]
    assert not files_of(rodeo, ".writing")
    rodeo("data", "verify", *report["files"])


def test_a_run_ends_after_the_seconds_it_was_given(rodeo):
    done = rodeo("readout", write_configuration(rodeo), "--seconds", 0.5, "--json", "-")
    assert json.loads(done.stdout)["run"]["seconds"] >= 0.5


def test_a_run_ends_after_the_events_it_was_given(rodeo):
    done = rodeo("readout", write_configuration(rodeo), "--events", 500, "--json", "-")
    assert json.loads(done.stdout)["fragments"]["built"] >= 500


def test_a_run_ends_with_its_input(rodeo):
    done = rodeo("readout", write_configuration(rodeo), "--set", "readout.input.events=1000", "--json", "-")
    report = json.loads(done.stdout)
    assert report["fragments"]["built"] == 1000 and report["chunks"]["sent"] == 8000 and adds_up(report)


def test_a_third_ctrl_c_aborts_and_leaves_what_can_be_recovered(rodeo):
    slow = [
        "readout.input.links=500",
        "readout.input.rate=20kHz",
        "readout.consumer[2].compression=9",
        "readout.consumer[2].buffer=64KiB",
        "readout.consumer[2].queue=4096",
    ]
    # An abort leaves threads running on purpose. Without this option the sanitizer would report them after the readout's report.
    rodeo.environment["TSAN_OPTIONS"] = "report_thread_leaks=0"
    with running(rodeo, *slow) as run:
        run.wait_until(lambda status: status["queue_fill"]["file_writer"] > 0.5, "there is much to drain")
        run.process.send_signal(signal.SIGINT)
        for announced in ("ending the run in order: ", "a third Ctrl-C aborts"):
            said = ""
            while announced not in said:
                said = run.process.stderr.readline()
                assert said, "it ended without a message"
            if "third" not in announced:
                run.process.send_signal(signal.SIGINT)
        report, talk = run.finish(signal.SIGINT, exit_code=1)
    assert report["run"]["condition"] == "ABORTED" and "rodeo data recover" in talk
    writer, processor = report["consumers"]["file_writer"], report["consumers"]["processor"]
    events = [
        count for name, count in writer["counters"].items() if name == "events_written" or name.startswith("unwritten_")
    ]
    assert sum(events) == report["fragments"]["built"] and writer["counters"]["unwritten_aborted"] > 0
    assert processor["consumed"] + processor["counters"]["unprocessed_aborted"] == report["fragments"]["built"]
    assert (
        f"aborted {writer['counters']['unwritten_aborted']}" in talk
        and "events not written by file_writer" in talk.splitlines()[-2]
    )
    (left,) = files_of(rodeo, ".writing")
    rodeo("data", "recover", left, exit_code=None)
    rodeo("data", "verify", *files_of(rodeo, ".data"))


def test_a_signal_that_comes_twice_at_once_as_from_timeout_ends_the_run_in_order(rodeo):
    with running(rodeo, "readout.input.rate=5kHz") as run:
        run.wait_until(lambda status: status["fragments"]["built"] > 0, "it runs")
        run.process.send_signal(signal.SIGHUP)  # two different signals, so that the kernel does not merge them
        report, _ = run.finish(signal.SIGTERM)
    assert report["run"]["condition"] == "GOOD" and adds_up(report)
    assert not [path for path in rodeo.directory.rglob("*.control*")] + [
        path for path in rodeo.directory.rglob("*.events*")
    ]


def test_what_was_written_when_a_run_is_killed_can_be_recovered(rodeo):
    with running(rodeo, "readout.consumer[2].buffer=64KiB", "readout.input.rate=5kHz") as run:
        run.wait_until(
            lambda status: files_of(rodeo, ".writing") and files_of(rodeo, ".writing")[0].stat().st_size > 100_000,
            "there is something in the file",
        )
        run.process.kill()
        run.process.communicate()
    (left,) = files_of(rodeo, ".writing")
    assert "run.json is missing" in rodeo("data", "info", left, exit_code=None).stdout
    rodeo("data", "recover", left, exit_code=None)
    recovered = [path for path in files_of(rodeo, ".data") if path != left]
    assert recovered
    rodeo("data", "verify", *recovered)


def test_a_killed_readout_is_replaced_under_its_name(rodeo):
    with running(rodeo) as run:
        run.process.kill()
        run.process.communicate()
    rodeo("readout", write_configuration(rodeo), "--set", "run.number=8", "--seconds", 0.2)


def test_a_run_outlives_who_reads_what_it_says(rodeo):
    """`rodeo readout run.toml 2>&1 | tee run.log`: Ctrl-C goes to both, and tee is gone when the readout reports its end."""
    configuration = write_configuration(rodeo)
    with rodeo.start("readout", configuration, "--json", "report.json") as process:
        while not files_of(rodeo, ".writing"):
            assert process.poll() is None, process.communicate()
            time.sleep(0.05)
        Running(rodeo, process, "test").wait_until(
            lambda status: status["fragments"]["built"] > 0, "it has built something"
        )
        process.stdout.close()
        process.stderr.close()
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=scaled(60)) == 0
    assert adds_up(json.loads((rodeo.directory / "report.json").read_text()))
    assert files_of(rodeo, ".data") and not files_of(rodeo, ".writing")


def test_who_has_no_standard_streams_opens_no_file_in_their_place(rodeo):
    command = 'exec "$0" readout "$1" --json report.json <&- >&- 2>&-'
    with subprocess.Popen(
        ["sh", "-c", command, rodeo.binary, write_configuration(rodeo)], cwd=rodeo.directory, env=rodeo.environment
    ) as process:
        while not files_of(rodeo, ".writing"):
            assert process.poll() is None
            time.sleep(0.05)
        assert {os.readlink(f"/proc/{process.pid}/fd/{number}") for number in range(3)} == {"/dev/null"}
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=scaled(60)) == 0
    assert adds_up(json.loads((rodeo.directory / "report.json").read_text()))
    rodeo("data", "verify", *files_of(rodeo, ".data"))


def test_a_stopped_process_loses_nothing(rodeo):
    with running(rodeo, "readout.input.rate=5kHz") as run:
        run.process.send_signal(signal.SIGSTOP)
        time.sleep(1)
        run.process.send_signal(signal.SIGCONT)
        built = 0
        built = run.status()["fragments"]["built"]
        run.wait_until(lambda status: status["fragments"]["built"] > built + 1000, "it goes on")
        report, _ = run.finish()
    assert report["run"]["condition"] == "GOOD"
    assert report["chunks"]["lost"] == {} and report["fragments"]["incomplete"] == 0 and adds_up(report)


def test_a_process_that_has_little_time_says_what_it_did_not_come_to(rodeo):
    with running(
        rodeo, "readout.input.rate=100kHz", "readout.input.links=192", "readout.consumer[2].fraction=0"
    ) as run:
        for _ in range(40):  # the process runs only a tenth of the time
            run.process.send_signal(signal.SIGSTOP)
            time.sleep(0.045)
            run.process.send_signal(signal.SIGCONT)
            time.sleep(0.005)
        report, _ = run.finish()
    assert report["run"]["condition"] == "GOOD" and adds_up(report)
    assert report["offered_rate_hz"] == pytest.approx(100e3, rel=0.05), "the set rate, over the run's time"
    assert report["input"]["triggers"] + report["input"]["vetoed"] == pytest.approx(
        100e3 * report["run"]["seconds"], rel=0.05
    )
    assert report["input"]["overdue"] <= report["input"]["vetoed"]


def test_faults_of_every_kind_add_up(rodeo):
    faults = [
        "missing=0.01",
        "duplicate=0.01",
        "late=0.003",
        "corrupt=0.01",
        "l1id=0.003",
        "truncated=0.01",
        "jump=0.001",
        "out_of_sequence=0.003",
        "bcid=0.003",
    ]
    settings = [part for fault in faults for part in ("--set", f"readout.input.fault_{fault}")]
    settings += ["--set", "readout.input.events=4000", "--set", "readout.consumer[0].work=read"]
    done = rodeo("readout", write_configuration(rodeo), *settings, "--json", "-")
    report = json.loads(done.stdout)
    assert report["run"]["condition"] == "INCOMPLETE"
    assert report["fragments"]["incomplete"] > 0 and sum(report["chunks"]["lost"].values()) > 0
    assert adds_up(report)


def test_a_full_disk_stops_the_run_with_closed_files(rodeo, tmp_path_factory):
    if not os.path.isdir("/dev/shm") or os.statvfs("/dev/shm").f_bavail * os.statvfs("/dev/shm").f_frsize < 200e6:
        pytest.skip("host: needs a memory file system")
    import tempfile

    with tempfile.TemporaryDirectory(dir="/dev/shm") as directory:
        space = os.statvfs(directory)
        keep_free = space.f_bavail * space.f_frsize - 30_000_000
        done = rodeo(
            "readout",
            write_configuration(rodeo),
            "--set",
            f"readout.consumer[2].directory={directory}",
            "--set",
            f"readout.consumer[2].min_free={keep_free}",
            "--set",
            "readout.consumer[2].direct_io=false",
            "--set",
            "readout.input.rate=40kHz",
            "--seconds",
            60,
            "--json",
            "-",
            exit_code=1,
            timeout=120,
        )
        report = json.loads(done.stdout)
        assert report["run"]["condition"] == "ABORTED" and report["run"]["seconds"] < 60
        failure = report["run"]["failure"]
        assert (
            failure.startswith("file_writer: the disk is full")
            and "min_free" in failure
            and " free" in failure
            and "\n" not in failure
        )
        assert ".data was closed" in failure and ".writing" not in failure and "error[" not in failure
        unwritten = report["consumers"]["file_writer"]["counters"]["unwritten_disk_full"]
        assert f"not written {unwritten} events for file_writer: disk_full {unwritten}" in done.stderr
        assert report["files"] and not list(Path(directory).glob("*.writing"))
        assert adds_up(report)
        rodeo("data", "verify", *report["files"])


def test_samples_reach_another_process(rodeo):
    with running(rodeo) as run:
        done = rodeo("events", "tail", "--name", "test", "--events", 3, "-o", "json")
        report, _ = run.finish()
    assert done.stdout.strip()
    assert report["run"]["condition"] == "GOOD"


def test_metrics_are_served_over_http(rodeo):
    with running(rodeo, "readout.metrics.listen=127.0.0.1:0") as run:
        address = ""
        while "http://" not in address:
            address = run.process.stderr.readline()
            assert address, "the address was never printed"
        url = address.split()[-1]
        with urllib.request.urlopen(url, timeout=10) as reply:
            assert reply.headers["Content-Type"].startswith("text/plain; version=0.0.4")
            text = reply.read().decode()
        run.finish()
    assert 'rodeo_fragments_total{readout="test",rob="0x00610001"}' in text
    assert 'rodeo_link_active{readout="test"' in text
    assert (
        'rodeo_host_cpu_busy_seconds_total{cpu="0"} ' in text and "rodeo_host_memory_available_bytes " in text
    )  # every Linux has these


def test_two_robs_share_an_input(rodeo):
    text = CONFIGURATION.replace(
        'source_id = "0x00610001"',
        'source_id = "0x00610001"\nlinks = ["0x1000000000000000+4"]\n\n[[readout.rob]]\nsource_id = "0x00610002"\nlinks = ["0x1000000000040000+4"]',
    )
    done = rodeo("readout", write_configuration(rodeo, text), "--set", "readout.input.events=1000", "--json", "-")
    report = json.loads(done.stdout)
    assert (
        report["links"] == 8
        and report["fragments"]["built"] == 2000
        and report["run"]["condition"] == "GOOD"
        and adds_up(report)
    )


def test_events_say_which_links_were_removed_and_files_say_what_run_they_are_of(rodeo):
    """A link becomes silent, is missing for a while, and is then removed by the policy. Events, files, reports and run.json show it."""
    done = rodeo(
        "readout",
        write_configuration(rodeo),
        "--json",
        "-",
        *(
            word
            for setting in (
                "run.source_id=0x00123456",
                "run.stream=Main",
                "readout.input.links=24",
                "readout.input.events=20000",
                "readout.input.rate=10kHz",
                "readout.input.silent_link=3",
                "readout.input.silent_from=500",
                "readout.link_policy.remove_after_events=1000",
                "readout.consumer[2].fraction=1",
            )
            for word in ("--set", setting)
        ),
    )
    report = json.loads(done.stdout)
    fragments = report["fragments"]
    assert report["run"]["condition"] == "INCOMPLETE" and adds_up(report)
    assert fragments["incomplete"] >= 1000 and fragments["without_removed_links"] > 0
    assert fragments["incomplete"] + fragments["without_removed_links"] == fragments["built"] - 500
    (missing,), (removed,) = fragments["missing_links"], fragments["removed_links"]
    assert missing["fid"] == removed["fid"] and removed["left_out"] == fragments["without_removed_links"]
    assert "lack links that were removed" in done.stderr

    files = [read_event_file(Path(rodeo.directory, name)) for name in report["files"]]
    events = [event for file in files for event in file.events]
    assert [event.global_id for event in events] == list(range(20000))
    assert {event.source_id for event in events} == {0x00123456}
    for event in events:
        (rob,) = event.robs
        status = rob.rod.status
        absent = 0 if event.global_id < 500 else 1
        assert len(rob.rod.chunks) == 24 - absent
        if not absent:
            assert status == [0]
        elif status[0] & 0x10000:
            assert status == [0x10000, 0, 0, 1 << 3] and rob.status == [0] and event.status == [0]
        else:
            assert status[0] == 4 and status[1] == 1 and status[3:] == [1 << 3, 0]
    counted = sum(event.robs[0].rod.status[0] == 0x10000 for event in events)
    assert counted == fragments["without_removed_links"]

    verified = json.loads(rodeo("data", "verify", *report["files"], "-o", "json").stdout)
    assert sum(one["missing_links"] for one in verified) == fragments["incomplete"]
    assert (
        sum(one["removed_links"] for one in verified)
        == counted
        == sum(one["robs_without_removed_links"] for one in verified)
    )

    run = json.loads((rodeo.directory / "files" / "run.json").read_text())
    assert run["run"]["condition"] == "INCOMPLETE" and run["chunks"]["lost"] == report["chunks"]["lost"]
    for file, path in zip(run["files"], report["files"]):
        data = Path(rodeo.directory, path).read_bytes()
        assert (
            file["name"] == Path(path).name
            and file["size_bytes"] == len(data)
            and int(file["adler32"], 16) == zlib.adler32(data)
        )
    text = files[0].string("Rodeo-Configuration")
    assert (
        hashlib.sha256(text.encode()).hexdigest()
        == files[0].string("Rodeo-Configuration-SHA256")
        == run["configuration_sha256"]
    )
    assert (
        json.loads(text)["readout.link_policy.remove_after_events"] == "1000"
        and json.loads(text) == run["configuration"]
    )
    assert files[0].string("Rodeo-Software") == run["software"]
    (info,) = json.loads(rodeo("data", "info", report["files"][0], "-o", "json").stdout)
    assert info["configuration"] == run["configuration"] and info["run"] == run and info["removed_links"] == counted
    shown = rodeo("data", "info", report["files"][0]).stdout
    assert run["configuration_sha256"] in shown and "INCOMPLETE: " in shown
    dump = rodeo("data", "dump", report["files"][-1], "--event", 20000).stdout
    assert "links removed" in dump and "removed, links 0 to 31 of the ROB: 3" in dump
    assert "links removed" in rodeo("data", "list", report["files"][-1], "--all").stdout
