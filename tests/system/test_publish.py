"""The consumer `publish`: fragments of a readout on the network, and their subscribers in other processes."""

import contextlib
import json
import signal
import subprocess

import pytest
from conftest import scaled
from event_files import read_event_file
from running_readout import CONFIGURATION, adds_up, running, write_configuration
from test_route import libraries

STREAM = ("--from", "test.publish", "--bus", "bus")
PUBLISH = '[[readout.consumer]]\ntype = "publish"\nbus = "bus"\nwait_for_subscriber = true\n'
SAMPLER = '[[readout.consumer]]\ntype = "event_sampler"\n'
WRITER = '[[readout.consumer]]\ntype = "file_writer"\ndirectory = "files"\n'
PUBLISHING = CONFIGURATION.replace(SAMPLER, PUBLISH)
WITHOUT_FILES = PUBLISHING.replace(WRITER, "")


def counters(report):
    return report["consumers"]["publish"]["counters"]


def publish_adds_up(report):
    """Checks that every fragment was sent to a subscriber or is counted by the reason why not."""
    publish, of = report["consumers"]["publish"], counters(report)
    left_out = sum(value for name, value in of.items() if name.startswith("unpublished_"))
    assert report["fragments"]["built"] == publish["consumed"] + left_out
    assert publish["consumed"] == of["chunks_wanted"] + of["no_subscriber"] + of["not_taken"]
    return adds_up(report)


def events_in(directory):
    """The bytes of every event, in order."""
    return [event.raw for file in sorted(directory.glob("*.data")) for event in read_event_file(file).events]


def holds_up(run):
    """Waits until the readout is blocked, which vetoes the trigger."""
    vetoed = run.status()["input"]["vetoed"]
    return run.wait_until(
        lambda status: status["limited_by"] == "publish" and status["input"]["vetoed"] > vetoed, "the readout waits"
    )


class Recorder:
    """`rodeo events record` in a separate process."""

    def __init__(self, rodeo, directory, *options):
        self.directory = rodeo.directory / directory
        self.process = rodeo.start("events", "record", directory, *STREAM, "-o", "json", *options)

    def finish(self, how=None, exit_code=0):
        if how is not None:
            self.process.send_signal(how)
        out, err = self.process.communicate(timeout=scaled(60))
        assert self.process.returncode == exit_code, err
        return json.loads(out)

    def events(self):
        return events_in(self.directory)


@pytest.fixture
def recorders(rodeo):
    """Starts recorders. They always end with the test."""
    started = []

    def start(directory, *options):
        started.append(Recorder(rodeo, directory, *options))
        return started[-1]

    yield start
    for recorder in started:
        if recorder.process.poll() is None:
            recorder.process.kill()
            with contextlib.suppress(subprocess.TimeoutExpired):
                recorder.process.communicate(timeout=scaled(10))


@pytest.mark.parametrize(
    "settings",
    [
        [],
        ["readout.consumer[1].page_bytes=4KiB", "readout.input.chunk_bytes=3000"],
        ["readout.consumer[1].fraction=0.25"],
    ],
    ids=["small", "larger than a page", "a share"],
)
def test_what_is_recorded_is_what_was_published_byte_for_byte(rodeo, recorders, settings):
    with running(
        rodeo, "readout.input.events=2000", "readout.builder.chunk_size=3000", *settings, text=PUBLISHING
    ) as run:
        recorder = recorders("recorded")
        report, _ = run.finish(how=None)
        recorded = recorder.finish()
    assert report["run"]["condition"] == "GOOD" and publish_adds_up(report)
    assert counters(report)["chunks_wanted"] == counters(report)["chunks_published"] == recorded["events"]
    assert recorded["lost"] == recorded["no_events"] == 0
    written = {event: number for number, event in enumerate(events_in(rodeo.directory / "files"))}
    numbers = [written[event] for event in recorder.events()]
    assert len(written) == 2000 and numbers == sorted(set(numbers))
    assert (
        len(numbers)
        == 2000 - counters(report)["unpublished_beyond_fraction"]
        == (500 if "fraction" in str(settings) else 2000)
    )
    rodeo("data", "verify", *(rodeo.directory / "recorded").iterdir())


def test_shared_memory_carries_fragments_too(rodeo, recorders):
    with running(rodeo, "readout.input.events=500", "readout.consumer[1].providers=shm", text=WITHOUT_FILES) as run:
        recorder = recorders("recorded", "--provider", "shm")
        report, _ = run.finish(how=None)
        assert recorder.finish()["events"] == 500 == len(recorder.events())
    assert report["run"]["condition"] == "GOOD" and publish_adds_up(report)


