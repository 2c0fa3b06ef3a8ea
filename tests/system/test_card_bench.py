"""`rodeo card bench` on emulated cards: its measurements, the errors it finds, its refusals, and kills of its processes."""

import csv
import io
import json
import os
import random
import signal
import subprocess
import time

import pytest

from conftest import Rodeo, scaled
from emulated_cards import CARDS, CRU, CRU_1, FELIX, SMALL, emulated
from running_readout import running


@pytest.fixture(scope="module")
def cards(tmp_path_factory):
    with emulated(Rodeo(tmp_path_factory.mktemp("cards"))) as running:
        yield running


@pytest.mark.parametrize("card, source", [(CRU, "internal"), (CRU, "ddg"), (CRU_1, "fee"), (FELIX, "fee")])
@pytest.mark.parametrize("check", ["full", "fast", "none"])
def test_dma_is_benched_and_free_of_errors(cards, card, source, check):
    result = cards.bench(card, "--data-source", source, "--error-check", check)
    assert (
        result["errors"] == 0
        and result["bytes"] >= 64 << 20
        and result["superpages"] >= result["bytes"] / (256 << 10) - 1
    )
    assert (
        result["bytes_per_second"] > 0
        and 0 <= result["driver_cpu_fraction"] < 2
        and result["superpage_latency_p50_us"] > 0
    )
    assert result["store_ceiling_bytes_per_second"] > 0


def test_a_wrong_pattern_is_found(cards, tmp_path):
    result = cards.bench(
        CRU, "--data-source", "fee", "--pattern", "words", "--error-file", tmp_path / "errors", exit_code=7
    )
    assert result["errors"] > 0 and result["counts"]["payload"] == result["errors"]
    assert (tmp_path / "errors").read_text().startswith("payload: link ")


@pytest.mark.parametrize("source, pattern", [("internal", "internal"), ("ddg", "provable"), ("fee", "provable")])
def test_what_was_read_can_be_kept_and_read(cards, tmp_path, source, pattern):
    """`data verify` checks a dump of any source by the rules of the bench. For the sources ddg and fee, emulated links send provable payload."""
    path = tmp_path / "data"
    result = cards.bench(CRU, "--data-source", source, "--to-file", path, size="20MiB")
    data = path.read_bytes()
    assert len(data) == result["bytes"]
    (verified,) = json.loads(cards.rodeo("data", "verify", path, "-o", "json").stdout)
    assert (verified["sound"], verified["kind"], verified["pattern"]) == (True, "superpage_dump", pattern)
    (info,) = json.loads(cards.rodeo("data", "info", path, "-o", "json").stdout)
    assert info["sound"] and info["pages"] == verified["pages"] and info["size_bytes"] == len(data)
    if source == "internal":
        return
    assert data[1] == 64  # size of the first header
    links = json.loads(cards.rodeo("data", "list", path, "-o", "json").stdout)
    assert sum(link["pages"] for link in links) == info["pages"] == result["counts"]["pages"]
    assert len(links) == info["links"] and all(link["heartbeat_frames"] > 0 for link in links)
    (page,) = json.loads(cards.rodeo("data", "dump", path, "--event", "2", "-o", "json").stdout)
    words = {field["name"]: field["value"] for field in page["fields"]}
    second = int.from_bytes(data[8:10], "little")
    assert words["orbit"] == int.from_bytes(data[second + 20 : second + 24], "little")
    assert len(bytes.fromhex(page["bytes"])) == int.from_bytes(data[second + 10 : second + 12], "little") - 64
    for at in (len(data) // 2 // second * second + 200, 100):  # bytes of a payload
        path.write_bytes(data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :])
        (damaged,) = json.loads(cards.rodeo("data", "verify", path, "-o", "json", exit_code=7).stdout)
        assert damaged["findings"][0]["offset_bytes"] == at // 4 * 4 and damaged["errors"] == {"payload": 1}, damaged


