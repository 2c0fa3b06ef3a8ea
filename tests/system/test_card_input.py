"""A readout reads an emulated card of another process: nothing is lost when either process ends or dies."""

import json
import os
import signal
import subprocess
import time
from pathlib import Path

import pytest
from conftest import scaled
from running_emulator import emulated, emulator_report
from running_readout import adds_up

SYSTEM = """
[emulator]
name = "cards"
[[emulator.card]]
type = "felix"
name = "felix"
address = "0000:3b:00.0"
endpoints = {endpoints}
links = {links}
elinks_per_link = 4
ttc_link = {ttc}
[emulator.trigger]
rate = "{rate}"
{trigger}

[readout]
name = "reader"
[readout.input]
type = "card"
cards = [{cards}]
memory = "16MiB"
superpage = "256KiB"
start_generator = true
{input}
[readout.builder]
type = "gbt"
{builder}
[readout.extractor]
type = "rodeo"
[[readout.rob]]
source_id = "0x00610001"
[[readout.consumer]]
type = "processor"
name = "processor"
work = "verify"
seed = 1
"""


def system(rodeo, *, endpoints=1, links=4, rate="5kHz", ttc="false", trigger="", input="", builder="", cards=None):
    if "timeout" not in builder:
        builder += '\ntimeout = "2s"'  # a loaded machine stops processes for longer than the default time-out
    ids = cards or [f"3b:00.{endpoint}" for endpoint in range(endpoints)]
    text = SYSTEM.format(
        endpoints=endpoints,
        links=links,
        rate=rate,
        ttc=ttc,
        trigger=trigger,
        input=input,
        builder=builder,
        cards=", ".join(f'"{one}"' for one in ids),
    )
    (rodeo.directory / "system.toml").write_text(text)
    return "system.toml"


def chunks_sent(rodeo):
    return sum(function["chunks"] for function in emulator_report(rodeo)["functions"])


def read(rodeo, configuration, *arguments, seconds=1, exit_code=0):
    done = rodeo("readout", configuration, "--seconds", seconds, "--json", "-", *arguments, exit_code=exit_code)
    return json.loads(done.stdout) if done.stdout else None, done


@pytest.mark.parametrize("workers", [1, 2])
def test_every_chunk_that_the_card_has_sent_is_in_a_fragment(rodeo, workers):
    configuration = system(rodeo, builder=f"workers = {workers}")
    with emulated(rodeo, configuration):
        report, done = read(rodeo, configuration)
        assert report["chunks"]["built"] == chunks_sent(rodeo) > 0
    assert report["run"]["condition"] == "GOOD" and adds_up(report), done.stderr
    assert report["links"] == 16
    assert report["verified"] == {"chunks": report["chunks"]["built"], "mismatches": 0}


def cpus_of_threads(pid, name):
    """The CPUs that each thread with this name may use."""
    found = []
    for task in (Path("/proc") / str(pid) / "task").iterdir():
        try:
            if (task / "comm").read_text().strip().startswith(name):
                found.append(os.sched_getaffinity(int(task.name)))
        except (FileNotFoundError, ProcessLookupError):
            pass
    return found


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="host: one CPU, every place is the same")
@pytest.mark.parametrize(
    "numa, cpus, said",
    [
        ("1", {1}, "on NUMA node 1 (CPUs 1)"),
        ("card", None, "free: the card's NUMA node is not known"),
        ("off", None, "free: as asked"),
    ],
)
def test_workers_read_on_the_cpus_of_the_cards_node(rodeo, numa, cpus, said):
    """hwloc simulates a machine with two NUMA nodes of one CPU each."""
    configuration = system(rodeo, builder="workers = 2", input=f'numa = "{numa}"')
    environment = {**rodeo.environment, "HWLOC_SYNTHETIC": "node:2 core:1 pu:1", "HWLOC_THISSYSTEM": "1"}
    with emulated(rodeo, configuration):
        with subprocess.Popen(
            [rodeo.binary, "readout", configuration, "--log", "info"],
            cwd=rodeo.directory,
            env=environment,
            stderr=subprocess.PIPE,
            text=True,
        ) as reader:
            deadline = time.monotonic() + scaled(20)
            expected = cpus or os.sched_getaffinity(0)
            while chunks_sent(rodeo) == 0 or cpus_of_threads(reader.pid, "rodeo-gbt") != [expected] * 2:
                assert reader.poll() is None and time.monotonic() < deadline, cpus_of_threads(reader.pid, "")
                time.sleep(0.05)
            assert os.sched_getaffinity(reader.pid) == os.sched_getaffinity(
                0
            )  # the thread of the application is not pinned
            reader.send_signal(signal.SIGINT)
            _, err = reader.communicate(timeout=scaled(20))
    assert reader.returncode == 0 and f"readers {said}" in err, err


