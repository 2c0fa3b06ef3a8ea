"""`rodeo events`: shows events of a running readout on another terminal, without disturbing it."""

import json
import subprocess

from conftest import scaled
from running_readout import CONFIGURATION, adds_up, running


def lines(done):
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_without_a_readout_there_is_a_clear_error(rodeo):
    for verb in ("tail", "show"):
        done = rodeo("events", verb, exit_code=4)
        assert "readout.no_sampler" in done.stderr and "event_sampler" in done.stderr
        assert rodeo("events", verb, "--name", "nobody", exit_code=4).stdout == ""


def test_tail_shows_one_line_for_each_event(rodeo):
    with running(rodeo) as run:
        events = lines(rodeo("events", "tail", "--events", 5, "-o", "json"))
        table = rodeo("events", "tail", "--name", "test", "-n", 2).stdout.splitlines()
        report, _ = run.finish()
    assert len(events) == 5 and len(table) == 2
    assert all(event["chunks"] == 8 and event["status"] == 0 and event["problem"] == "" for event in events)
    assert all(event["source_id"] == 0x00610001 for event in events)
    sequences = [event["sequence"] for event in events]
    assert sequences == sorted(set(sequences))
    assert all("8 chunks" in line and line.endswith("ok") for line in table)
    assert report["run"]["condition"] == "GOOD" and adds_up(report)


def test_show_takes_an_event_apart_word_by_word(rodeo):
    with running(rodeo) as run:
        tree = json.loads(rodeo("events", "show", "-o", "json").stdout)
        text = rodeo("events", "show", "--all").stdout
        run.finish()
    assert tree["kind"] == "event"
    fields = {field["name"]: field["value"] for field in tree["fields"]}
    assert fields["marker"] == 0xAA1234AA and fields["run number"] == 7
    rob = next(child for child in tree["children"] if child["kind"] == "rob")
    rod = next(child for child in rob["children"] if child["kind"] == "rod")
    assert sum(child["kind"] == "chunk" for child in rod["children"]) == 8
    assert "aa1234aa" in text and "dd1234dd" in text and "ee1234ee" in text


def test_only_incomplete_events_are_shown_if_asked_for(rodeo):
    faulty = CONFIGURATION.replace('rate = "2kHz"', 'rate = "2kHz"\nfault_missing = 0.02')
    with running(rodeo, text=faulty) as run:
        events = lines(rodeo("events", "tail", "--incomplete", "-n", 3, "-o", "json"))
        run.finish()
    assert len(events) == 3 and all(event["missing_links"] > 0 and event["chunks"] < 8 for event in events)


def test_a_reader_that_stops_reading_does_not_hold_up_the_run(rodeo):
    with running(rodeo, "readout.consumer[1].max_rate=0Hz") as run:
        # No process reads the pipe. So the client soon blocks in a write, and reads no more events.
        with rodeo.start("events", "tail", "-o", "json") as reader:
            sampler = lambda status: status["consumers"]["event_sampler"]["counters"]
            before = run.status()
            run.wait_until(
                lambda status: status["fragments"]["built"] > before["fragments"]["built"] + 4000, "the run went on"
            )
            reader.kill()
            reader.communicate(timeout=scaled(30))
        report, _ = run.finish()
    assert report["run"]["condition"] == "GOOD" and adds_up(report)
    assert report["consumers"]["event_sampler"]["stalls"] == 0
    assert sampler(report)["readers_seen"] == 1


def test_who_follows_ends_when_nothing_can_be_written(rodeo):
    with running(rodeo) as run, open("/dev/full", "w") as full:
        for follow in (("events", "tail"), ("readout", "status", "--watch")):
            with rodeo.start(*follow, "--name", "test", stdout=full) as reader:
                _, error = reader.communicate(timeout=scaled(30))
            assert reader.returncode == 1 and "cli.output" in error
        run.finish()


def test_a_reader_ends_with_the_run(rodeo):
    with running(rodeo) as run:
        with rodeo.start("events", "tail", "--prescale", "100", "-o", "json", stderr=subprocess.DEVNULL) as reader:
            run.wait_until(
                lambda status: status["consumers"]["event_sampler"]["counters"]["readers"] == 1, "the reader was there"
            )
            run.finish()
            reader.communicate(timeout=scaled(30))
            assert reader.returncode == 0