@pytest.mark.parametrize(
    "arguments",
    [
        ["--superpage-size", "1KiB"],
        ["--superpage-size", "0"],
        ["--buffer-size", "256KiB", "--superpage-size", "256KiB"],
        ["--superpage-size", "16MiB", "--buffer-size", "64MiB"],
        ["--channel", "1"],
        ["--data-source", "siu"],
        ["--error-check-frequency", "0"],
    ],
)
def test_a_bench_that_cannot_be_is_refused(cards, arguments):
    assert cards.card(
        "bench", "dma", "--id", CRU, "--bytes", "1MiB", *SMALL[:2], *arguments, exit_code=2
    ).stderr.startswith("error[")


def test_what_a_bench_found_is_told_in_every_form(cards):
    arguments = ["bench", "dma", "--id", FELIX, "--data-source", "fee", "--bytes", "8MiB", *SMALL, "--numa", "off"]
    said = cards.card(*arguments).stdout
    assert "Errors               0" in said and "Reader               free: as asked" in said
    result = cards.json(*arguments)
    assert result["errors"] == 0 and result["bytes"] >= 8 << 20 and result["reader"] == "free: as asked"
    (row,) = csv.DictReader(io.StringIO(cards.card(*arguments, "-o", "csv").stdout))
    assert row["errors"] == "0" and int(row["bytes"]) >= 8 << 20 and "superpage_latency_p99_us" in row
    bar = ["bench", "bar", "--id", FELIX, "--bar", "0", "--duration", "20ms"]
    assert cards.json(*bar)["mapped"] and "1 process, mapped" in cards.card(*bar).stdout
    assert float(next(csv.DictReader(io.StringIO(cards.card(*bar, "-o", "csv").stdout)))["operations_per_second"]) > 0


@pytest.mark.parametrize("card", [CRU, FELIX])
def test_a_pause_longer_than_the_patience_is_no_silence(rodeo, card):
    """The bench finds data that came during a pause: only polls without data count as silence."""
    arguments = [
        "bench",
        "dma",
        "--id",
        card,
        "--data-source",
        "fee",
        *SMALL,
        "--pause",
        "60s",
        "--patience",
        "100ms",
        "-o",
        "json",
    ]
    with emulated(rodeo) as cards:
        bench = rodeo.start("card", *arguments)
        cards.wait_for_data(card, bench)
        bench.send_signal(signal.SIGINT)
        out, err = bench.communicate(timeout=scaled(20))  # a pause does not delay Ctrl-C
        assert bench.returncode == 0 and json.loads(out)["errors"] == 0, err
        assert cards.json(*arguments, "--duration", "400ms")["bytes"] > 0  # a pause ends with the run
        result = cards.bench(card, "--data-source", "fee", "--pause", "300ms", "--patience", "100ms", size="20MiB")
        assert result["errors"] == 0 and result["bytes"] >= 20 << 20


@pytest.mark.parametrize(
    "arguments, says",
    [
        (["dma", "--duration", "0s"], "would never end"),
        (["dma", "--duration", "0s", "--bytes", "0"], "would never end"),
        (["bar", "--duration", "0s"], "a millisecond or more"),
        (["bar", "--cycles", "0"], "1 or more"),
        (["bar", "--duration", "999us"], "a millisecond or more"),
    ],
)
def test_benches_without_an_end_or_of_nothing_are_refused(cards, arguments, says):
    said = cards.card("bench", arguments[0], "--id", CRU, *arguments[1:], exit_code=2).stderr
    assert said.startswith("error[cli.bad_value]") and says in said