def test_a_recorder_that_leaves_has_all_that_was_for_it_and_the_rest_is_nobodys(rodeo, recorders):
    with running(rodeo, text=WITHOUT_FILES) as run:
        recorder = recorders("recorded")
        run.wait_until(lambda status: counters(status)["chunks_published"] > 500, "something is sent")
        recorded = recorder.finish(signal.SIGINT)
        run.wait_until(lambda status: counters(status)["no_subscriber"] > 100, "it has left")
        report, _ = run.finish()
    assert report["run"]["condition"] == "GOOD" and publish_adds_up(report)
    assert recorded["events"] == counters(report)["chunks_wanted"] and recorded["lost"] == 0
    assert counters(report)["undelivered"] == counters(report)["not_taken"] == 0


def test_a_recorder_that_is_killed_is_waited_for_and_what_it_did_not_take_is_counted(rodeo, recorders):
    with running(
        rodeo,
        "readout.consumer[1].grace=2s",
        "readout.consumer[1].pages=4",
        "readout.consumer[1].queue=64",
        "readout.input.rate=20kHz",
        text=WITHOUT_FILES,
    ) as run:
        first = recorders("first")
        run.wait_until(lambda status: counters(status)["chunks_published"] > 1000, "something is sent")
        first.process.kill()
        holds_up(run)
        held = run.wait_until(lambda status: counters(status)["undelivered"] > 0, "the time of grace is over")
        second = recorders("second")
        run.wait_until(
            lambda status: counters(status)["chunks_published"] > counters(held)["chunks_published"] + 1000,
            "the second is sent something",
        )
        report, said = run.finish()
        recorded = second.finish()
    assert report["run"]["condition"] == "INCOMPLETE" and publish_adds_up(report)
    assert counters(report)["undelivered"] == counters(held)["undelivered"] > 0 and counters(report)["not_taken"] == 0
    assert counters(report)["no_subscriber"] > 0 and report["dead_time_fraction"] > 0
    assert (
        recorded["lost"] == 0
        and recorded["events"] == counters(report)["chunks_published"] - counters(held)["chunks_published"]
    )
    assert (
        f"publish: undelivered {counters(report)['undelivered']}" in said
        and "subscriber events-record has not come back" in said
    )
    rodeo("data", "verify", *(rodeo.directory / "second").iterdir())


def test_a_recorder_that_is_stopped_makes_dead_time_and_loses_nothing(rodeo, recorders):
    with running(
        rodeo,
        "readout.consumer[1].pages=4",
        "readout.consumer[1].queue=64",
        "readout.input.rate=20kHz",
        text=WITHOUT_FILES,
    ) as run:
        recorder = recorders("recorded")
        run.wait_until(lambda status: counters(status)["chunks_published"] > 1000, "something is sent")
        recorder.process.send_signal(signal.SIGSTOP)
        holds_up(run)
        recorder.process.send_signal(signal.SIGCONT)
        before = counters(run.status())["chunks_published"]
        run.wait_until(lambda status: counters(status)["chunks_published"] > before + 1000, "it goes on")
        report, _ = run.finish()
        recorded = recorder.finish()
    assert report["run"]["condition"] == "GOOD" and publish_adds_up(report)
    assert recorded["events"] == report["fragments"]["built"] == len(recorder.events()) and recorded["lost"] == 0


def test_a_recorder_that_takes_nothing_at_the_end_is_not_waited_for_beyond_grace(rodeo, recorders):
    with running(
        rodeo,
        "readout.consumer[1].pages=4",
        "readout.consumer[1].grace=500ms",
        "readout.input.rate=20kHz",
        text=WITHOUT_FILES,
    ) as run:
        recorder = recorders("recorded")
        run.wait_until(lambda status: counters(status)["chunks_published"] > 1000, "something is sent")
        recorder.process.send_signal(signal.SIGSTOP)
        holds_up(run)
        report, said = run.finish()
        recorder.process.kill()
    assert report["run"]["condition"] == "INCOMPLETE" and publish_adds_up(report)
    assert counters(report)["not_taken"] > 0 and counters(report)["undelivered"] > 0
    assert f"not_taken {counters(report)['not_taken']}" in said


def test_a_monitor_that_stalls_loses_events_counted_on_both_sides_and_the_run_does_not_notice(rodeo):
    output = rodeo.directory / "tail.jsonl"
    seen = lambda: [json.loads(line) for line in output.read_text().split("\n")[:-1]]
    with (
        running(
            rodeo,
            "readout.consumer[1].pages=4",
            "readout.consumer[1].page_bytes=4KiB",
            "readout.consumer[1].wait_for_subscriber=false",
            text=WITHOUT_FILES,
        ) as run,
        output.open("w") as file,
    ):
        with rodeo.start("events", "tail", *STREAM, "-o", "json", stdout=file) as tail:
            run.wait_until(lambda status: counters(status)["chunks_published"] > 100, "it is seen")
            tail.send_signal(signal.SIGSTOP)
            stalled = run.wait_until(
                lambda status: counters(status)["monitor_chunks_dropped"] > 0, "it loses some events"
            )
            run.wait_until(
                lambda status: status["fragments"]["built"] > stalled["fragments"]["built"] + 2000, "the run goes on"
            )
            tail.send_signal(signal.SIGCONT)
            run.wait_until(lambda _: any(event["missed"] for event in seen()), "it knows that it missed events")
            report, _ = run.finish()
            _, err = tail.communicate(timeout=scaled(30))
            assert tail.returncode == 0, err
    events, of = seen(), counters(report)
    assert report["run"]["condition"] == "GOOD" and publish_adds_up(report) and of["waits"] == of["undelivered"] == 0
    assert len(events) == of["chunks_published"] and all(
        event["chunks"] == 8 and not event["problem"] for event in events
    )
    missed = sum(event["missed"] for event in events)
    last = of["chunks_published"] + of["monitor_chunks_dropped"] + of["unpublished_queue_full"] - len(events) - missed
    assert 2000 < missed and last in range(int(scaled(100))), "it does not know of events after its last one"