@pytest.mark.parametrize("start_generator", ["true", "false"])
def test_two_endpoints_begin_and_end_with_the_same_trigger(rodeo, start_generator):
    configuration = system(rodeo, endpoints=2, trigger="wait_for = 2", builder='timeout = "2s"')
    with emulated(rodeo, configuration):
        sent = 0
        for _ in range(3):
            report, done = read(
                rodeo, configuration, "--set", f"readout.input.start_generator={start_generator}", seconds=0.5
            )
            assert report["run"]["condition"] == "GOOD" and report["links"] == 32, done.stderr
            assert report["fragments"]["incomplete"] == 0 and not report["chunks"]["lost"]
            assert report["chunks"]["built"] == chunks_sent(rodeo) - sent > 0
            assert report["verified"] == {"chunks": report["chunks"]["built"], "mismatches": 0}
            sent = chunks_sent(rodeo)
        trigger = emulator_report(rodeo)["trigger"]
        assert all(one["missed"] == 0 and one["triggers"] == trigger["accepted"] for one in trigger["followers"])


CRU = """
[emulator]
name = "cards"
[[emulator.card]]
type = "cru"
name = "cru"
address = "0000:af:00.0"
endpoints = 2
links = 4
frame_size = "4KiB"
overflow = "busy"
first_orbit = 8
[emulator.trigger]
rate = "2kHz"
wait_for = 2

[readout]
name = "reader"
[readout.input]
type = "card"
cards = ["af:00.0", "af:00.1"]
memory = "64MiB"
superpage = "32KiB"
start_generator = true
[readout.builder]
type = "gbt"
chunk_size = "8KiB"
window = 4096
buffers = 4200
timeout = "10s"
[readout.extractor]
type = "rdh"
[[readout.rob]]
source_id = "0x00610001"
[[readout.consumer]]
type = "processor"
name = "processor"
work = "verify_rdh"
seed = 1
"""


def test_two_endpoints_of_a_cru_begin_and_end_with_the_same_orbit(rodeo):
    (rodeo.directory / "cru.toml").write_text(CRU)
    with emulated(rodeo, "cru.toml"):
        for superpage in ("32KiB", "1MiB"):  # with 1 MiB, a link fills a superpage before other links reach the builder
            report, done = read(rodeo, "cru.toml", "--set", f"readout.input.superpage={superpage}", seconds=0.7)
            assert report["run"]["condition"] == "GOOD" and report["fragments"]["incomplete"] == 0, done.stderr
            assert report["fragments"]["built"] > 0 and report["verified"]["mismatches"] == 0
        one, two = emulator_report(rodeo)["functions"]
        assert one["triggers"] == two["triggers"] > 0
        assert one["chunks"] == 4 * one["triggers"]  # each trigger makes a frame on every link


def test_event_counter_resets_are_followed_by_the_triggers_own_list(rodeo):
    ttc_elink = 7 << 3 | 3
    configuration = system(
        rodeo,
        ttc="true",
        trigger="ecr_triggers = 700",
        input=f"trigger_elink = {ttc_elink}",
        builder="trigger_list = true",
    )
    with emulated(rodeo, configuration):
        report, done = read(rodeo, configuration, "--events", 2500, seconds=scaled(30))
    assert report["run"]["condition"] == "GOOD" and report["links"] == 16, done.stderr
    assert report["verified"]["mismatches"] == 0 and report["fragments"]["built"] >= 2500  # three resets


def test_a_card_can_be_read_again_and_again(rodeo):
    configuration = system(rodeo)
    with emulated(rodeo, configuration):
        sent = 0
        for _ in range(3):
            report, done = read(rodeo, configuration, seconds=0.3)
            assert report["run"]["condition"] == "GOOD", done.stderr
            assert report["chunks"]["built"] == chunks_sent(rodeo) - sent > 0
            sent = chunks_sent(rodeo)