def test_a_bench_takes_its_links_as_a_list(cards):
    for links in ("0-1", "1,0"):
        assert cards.bench(CRU, "--data-source", "fee", "--links", links, "--duration", "0s")["errors"] == 0
        assert all((cards.register(CRU, f"superpages_done[{link}]") > 0) == (link < 2) for link in range(3))


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="host: one CPU, every place is the same")
def test_a_bench_reads_on_the_cpus_of_the_node_that_it_is_told(cards):
    """hwloc simulates a machine with two NUMA nodes of one CPU each; the process's thread is pinned while it reads."""
    for node in ("0", "1"):
        environment = {**cards.rodeo.environment, "HWLOC_SYNTHETIC": "node:2 core:1 pu:1", "HWLOC_THISSYSTEM": "1"}
        bench = subprocess.Popen(
            [
                cards.rodeo.binary,
                "card",
                "bench",
                "dma",
                "--id",
                FELIX,
                "--data-source",
                "fee",
                "--duration",
                "60s",
                *SMALL,
                "--numa",
                node,
                "-o",
                "json",
            ],
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        deadline = time.monotonic() + scaled(20)
        while os.sched_getaffinity(bench.pid) != {int(node)}:
            assert bench.poll() is None and time.monotonic() < deadline, bench.communicate()
            time.sleep(0.01)
        bench.send_signal(signal.SIGINT)
        out, err = bench.communicate(timeout=scaled(20))
        assert bench.returncode == 0 and json.loads(out)["reader"] == f"on NUMA node {node} (CPUs {node})", err
    said = cards.card("bench", "dma", "--id", FELIX, *SMALL, "--numa", "99", exit_code=2).stderr
    assert "there is no NUMA node 99" in said and "there are: " in said
    cards.card("bench", "dma", "--id", FELIX, *SMALL, "--numa", "near", exit_code=2)


def test_registers_are_benched_by_several_processes(cards):
    trapped = json.loads(
        cards.card(
            "bench", "bar", "--id", CRU, "--bar", 2, "--processes", 3, "--duration", "100ms", "--json", "-"
        ).stdout
    )
    assert not trapped["mapped"] and len(trapped["per_process"]) == 3
    assert trapped["operations_per_second"] > 0 and trapped["of_ceiling"] > 0
    assert 0 < min(trapped["per_process"]) <= sum(trapped["per_process"]) / 3 <= max(trapped["per_process"])
    mapped = json.loads(
        cards.card("bench", "bar", "--id", FELIX, "--bar", 0, "--duration", "100ms", "--json", "-").stdout
    )
    assert mapped["mapped"] and mapped["operations_per_second"] > trapped["operations_per_second"]
    pairs = json.loads(
        cards.card(
            "bench",
            "bar",
            "--id",
            CRU,
            "--register",
            "ctp_hb_max",
            "--value",
            255,
            "--duration",
            "100ms",
            "--json",
            "-",
        ).stdout
    )
    assert pairs["writes"] and pairs["wrong_reads"] == 0 and cards.register(CRU, "ctp_hb_max") == 255
    command = [
        "bench",
        "bar",
        "--id",
        CRU,
        "--register",
        "i2c_sfp_command",
        "--value",
        4,
        "--duration",
        "20ms",
        "--json",
        "-",
    ]  # written values are not kept
    wrong = cards.card(*command, exit_code=7)
    assert json.loads(wrong.stdout)["wrong_reads"] > 0 and "error[readout.bench_mismatch]" in wrong.stderr
    assert (
        "can only be read"
        in cards.card("bench", "bar", "--id", CRU, "--register", "temperature", "--value", 1, exit_code=5).stderr
    )
    cards.card("bench", "bar", "--id", CRU, "--processes", 0, exit_code=2)
    counted = cards.json(
        "bench", "bar", "--id", CRU, "--register", "ctp_hb_max", "--value", 255, "--cycles", 1000, "--processes", 2
    )
    assert counted["operations"] == 4000 and counted["seconds"] > 0 and counted["operations_per_second"] > 0
    cards.card("bench", "bar", "--id", CRU, "--cycles", 10, "--duration", "1s", exit_code=2)


def test_a_channel_has_one_owner_whom_others_do_not_disturb(cards):
    """While one process reads, others may read and set registers, but not own the channel; the transfer stays correct."""
    before = cards.register(CRU, "superpages_done[0]")  # the count of the last reader
    owner = cards.rodeo.start(
        "card", "bench", "dma", "--id", CRU, "--data-source", "fee", "--duration", "600s", *SMALL, "--json", "-"
    )
    deadline = time.monotonic() + scaled(20)
    while cards.register(CRU, "superpages_done[0]") in (0, before):
        assert owner.poll() is None and time.monotonic() < deadline
    refused = cards.card("bench", "dma", "--id", CRU, "--bytes", "1MiB", *SMALL, exit_code=5).stderr
    assert "card.locked" in refused and str(owner.pid) in refused
    assert "card.locked" in cards.card("reset", "--id", CRU, exit_code=5).stderr
    sources = [cards.register(CRU, f"gbt_link_source[{link}]") for link in range(2)]
    for disturbing in (
        ["loopback", "--links", "0,1", "--internal", "--duration", "1ms"],
        ["ctp", "--trigger-period", 400],
        ["ctp", "--eox"],
        ["ctp", "--single-trigger"],
    ):
        said = cards.card(*disturbing, "--id", CRU, exit_code=5).stderr
        assert "card.locked" in said and str(owner.pid) in said and "--while-running" in said
    assert [cards.register(CRU, f"gbt_link_source[{link}]") for link in range(2)] == sources
    cards.card("ctp", "--id", CRU, "--status")
    cards.card("ctp", "--id", CRU, "--eox", "--while-running")
    cards.card("loopback", "--id", CRU, "--links", "0,1", "--skip-reset", "--duration", "1ms", exit_code=None)
    cards.card("status", "--id", CRU)
    cards.card("metrics", "--prometheus")
    cards.card("config", "--id", CRU, "--dry-run", "--cru-id", "0x12")
    cards.card("bench", "bar", "--id", CRU, "--processes", 2, "--duration", "200ms")
    owner.send_signal(signal.SIGINT)
    out, err = owner.communicate(timeout=scaled(30))
    assert owner.returncode == 0, err
    assert json.loads(out)["errors"] == 0


def test_a_bench_whose_data_end_before_it_does_has_no_data(rodeo):
    with emulated(rodeo, CARDS.replace("wait_for = 1", "wait_for = 1\nlimit = 1000")) as cards:
        arguments = ["bench", "dma", "--id", FELIX, "--data-source", "fee", *SMALL]
        said = cards.card(*arguments, "--duration", "3s", "--patience", "4s", exit_code=4).stderr
        assert "error[card.no_data]" in said and "bytes had come before" in said
        said = cards.card(*arguments, "--duration", "300ms", "--patience", "20s", exit_code=4).stderr
        assert "error[card.no_data]" in said and "no data in 0." in said


@pytest.mark.parametrize("check", ["full", "fast"])
def test_chunks_that_the_card_flags_are_errors_of_a_bench(cards, check):
    arguments = [FELIX, "--data-source", "fee", "--error-check", check]
    assert cards.bench(*arguments)["errors"] == 0
    cards.rodeo("emulate", "fault", "--id", "felix", "truncated_page", "--link", 3)
    result = cards.bench(*arguments, exit_code=7)
    assert result["errors"] == 1 and result["counts"]["firmware_truncated"] == 1


@pytest.mark.parametrize(
    "card, name, fault", [(FELIX, "felix", "link_down"), (CRU, "cru", "link_down"), (CRU, "cru", "stuck_fifo")]
)
def test_a_link_that_falls_silent_is_an_error_of_a_bench(rodeo, card, name, fault):
    with emulated(rodeo) as cards:
        bench = rodeo.start(
            "card", "bench", "dma", "--id", card, "--data-source", "fee", "--duration", "600s", *SMALL, "--json", "-"
        )
        cards.wait_for_data(card, bench)
        rodeo("emulate", "fault", "--id", name, fault, "--link", 1)
        time.sleep(scaled(2))
        bench.send_signal(signal.SIGINT)
        out, err = bench.communicate(timeout=scaled(30))
        assert bench.returncode == 7, err
        assert json.loads(out)["counts"]["silent_links"] == (4 if name == "felix" else 1)


@pytest.mark.parametrize("card", [CRU, FELIX])
def test_a_bench_reads_as_much_as_it_is_told_and_to_the_end_of_a_superpage(cards, card, tmp_path):
    result = cards.bench(card, "--data-source", "fee", "--to-file", tmp_path / "data", size="20MiB")
    assert result["errors"] == 0 and 20 << 20 <= result["bytes"] < (20 << 20) + (256 << 10)
    assert (tmp_path / "data").stat().st_size == result["bytes"]


def test_links_whose_superpages_come_in_batches_are_not_silent(cards):
    result = cards.json(
        "bench",
        "dma",
        "--id",
        CRU,
        "--data-source",
        "fee",
        "--bytes",
        "40MiB",
        "--buffer-size",
        "64MiB",
        "--superpage-size",
        "32KiB",
        "--pause",
        "200ms",
    )
    assert result["errors"] == 0, result["counts"]


def test_heartbeat_frames_that_a_cru_has_lost_are_errors_of_a_bench(rodeo):
    with emulated(rodeo, CARDS.replace("rate = 0", 'rate = "1kHz"')) as cards:
        arguments = [CRU, "--data-source", "fee", "--links", "0,1"]
        assert cards.bench(*arguments, size="8MiB")["errors"] == 0
        rodeo("emulate", "fault", "--id", "cru", "dropped_superpage", "--link", 1)
        result = cards.bench(*arguments, size="8MiB", exit_code=7)  # the first superpage is missing
        assert result["errors"] == result["counts"]["first_orbit"] == 1
        bench = rodeo.start("card", "bench", "dma", "--id", *arguments, "--duration", "600s", *SMALL, "--json", "-")
        deadline = time.monotonic() + scaled(20)

        def wait_for_more():
            before = cards.register(CRU, "superpages_done[1]")
            while cards.register(CRU, "superpages_done[1]") in (0, before):
                assert bench.poll() is None and time.monotonic() < deadline

        wait_for_more()
        rodeo("emulate", "fault", "--id", "cru", "link_down", "--link", 1, "--duration", "200ms")
        time.sleep(0.3)
        wait_for_more()
        bench.send_signal(signal.SIGINT)
        out, err = bench.communicate(timeout=scaled(30))
        assert bench.returncode == 7 and json.loads(out)["counts"]["orbit"] == json.loads(out)["errors"] == 1, (
            out,
            err,
        )
        assert "orbit: link 1" in err


@pytest.mark.parametrize("card, source", [(CRU, "fee"), (FELIX, "fee")])
def test_an_emulator_that_is_killed_ends_a_bench_with_an_error(rodeo, card, source):
    with emulated(rodeo) as cards:
        bench = rodeo.start("card", "bench", "dma", "--id", card, "--data-source", source, "--duration", "60s", *SMALL)
        cards.wait_for_data(card, bench)
        cards.process.kill()
        out, err = bench.communicate(timeout=scaled(15))
        assert bench.returncode == 4, err
        assert "error[card.gone]" in err or "error[card.timeout]" in err


def test_a_bench_that_is_interrupted_ends_in_order(rodeo):
    with emulated(rodeo) as cards:
        bench = rodeo.start(
            "card", "bench", "dma", "--id", FELIX, "--data-source", "fee", "--duration", "60s", *SMALL, "--json", "-"
        )
        cards.wait_for_data(FELIX, bench)
        bench.send_signal(signal.SIGINT)
        out, err = bench.communicate(timeout=scaled(15))
    assert bench.returncode == 0, err
    assert json.loads(out)["errors"] == 0 and json.loads(out)["bytes"] > 0


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_whoever_is_killed_the_card_goes_on_working(rodeo, seed):
    """Owners and other processes are killed at random points; the next owner finds a working card, and data without errors."""
    chance = random.Random(seed)
    with emulated(rodeo) as cards:
        for _ in range(8):
            card = chance.choice([CRU, CRU_1, FELIX])
            owner = rodeo.start(
                "card", "bench", "dma", "--id", card, "--data-source", "fee", "--duration", "60s", *SMALL
            )
            bystander = rodeo.start("card", "status", "--id", card, "--watch", "1ms", "-o", "json")
            time.sleep(chance.uniform(0, 1.5))
            for process in chance.sample([owner, bystander], 2):
                process.kill()
                process.communicate()
            assert cards.bench(card, "--data-source", "fee")["errors"] == 0


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_whenever_the_emulator_is_killed_nobody_hangs(rodeo, seed):
    chance = random.Random(100 + seed)
    with emulated(rodeo) as cards:
        processes = [
            rodeo.start("card", "bench", "dma", "--id", CRU, "--data-source", "fee", "--duration", "60s", *SMALL),
            rodeo.start("card", "bench", "bar", "--id", CRU, "--processes", 2, "--duration", "30s"),
            rodeo.start("card", "bench", "dma", "--id", FELIX, "--data-source", "fee", "--duration", "60s", *SMALL),
        ]
        time.sleep(chance.uniform(0, 2))
        cards.process.kill()
        for process in processes:
            out, err = process.communicate(timeout=scaled(30))
            assert process.returncode not in (0, -signal.SIGSEGV, -signal.SIGABRT), err
            assert "error[" in err