def test_tail_and_show_look_at_a_stream_of_the_network(rodeo):
    with running(rodeo, "readout.consumer[1].wait_for_subscriber=false", text=WITHOUT_FILES) as run:
        events = [
            json.loads(line) for line in rodeo("events", "tail", *STREAM, "-n", 5, "-o", "json").stdout.splitlines()
        ]
        tree = json.loads(rodeo("events", "show", *STREAM, "--data", "-o", "json").stdout)
        report, _ = run.finish()
    assert [event["sequence"] for event in events] == list(range(events[0]["sequence"], events[0]["sequence"] + 5))
    assert all(event["chunks"] == 8 and event["problem"] == "" for event in events)
    assert tree["kind"] == "event" and {field["name"]: field["value"] for field in tree["fields"]}["run number"] == 7
    assert report["run"]["condition"] == "GOOD" and publish_adds_up(report) and counters(report)["undelivered"] == 0


def test_who_does_not_know_the_secret_sees_nothing(rodeo):
    for name in ("ours", "other"):
        (rodeo.directory / name).write_text(f"the secret of {name}\n")
        (rodeo.directory / name).chmod(0o600)
    with running(
        rodeo,
        "readout.consumer[1].wait_for_subscriber=false",
        "readout.consumer[1].secret_file=ours",
        text=WITHOUT_FILES,
    ) as run:
        assert "error[transport.secret]" in rodeo("events", "tail", *STREAM, exit_code=5).stderr
        assert (
            "error[transport.secret]"
            in rodeo("events", "record", "none", *STREAM, "--secret-file", "other", exit_code=5).stderr
        )
        assert "8 chunks" in rodeo("events", "tail", *STREAM, "--secret-file", "ours", "-n", 1).stdout
        report, _ = run.finish()
    assert report["run"]["condition"] == "GOOD" and counters(report)["refused_peers"] == 2
    assert not (rodeo.directory / "none").exists()


def test_streams_that_are_not_there_or_not_the_only_one_are_refused(rodeo):
    assert "error[readout.no_stream]" in rodeo("events", "tail", "--from", "nobody.publish", exit_code=4).stderr
    two = (
        WITHOUT_FILES.replace("wait_for_subscriber = true", "")
        + '[[readout.consumer]]\ntype = "publish"\nbus = "bus"\n'
    )
    with running(rodeo, text=two) as run:
        refused = rodeo("events", "record", "none", "--bus", "bus", exit_code=2).stderr
        assert "error[readout.which_stream]" in refused and "test.publish, test.publish_2" in refused
        assert rodeo("events", "record", "one", "--bus", "bus", "--from", "test.publish_2", "-n", 3).returncode == 0
        run.finish()


def test_what_cannot_publish_is_refused_before_a_run(rodeo):
    file = write_configuration(rodeo, PUBLISHING)
    rodeo("check", file)
    refused = rodeo("check", file, "--set", "readout.consumer[1].address=0.0.0.0", exit_code=3).stderr
    assert "error[transport.no_secret]" in refused and "run.toml:" in refused
    assert (
        "error[transport.secret_file]"
        in rodeo("check", file, "--set", "readout.consumer[1].secret_file=nowhere", exit_code=3).stderr
    )


def test_a_readout_without_subscribers_does_not_load_the_network(rodeo):
    write_configuration(rodeo, WITHOUT_FILES.replace("wait_for_subscriber = true", ""))
    assert "libfabric" not in libraries(rodeo, "readout", "run.toml", "--seconds", "0.2")


def test_a_readout_does_not_take_the_fragments_of_another_for_links(rodeo):
    with running(rodeo, "readout.consumer[1].wait_for_subscriber=false", text=WITHOUT_FILES) as run:
        taker = WITHOUT_FILES.replace(
            'type = "generator"\nlinks = 8\nrate = "2kHz"', 'type = "network"\nbus = "bus"\nwait = "0s"'
        )
        write_configuration(rodeo, taker, "taker.toml")
        refused = rodeo("readout", "taker.toml", "--set", "readout.name=taker", exit_code=None).stderr
        assert "input.no_publisher" in refused
        run.finish()