def test_a_second_reader_is_refused_and_the_first_goes_on(rodeo):
    configuration = system(rodeo)
    with emulated(rodeo, configuration):
        with rodeo.start("readout", configuration, "--seconds", 3, "--json", "-") as first:
            deadline = time.monotonic() + scaled(20)
            while chunks_sent(rodeo) == 0:
                assert time.monotonic() < deadline
                time.sleep(0.05)
            _, refused = read(rodeo, configuration, "--set", "readout.name=other", exit_code=5)
            assert "error[card.locked]" in refused.stderr and str(first.pid) in refused.stderr
            out, err = first.communicate(timeout=scaled(60))
        assert first.returncode == 0, err
        assert json.loads(out)["run"]["condition"] == "GOOD"


def test_an_emulator_that_stands_still_loses_nothing(rodeo):
    configuration = system(rodeo)
    with emulated(rodeo, configuration) as emulator:
        with rodeo.start("readout", configuration, "--seconds", 3, "--json", "-") as reader:
            deadline = time.monotonic() + scaled(20)
            while chunks_sent(rodeo) == 0:
                assert time.monotonic() < deadline
                time.sleep(0.05)
            os.kill(emulator.pid, signal.SIGSTOP)
            time.sleep(0.6)
            os.kill(emulator.pid, signal.SIGCONT)
            out, err = reader.communicate(timeout=scaled(60))
        report = json.loads(out)
        assert reader.returncode == 0 and report["run"]["condition"] == "GOOD", err
        assert report["chunks"]["built"] == chunks_sent(rodeo)


def test_a_reader_that_was_killed_leaves_the_card_to_the_next(rodeo):
    configuration = system(rodeo)
    with emulated(rodeo, configuration):
        with rodeo.start("readout", configuration, "--seconds", 60) as reader:
            deadline = time.monotonic() + scaled(20)
            while chunks_sent(rodeo) == 0:
                assert time.monotonic() < deadline
                time.sleep(0.05)
            reader.kill()
            reader.communicate(timeout=scaled(20))
        report, done = read(rodeo, configuration)
        assert report["run"]["condition"] == "GOOD" and report["verified"]["mismatches"] == 0, done.stderr


def test_a_reader_that_was_killed_does_not_hold_the_others(rodeo):
    configuration = system(rodeo, endpoints=2)

    def start(endpoint):
        return rodeo.start(
            "readout",
            configuration,
            "--seconds",
            600,
            "--json",
            "-",
            "--set",
            f"readout.name=reader{endpoint}",
            "--set",
            f'readout.input.cards=["3b:00.{endpoint}"]',
            "--set",
            f"readout.input.connector={endpoint}",
        )

    def wait_for(condition, others):
        deadline = time.monotonic() + scaled(30)
        while not condition(emulator_report(rodeo)["functions"]):
            assert others.poll() is None and time.monotonic() < deadline, emulator_report(rodeo)
            time.sleep(0.05)

    with emulated(rodeo, configuration), start(0) as killed, start(1) as other:
        wait_for(lambda functions: all(one["triggers"] > 0 for one in functions), other)
        killed.kill()
        killed.communicate(timeout=scaled(20))
        wait_for(lambda functions: not functions[0]["running"], other)
        begin = emulator_report(rodeo)["functions"][1]["triggers"]
        wait_for(
            lambda functions: functions[1]["triggers"] > begin + 10000, other
        )  # more triggers than the card of the dead process holds
        assert emulator_report(rodeo)["functions"][0]["counters"]["readers_lost"] == 1
        other.send_signal(signal.SIGINT)
        out, err = other.communicate(timeout=scaled(60))
    assert other.returncode == 0 and json.loads(out)["run"]["condition"] == "GOOD", err


def test_a_felix_is_left_as_it_was_found_and_a_generator_that_is_off_is_named(rodeo):
    configuration = system(rodeo)
    found = ["--set", "readout.input.start_generator=false"]

    def generator(value=None):
        if value is not None:
            rodeo("card", "reg", "write", "--id", "3b:00.0", "generator_control", value)
        return json.loads(rodeo("card", "reg", "read", "--id", "3b:00.0", "generator_control", "-o", "json").stdout)[0][
            "value"
        ]

    with emulated(rodeo, configuration):
        for arguments in ([], found):
            report, done = read(rodeo, configuration, *arguments, seconds=0.5)
            assert report["run"]["condition"] == "GOOD" and report["chunks"]["built"] > 0, done.stderr
        assert generator() == 1 and generator(0) == 0
        report, done = read(rodeo, configuration, *found, seconds=0.3)
        assert (
            report["run"]["condition"] == "INCOMPLETE"
            and report["chunks"]["sent"] == 0
            and report["limited_by"] == "input"
        )
        assert "its generator is off" in done.stderr and "no data came" in done.stderr
        bench = [
            "card",
            "bench",
            "dma",
            "--id",
            "3b:00.0",
            "--buffer-size",
            "16MiB",
            "--superpage-size",
            "256KiB",
            "--duration",
            "300ms",
        ]
        assert "its generator is off" in rodeo(*bench, "--data-source", "fee", exit_code=4).stderr
        rodeo(*bench, "--data-source", "internal")
        report, done = read(rodeo, configuration, seconds=0.5)
        assert report["run"]["condition"] == "GOOD", done.stderr
        assert generator() == 0


def test_an_emulator_that_dies_ends_the_run_and_is_named(rodeo):
    configuration = system(rodeo)
    with emulated(rodeo, configuration) as emulator:
        with rodeo.start("readout", configuration, "--seconds", 60, "--json", "-") as reader:
            deadline = time.monotonic() + scaled(20)
            while chunks_sent(rodeo) == 0:
                assert time.monotonic() < deadline
                time.sleep(0.05)
            emulator.kill()
            out, err = reader.communicate(timeout=scaled(60))
        assert reader.returncode == 1, err
        assert json.loads(out)["run"]["condition"] == "ABORTED"
        assert "3b:00.0" in err


def test_a_card_that_is_not_there_is_an_error_that_lists_what_is(rodeo):
    configuration = system(rodeo, cards=["00:1f.7"])
    _, done = read(rodeo, configuration, exit_code=None)
    assert done.returncode in (3, 4) and "error[card.not_found]" in done.stderr and "00:1f.7" in done.stderr


def test_superpages_that_do_not_fit_the_memory_are_refused(rodeo):
    configuration = system(rodeo)
    _, done = read(rodeo, configuration, "--set", "readout.input.superpage=10MiB", exit_code=3)
    assert "error[readout.card_memory]" in done.stderr


def test_a_card_that_brings_nothing_is_named_with_its_links(rodeo):
    # Triggers come slowly, and the card and the event window hold all of them. So a slow machine makes no other link miss an event.
    text = CRU.replace('rate = "2kHz"', 'rate = "100Hz"').replace(
        'overflow = "busy"', 'overflow = "drop"\nfifo_triggers = 1000000'
    )
    (rodeo.directory / "cru.toml").write_text(text)
    with emulated(rodeo, "cru.toml"):
        with rodeo.start("readout", "cru.toml", "--seconds", 600, "--json", "-") as reader:

            def wait_for_triggers(count):
                deadline = time.monotonic() + scaled(30)
                while emulator_report(rodeo)["functions"][0]["triggers"] < count:
                    assert reader.poll() is None and time.monotonic() < deadline
                    time.sleep(0.05)

            wait_for_triggers(100)
            for link in range(4):
                rodeo("emulate", "fault", "--id", "cru:1", "stuck_fifo", "--link", link)
            stuck = emulator_report(rodeo)["functions"][0]["triggers"]
            wait_for_triggers(stuck + 400)  # for four seconds of triggers only one card sends data
            reader.send_signal(signal.SIGINT)
            out, err = reader.communicate(timeout=scaled(90))
    report = json.loads(out)
    assert report["run"]["condition"] == "INCOMPLETE" and report["input"]["cards_silent"] == 1, err
    assert "card af:00.1 has sent no data for" in err and "1 card had brought nothing" in err, err
    assert len(report["fragments"]["missing_links"]) == 4 and "4 of 8 links in some fragments" in err, err
