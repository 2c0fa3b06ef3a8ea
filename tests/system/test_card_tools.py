"""`rodeo card`: every verb on emulated cards, what they refuse, and what happens when somebody is killed."""

import csv
import io
import json
import os
import random
import signal
import subprocess
import time
import urllib.request

import pytest

from conftest import ROOT, Rodeo, scaled
from emulated_cards import CARDS, CRU, CRU_1, FELIX, SMALL, emulated
from running_readout import running
from sockets import written_to


@pytest.fixture(scope="module")
def cards(tmp_path_factory):
    with emulated(Rodeo(tmp_path_factory.mktemp("cards"))) as running:
        yield running


def test_cards_are_listed_by_every_name(cards):
    rows = cards.json("list")
    assert [(row["type"], row["serial"], row["endpoint"]) for row in rows] == [("CRU", 245, 0), ("CRU", 245, 1), ("FELIX", 712, 0)]
    assert all(row["problem"] == "" and row["firmware"] for row in rows)
    for name in ("#0", "af:00.0", "0000:af:00.0", "0245", "0245:0"):
        assert cards.register(name, "serial") == cards.register(CRU, "serial")
    table = cards.card("list").stdout
    assert "0000:3b:00.0" in table and "0712" in table


@pytest.mark.parametrize("name, code", [("#9", 4), ("0999", 4), ("7f:00.0", 4), ("3b:00.0junk", 2), ("#", 2), ("", 2), ("12", 2)])
def test_a_card_that_is_not_there_is_said_so(cards, name, code):
    for verb in (["status"], ["config", "--dry-run", "--set", "cru_id=1"], ["metrics"], ["reset"], ["bench", "dma"], ["reg", "read", "temperature"]):
        assert cards.card(*verb, "--id", name, exit_code=code).stderr.startswith("error[card.")


def test_registers_are_read_by_name_and_by_address(cards):
    by_name, by_address = cards.json("reg", "read", "--id", CRU, "firmware_hash")[0], cards.json("reg", "read", "--id", CRU, "--bar", 2, "0x4")[0]
    assert by_name == by_address and by_name["name"] == "firmware_hash" and by_name["bar"] == 2 and by_name["address_bytes"] == 4
    assert int(by_name["hex"], 16) == by_name["value"]
    table = cards.card("reg", "read", "--id", CRU, "--bar", 2, "0x4", "temperature").stdout
    assert "firmware_hash" in table and "temperature" in table and "binary" in table


def test_registers_are_written_and_modified(cards):
    assert cards.json("reg", "write", "--id", CRU, "ctp_bc_max", "0xdeb")[0]["value"] == 3563
    assert cards.register(CRU, "ctp_bc_max") == 3563
    assert cards.json("reg", "modify", "--id", CRU, "ctp_bc_max", 5, "--position", 4, "--width", 4)[0]["value"] == 0xd5b
    assert cards.json("reg", "write", "--id", FELIX, "status_leds", "0x5a", "--no-read-back")[0]["value"] == 0x5a


@pytest.mark.parametrize("arguments, code, says", [
    (["read", "temperatur"], 2, "did you mean `temperature`"),
    (["read", "gbt_link_status[24]"], 2, "gbt_link_status[23]"),
    (["read", "0x10"], 2, "--bar"),
    (["read", "--bar", "2", "0x3"], 2, "multiple of 4"),
    (["read", "--bar", "2", "0x1000000"], 2, "outside"),
    (["read", "--bar", "1", "0x0"], 2, "BAR 1"),
    (["read", "--bar", "0", "temperature"], 2, "BAR 2"),
    (["dump", "--bar", "2", "--address", "0x0", "--words", "0"], 2, "--words 0 reads nothing"),
    (["dump", "--bar", "2", "--address", "0xfffffc", "--words", "2"], 2, "from there it has 1"),
    (["dump", "--bar", "2", "--address", "0x0", "--words", "99999999999999"], 2, "reach beyond"),
    (["dump", "--words", "2"], 2, "--words needs --address"),
    (["write", "temperature", "1"], 5, "can only be read"),
    (["write", "ctp_bc_max", "0x100000000"], 2, "32 bits"),
    (["write", "ctp_bc_max", "12x"], 2, "no number"),
    (["modify", "ctp_bc_max", "2", "--width", "1"], 2, "does not fit"),
    (["modify", "ctp_bc_max", "0", "--position", "31", "--width", "2"], 2, "do not fit"),
])
def test_accesses_that_make_no_sense_are_refused(cards, arguments, code, says):
    assert says in cards.card("reg", arguments[0], "--id", CRU, *arguments[1:], exit_code=code).stderr


def test_the_last_word_of_a_bar_can_be_read(cards):
    assert cards.json("reg", "read", "--id", CRU, "--bar", 2, "0xfffffc")[0]["address_bytes"] == 0xfffffc


def test_registers_are_dumped(cards, tmp_path):
    names = {row["name"] for row in cards.json("reg", "dump", "--id", CRU)}
    assert {"temperature", "superpages_done[0]"} <= names and "superpage_size_fifo[0]" not in names  # reading commands does something
    cards.card("reg", "dump", "--id", CRU, "--bar", 2, "--address", "0x4", "--words", 2, "--file", tmp_path / "words")
    words = (tmp_path / "words").read_bytes()
    assert len(words) == 8 and int.from_bytes(words[:4], "little") == cards.register(CRU, "firmware_hash")
    assert {row["name"] for row in cards.json("reg", "list", "--id", FELIX)} >= {"card_type", "links"}


def test_the_clock_in_use_is_read_from_its_chip(cards):
    for clock, number in (("ttc", 0), ("local", 2)):
        done = cards.card("config", "--id", CRU, "--clock", clock)
        (row,) = [row for row in cards.json("status", "--id", CRU) if row["measurement"] == "CRU"]
        assert (row["clock"], row["clockInUse"]) == (number, number) and "jitter cleaner" not in done.stderr


def test_status_tells_of_every_link(cards):
    rows = [row for row in cards.json("status", "--id", CRU) if row["measurement"] == "link"]
    assert [row["id"] for row in rows] == list(range(12)) and all(row["status"] in (0, 1, 2) and row["rxFreq"] > 200 for row in rows)
    assert len([row for row in cards.json("status", "--id", FELIX, "--links", "0,2-3") if row["measurement"] == "link"]) == 3
    assert {row["measurement"] for row in cards.json("status", "--id", CRU, "--onu-status", "--fec-status")} == {"CRU", "link", "onu", "fec"}
    table = cards.card("status", "--id", CRU).stdout
    assert "RX [MHz]" in table and "UP" in table


def test_one_bad_card_among_several_is_partial(cards):
    done = cards.card("metrics", "--id", CRU, "--id", "#9", "-o", "json", exit_code=6)
    assert len(json.loads(done.stdout)) == 1 and "no card #9" in done.stderr


def test_watching_repeats_until_it_is_interrupted(cards):
    process = cards.rodeo.start("card", "metrics", "--id", CRU, "--watch", "50ms", "-o", "json")
    lines = [json.loads(process.stdout.readline()) for _ in range(3)]
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=scaled(10))
    assert process.returncode == 0 and all(line[0]["temperature"] > 0 for line in lines)


def test_metrics_have_upstreams_names_for_prometheus(cards):
    text = cards.card("metrics", "--prometheus").stdout
    assert 'card_temperature{pciAddress="0000:af:00.0",SerialId="245",Endpoint="0",Type="CRU",CRU="0"}' in text
    assert 'link_rxFreq{pciAddress="0000:af:00.1",SerialId="245",Endpoint="1",Type="CRU",CRU="1",ID="3"}' in text
    names = [line.split()[2] for line in text.splitlines() if line.startswith("# TYPE")]
    assert len(names) == len(set(names))
    documented = (ROOT / "docs" / "reference" / "card-metrics.md").read_text()
    assert documented == cards.card("metrics", "--reference").stdout
    assert all(f"`{name}`" in documented for name in names if name != "rodeo_card_up")


def test_metrics_are_served(cards):
    process = cards.rodeo.start("card", "metrics", "--listen", "127.0.0.1:0")
    try:
        address = process.stderr.readline().split()[-1]
        text = urllib.request.urlopen(address, timeout=scaled(10)).read().decode()
        assert "card_temperature{" in text and 'rodeo_card_up{pciAddress="0000:3b:00.0",Type="FELIX"} 1' in text
    finally:
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=scaled(10))
    assert process.returncode == 0


def test_csv_is_one_table_with_one_header(cards):
    rows = list(csv.DictReader(io.StringIO(cards.card("status", "--id", CRU, "--onu-status", "-o", "csv").stdout)))
    assert {row["measurement"] for row in rows} == {"CRU", "link", "onu"}
    assert all(None not in row for row in rows) and [row["id"] for row in rows if row["measurement"] == "link"] == [str(i) for i in range(12)]
    for verb in ("metrics", "status", "packets", "list"):
        process = cards.rodeo.start("card", verb, "--watch", "20ms", "-o", "csv")
        lines = [process.stdout.readline() for _ in range(100)]
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=scaled(10))
        assert sum("pci_address" in line or line.startswith("card,type") for line in lines) == 1, lines


def test_packets_and_triggers(cards):
    assert {row["measurement"] for row in cards.json("packets", "--id", CRU)} == {"wrapper", "link"}
    assert len([row for row in cards.json("packets", "--id", FELIX)]) == 4
    rows = cards.json("triggers", "--interval", "50ms")
    assert [row["card"] for row in rows] == ["0000:af:00.0", "0000:af:00.1"] and all(row["heartbeat_rate_hz"] >= 0 for row in rows)
    assert "is for CRU" in cards.card("triggers", "--id", FELIX, exit_code=2).stderr


@pytest.mark.parametrize("card, source", [(CRU, "internal"), (CRU, "ddg"), (CRU_1, "fee"), (FELIX, "fee")])
@pytest.mark.parametrize("check", ["full", "fast", "none"])
def test_dma_is_benched_and_free_of_errors(cards, card, source, check):
    result = cards.bench(card, "--data-source", source, "--error-check", check)
    assert result["errors"] == 0 and result["bytes"] >= 64 << 20 and result["superpages"] >= result["bytes"] / (256 << 10) - 1
    assert result["bytes_per_second"] > 0 and 0 <= result["driver_cpu_fraction"] < 2 and result["superpage_latency_p50_us"] > 0
    assert result["store_ceiling_bytes_per_second"] > 0


def test_a_wrong_pattern_is_found(cards, tmp_path):
    result = cards.bench(CRU, "--data-source", "fee", "--pattern", "words", "--error-file", tmp_path / "errors", exit_code=7)
    assert result["errors"] > 0 and result["counts"]["payload"] == result["errors"]
    assert (tmp_path / "errors").read_text().startswith("payload: link ")


def test_what_was_read_can_be_kept(cards, tmp_path):
    result = cards.bench(CRU, "--data-source", "fee", "--to-file", tmp_path / "data")
    data = (tmp_path / "data").read_bytes()
    assert len(data) == result["bytes"] and data[1] == 64  # size of the first header


@pytest.mark.parametrize("arguments", [["--superpage-size", "1KiB"], ["--superpage-size", "0"], ["--buffer-size", "256KiB", "--superpage-size", "256KiB"],
                                       ["--superpage-size", "16MiB", "--buffer-size", "64MiB"], ["--channel", "1"], ["--data-source", "siu"],
                                       ["--error-check-frequency", "0"]])
def test_a_bench_that_cannot_be_is_refused(cards, arguments):
    assert cards.card("bench", "dma", "--id", CRU, "--bytes", "1MiB", *SMALL[:2], *arguments, exit_code=2).stderr.startswith("error[")


def test_what_a_bench_found_is_told_in_every_form(cards):
    arguments = ["bench", "dma", "--id", FELIX, "--data-source", "fee", "--bytes", "8MiB", *SMALL, "--numa", "off"]
    said = cards.card(*arguments).stdout
    assert "Errors               0" in said and "Reader               free: as asked" in said
    result = cards.json(*arguments)
    assert result["errors"] == 0 and result["bytes"] >= 8 << 20 and result["reader"] == "free: as asked"
    (row,) = csv.DictReader(io.StringIO(cards.card(*arguments, "-o", "csv").stdout))
    assert row["errors"] == "0" and int(row["bytes"]) >= 8 << 20 and "superpage_latency_p99_us" in row
    bar = ["bench", "bar", "--id", FELIX, "--bar", "0", "--time", "20ms"]
    assert cards.json(*bar)["mapped"] and "1 process, mapped" in cards.card(*bar).stdout
    assert float(next(csv.DictReader(io.StringIO(cards.card(*bar, "-o", "csv").stdout)))["operations_per_second"]) > 0


@pytest.mark.parametrize("card", [CRU, FELIX])
def test_a_pause_longer_than_the_patience_is_no_silence(cards, card):
    """A look finds the data that came in the pause before it: only looks that find nothing are silence."""
    result = cards.bench(card, "--data-source", "fee", "--pause", "300ms", "--patience", "100ms", size="20MiB")
    assert result["errors"] == 0 and result["bytes"] >= 20 << 20
    arguments = ["bench", "dma", "--id", card, "--data-source", "fee", *SMALL, "--pause", "60s", "--patience", "100ms", "-o", "json"]
    assert cards.json(*arguments, "--patience", "20s", "--time", "400ms")["bytes"] > 0  # and no pause outlasts the run
    bench = cards.rodeo.start("card", *arguments)
    time.sleep(scaled(1))
    bench.send_signal(signal.SIGINT)
    out, err = bench.communicate(timeout=scaled(20))  # nor does it keep Ctrl-C waiting
    assert bench.returncode == 0 and json.loads(out)["errors"] == 0, err


@pytest.mark.parametrize("arguments, says", [
    (["dma", "--time", "0s"], "would read for ever"),
    (["dma", "--time", "0s", "--bytes", "0"], "would read for ever"),
    (["dma", "--bytes", "1MiB", "--links", "0x100000000"], "no bit mask"),
    (["dma", "--bytes", "1MiB", "--links", "0-3"], "no bit mask"),
    (["bar", "--time", "0s"], "a millisecond or more"),
    (["bar", "--time", "999us"], "a millisecond or more"),
])
def test_benches_without_an_end_or_of_nothing_are_refused(cards, arguments, says):
    said = cards.card("bench", arguments[0], "--id", CRU, *arguments[1:], exit_code=2).stderr
    assert said.startswith("error[cli.bad_value]") and says in said


def test_a_bench_takes_its_links_as_a_mask_in_either_notation(cards):
    for links in ("0x3", "3"):
        assert cards.bench(CRU, "--data-source", "fee", "--links", links, "--time", "0s")["errors"] == 0
        assert all((cards.register(CRU, f"superpages_done[{link}]") > 0) == (link < 2) for link in range(3))


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="one CPU: every place is the same")
def test_a_bench_reads_on_the_cpus_of_the_node_that_it_is_told(cards):
    """A machine of two NUMA nodes with a CPU each, as hwloc is told; the process's own thread is bound while it reads."""
    for node in ("0", "1"):
        environment = {**cards.rodeo.environment, "HWLOC_SYNTHETIC": "node:2 core:1 pu:1", "HWLOC_THISSYSTEM": "1"}
        bench = subprocess.Popen([cards.rodeo.binary, "card", "bench", "dma", "--id", FELIX, "--data-source", "fee", "--time", "60s", *SMALL, "--numa", node, "-o", "json"],
                                 env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
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
    trapped = json.loads(cards.card("bench", "bar", "--id", CRU, "--bar", 2, "--processes", 3, "--time", "100ms", "--json", "-").stdout)
    assert not trapped["mapped"] and len(trapped["per_process"]) == 3
    assert trapped["operations_per_second"] > 0 and trapped["of_ceiling"] > 0
    assert 0 < min(trapped["per_process"]) <= sum(trapped["per_process"]) / 3 <= max(trapped["per_process"])
    mapped = json.loads(cards.card("bench", "bar", "--id", FELIX, "--bar", 0, "--time", "100ms", "--json", "-").stdout)
    assert mapped["mapped"] and mapped["operations_per_second"] > trapped["operations_per_second"]
    pairs = json.loads(cards.card("bench", "bar", "--id", CRU, "--register", "ctp_hb_max", "--value", 255, "--time", "100ms", "--json", "-").stdout)
    assert pairs["writes"] and pairs["wrong_reads"] == 0 and cards.register(CRU, "ctp_hb_max") == 255
    assert "can only be read" in cards.card("bench", "bar", "--id", CRU, "--register", "temperature", "--value", 1, exit_code=5).stderr
    cards.card("bench", "bar", "--id", CRU, "--processes", 0, exit_code=2)


def test_a_channel_has_one_owner_whom_others_do_not_disturb(cards):
    """While one process reads: others may look and set, but not own; the transfer is none the worse."""
    owner = cards.rodeo.start("card", "bench", "dma", "--id", CRU, "--data-source", "fee", "--time", "3s", *SMALL, "--json", "-")
    deadline = time.monotonic() + scaled(20)
    while not cards.register(CRU, "superpages_done[0]"):
        assert owner.poll() is None and time.monotonic() < deadline
    refused = cards.card("bench", "dma", "--id", CRU, "--bytes", "1MiB", *SMALL, exit_code=5).stderr
    assert "card.locked" in refused and str(owner.pid) in refused
    assert "card.locked" in cards.card("reset", "--id", CRU, exit_code=5).stderr
    sources = [cards.register(CRU, f"gbt_link_source[{link}]") for link in range(2)]
    for disturbing in (["loopback", "--links", "0,1", "--internal", "--duration", "1ms"], ["ctp", "--trigger-period", 400], ["ctp", "--eox"], ["ctp", "--single-trigger"]):
        said = cards.card(*disturbing, "--id", CRU, exit_code=5).stderr
        assert "card.locked" in said and str(owner.pid) in said and "--while-running" in said
    assert [cards.register(CRU, f"gbt_link_source[{link}]") for link in range(2)] == sources
    cards.card("ctp", "--id", CRU, "--status")
    cards.card("ctp", "--id", CRU, "--eox", "--while-running")
    cards.card("loopback", "--id", CRU, "--links", "0,1", "--skip-reset", "--duration", "1ms", exit_code=None)
    cards.card("status", "--id", CRU)
    cards.card("metrics", "--prometheus")
    cards.card("config", "--id", CRU, "--dry-run", "--cru-id", "0x12")
    cards.card("bench", "bar", "--id", CRU, "--processes", 2, "--time", "200ms")
    out, err = owner.communicate(timeout=scaled(30))
    assert owner.returncode == 0, err
    assert json.loads(out)["errors"] == 0


def test_the_ctp_emulator_is_started_and_ended(cards):
    set_to = cards.json("ctp", "--id", CRU, "--trigger-mode", "cal", "--trigger-period", 400, "--hbkeep", 3)
    assert (set_to["mode"], set_to["period_ticks"], set_to["keep"], set_to["drop"]) == ("cal", 400, 3, 15000)
    assert cards.json("ctp", "--id", CRU, "--status") == set_to
    assert cards.register(CRU, "ctp_cal_divisor") == 400 and cards.register(CRU, "ctp_hb_prescale") == 15000 << 16 | 3
    cards.card("ctp", "--id", CRU, "--single-trigger")
    assert cards.json("ctp", "--id", CRU, "--eox")["mode"] == "idle"
    assert "must be" in cards.card("ctp", "--id", CRU, "--trigger-period", 3, exit_code=2).stderr
    cards.card("ctp", "--id", FELIX, exit_code=2)


def test_patterns_are_played_and_read_back(cards):
    cards.card("pattern", "--id", CRU, "--pat1", "0x123456789abcdef01234", "--pat1-length", 7, "--execute-pat1-now")
    read = cards.json("pattern", "--id", CRU, "--read-back")
    assert read["pattern_1"] == "0x123456789abcdef01234" and read["length_1"] == 7
    assert cards.json("pattern", "--id", CRU) == read  # without an option nothing is changed either
    assert "pattern 1: length" in cards.card("pattern", "--id", CRU, "--pat2", "0x2").stdout
    cards.card("pattern", "--id", CRU, "--pat2", "0x2", "--read-back", exit_code=2)
    assert "80 bits" in cards.card("pattern", "--id", CRU, "--pat2", "0x1ffffffffffffffffffff", exit_code=2).stderr


def test_the_loopback_test_gives_links_back(cards):
    before = cards.register(CRU, "gbt_link_source[0]")
    rows = cards.json("loopback", "--id", CRU, "--links", "0,1", "--internal", "--duration", "10ms", exit_code=None)
    assert [row["link"] for row in rows] == [0, 1] and all("rx_errors" in row for row in rows)
    assert cards.register(CRU, "gbt_link_source[0]") == before
    for links in ("11-0", "16-", "x", "40"):
        cards.card("loopback", "--id", CRU, "--links", links, exit_code=2)


def test_user_logic_of_a_fresh_card_takes_one_setting_alone(rodeo):
    with emulated(rodeo) as cards:
        assert cards.register(CRU, "user_logic_event_size") == 0  # which could not be set
        assert cards.json("userlogic", "--id", CRU, "--system-id", 5)["system_id"] == 5
        now = cards.json("userlogic", "--id", CRU, "--link-id", 3)
        assert (now["system_id"], now["link_id"], now["event_words"]) == (5, 3, 0)
        for refused in (["--event-size", 0], ["--system-id", 256], ["--link-id", 256]):
            assert "must be" in cards.card("userlogic", "--id", CRU, *refused, exit_code=2).stderr


def test_user_logic_is_set(cards):
    assert cards.json("userlogic", "--id", CRU, "--event-size", 128, "--system-id", 3)["event_words"] == 128
    assert cards.register(CRU, "user_logic_event_size") == 128


def test_what_only_a_crorc_has_is_refused_elsewhere(cards):
    for verb in (["siu"], ["flash", "read"]):
        assert "is for C-RORC" in cards.card(*verb, "--id", CRU, exit_code=2).stderr


def test_a_card_is_reset(cards):
    cards.card("reset", "--id", CRU)
    cards.card("reset", "--id", FELIX)
    cards.card("reset", "--id", CRU, "--level", "siu", exit_code=2)


def test_firmware_is_checked(cards, tmp_path):
    rows = cards.json("firmware", exit_code=None)
    assert len(rows) == 3 and all(row["hash"] for row in rows)
    listed = tmp_path / "list.json"
    listed.write_text(json.dumps({row["hash"]: "v9.9" for row in rows}))
    assert all(row["compatible"] for row in cards.json("firmware", "--firmware-list", listed))
    listed.write_text("[]")
    cards.card("firmware", "--firmware-list", listed, exit_code=3)


def test_a_configuration_changes_what_differs_and_nothing_else(cards, tmp_path):
    file = tmp_path / "card.toml"
    file.write_text('[cru]\ncru_id = 0x123\ntrigger_window = 777\n[links]\nfee_id = 0x7\n[link3]\nfee_id = 0x1a\n')
    would = cards.json("config", file, "--id", CRU_1, "--dry-run")
    assert would and cards.json("config", file, "--id", CRU_1, "--dry-run") == would
    changed = cards.json("config", file, "--id", CRU_1)
    assert [row["setting"] for row in changed] == [row["setting"] for row in would]
    assert "nothing to change" in cards.card("config", file, "--id", CRU_1).stderr
    cards.card("config", file, "--id", CRU_1, "--force")
    assert cards.register(CRU_1, "datapath_trigger_window[1]") == 777
    generated = tmp_path / "generated.toml"
    cards.card("config", "--id", CRU_1, "--generate", generated)
    assert "trigger_window = 777" in generated.read_text()
    assert "nothing to change" in cards.card("config", generated, "--id", CRU_1).stderr
    one = cards.json("config", "--id", CRU_1, "--trigger-window", 778, "--set", "link3.fee_id=0x1b")
    assert len(one) == 2 and {row["to"] for row in one} >= {"778"}


@pytest.mark.parametrize("kind", ["ini", "json"])
def test_upstreams_files_are_read_and_written(cards, tmp_path, kind):
    file = tmp_path / f"card.{kind}"
    cards.card("config", "--id", CRU, "--generate", file)
    assert "triggerWindowSize" in file.read_text()
    assert "nothing to change" in cards.card("config", f"{'ini' if kind == 'ini' else 'json'}://{file}", "--id", CRU).stderr


def test_templates_have_every_setting(cards, tmp_path):
    for kind in ("cru", "crorc", "felix"):
        assert f"[{kind}]" in cards.card("config", "--template", kind).stdout


@pytest.mark.parametrize("text, says", [
    ("[cru]\nclok = 'ttc'\n", "did you mean `clock`"),
    ("[cru]\nclock = 'sun'\n", "clock is one of"),
    ("[cru]\ncru_id = 0x1000\n", "up to 0xfff"),
    ("[cru]\ncru_id = -1\n", "cru_id"),
    ("[crew]\n", "[crew]"),
    ("[crorc]\ncrorc_id = 1\n", "[cru]"),
    ("[cru]\n[link12]\nenabled = true\n", "no link 12"),
    ("[cru]\nuser_and_common_logic = true\nuser_logic = false\n", "user_logic"),
    ("cru = 1\n", "cru"),
    ("[cru\n", ""),
])
def test_a_configuration_that_is_wrong_is_refused_with_its_place(cards, tmp_path, text, says):
    file = tmp_path / "bad.toml"
    file.write_text(text)
    done = cards.card("config", file, "--id", CRU, "--dry-run", exit_code=3)
    assert says in done.stderr


def test_everything_that_is_wrong_in_a_configuration_is_told_at_once(cards, tmp_path):
    file = tmp_path / "bad.toml"
    file.write_text("[cru]\nclok = 'ttc'\ncru_id = 0x1000\n[links]\nfee_id = 0x10000\n[crew]\n[link12]\nenabled = true\n")
    said = cards.card("config", file, "--all", exit_code=3).stderr
    for place in ("bad.toml:2:", "bad.toml:3:", "bad.toml:5:", "bad.toml:6:"):
        assert said.count(place) == 1, said
    assert "no link 12" in said
    said = cards.card("config", "--id", CRU, "--set", "clok=ttc", "--set", "cru_id=0x1000", exit_code=3).stderr
    assert said.count("error[") == 2


@pytest.mark.parametrize("text, place, says", [
    ('{"cru": {\n"clock": "ttc",\n}}', ":3:1", "not JSON"),
    ('[]', "", "object of sections"),
    ('{"cru": {\n"clock": "sun"}}', ":2:1", "clock is one of"),
    ('{"cru": {},\n"links": {\n "feeId": "0x10000"}}', ":3:2", "fee"),
    ('{"cru": {\n "clock": ["ttc"]}}', ":2:2", "text, a number"),
    ('{"cru": {\n "cruId": 1e400}}', ":2:", "a number is too large"),
    ("[" * 20000 + "]" * 20000, ":1:101", "nested"),
])
def test_json_that_is_wrong_is_refused_with_its_place(cards, tmp_path, text, place, says):
    file = tmp_path / "bad.json"
    file.write_text(text)
    said = cards.card("config", file, "--id", CRU, "--dry-run", exit_code=3).stderr
    assert f"{file}{place}" in said and says in said


def test_a_configuration_of_nothing_is_a_mistake(cards):
    assert "what shall the card be set to?" in cards.card("config", "--id", CRU, exit_code=2).stderr


def test_a_configuration_without_a_card_is_a_mistake(cards):
    cards.card("config", "--clock", "ttc", exit_code=2)
    cards.card("config", "missing.toml", "--id", CRU, exit_code=3)


def test_a_crorc_is_read_asked_and_flashed(rodeo, tmp_path):
    text = '[emulator]\nname = "crorc"\n[[emulator.card]]\ntype = "crorc"\naddress = "0000:05:00.0"\nserial = 1001\n[emulator.trigger]\nrate = 0\nwait_for = 1\n'
    with emulated(rodeo, text, count=1) as cards:
        assert cards.json("list")[0]["type"] == "C-RORC"
        rows = cards.json("status", "--id", "#0")
        assert [row["id"] for row in rows if row["measurement"] == "link"] == list(range(6))
        assert len(cards.json("packets", "--id", "#0")) == 6
        result = cards.bench("#0", "--data-source", "internal", "--channel", 2, size="4MiB")
        assert result["errors"] == 0 and result["bytes"] >= 4 << 20
        assert cards.json("siu", "--id", "#0", "--channel", 1)["conditions"][-1].startswith("port: ")
        assert cards.json("siu", "--id", "#0", "--channel", 1, "--reset")["channel"] == 1
        cards.card("siu", "--id", "#0", "--channel", 6, exit_code=2)
        words = tmp_path / "words"
        words.write_text("".join(f"{i * 7 % 65536}\n" for i in range(100)))
        assert cards.json("flash", "write", words, "--id", "#0", "--address", "0x30000")["blocks_written"] == 1
        assert cards.json("flash", "write", words, "--id", "#0", "--address", "0x30000")["blocks_written"] == 0
        assert [row["value"] for row in cards.json("flash", "read", "--id", "#0", "--address", "0x30000", "--words", 3)] == [0, 7, 14]
        words.write_text("1\n70000\n")
        assert f"{words}:2:1" in cards.card("flash", "write", words, "--id", "#0", exit_code=2).stderr
        assert cards.json("config", "--id", "#0", "--crorc-id", "0x12", "--no-firmware-check")[0]["to"] == "0x12"
        cards.card("reset", "--id", "#0", "--channel", 2, "--level", "siu")


def test_huge_pages_are_shown(cards):
    assert isinstance(cards.json("hugepages"), list)
    cards.card("hugepages", "--size", "2MiB", exit_code=2)


def test_cleanup_removes_only_what_nobody_uses_and_only_when_told(rodeo):
    with emulated(rodeo) as cards:
        assert cards.json("cleanup") == []
        cards.process.kill()
        cards.process.wait()
        sockets = [row["path"] for row in cards.json("cleanup") if row["path"].endswith(".sock")]
        assert len(sockets) == 3 and all("would be" in row["outcome"] for row in cards.json("cleanup"))
        assert {"test.emulator", "test.emulator.lock"} <= {row["path"].split("/")[-1] for row in cards.json("cleanup")}
        assert all(row["outcome"] == "removed" for row in cards.json("cleanup", "--yes"))
        assert cards.json("cleanup") == []


def test_cleanup_knows_the_sockets_of_readouts(rodeo):
    with running(rodeo) as run:
        run.wait_until(lambda status: status["fragments"]["built"] > 0, "it runs")
        assert json.loads(rodeo("card", "cleanup", "-o", "json").stdout) == []
        run.process.kill()
        run.process.communicate()
    left = json.loads(rodeo("card", "cleanup", "--yes", "-o", "json").stdout)
    assert {row["path"].split("/")[-1] for row in left} == {"test.control", "test.control.lock", "test.events"}
    assert json.loads(rodeo("card", "cleanup", "-o", "json").stdout) == []


def test_a_fault_that_is_none_is_a_mistake(cards):
    said = cards.rodeo("emulate", "fault", "--id", "cru", "link_dwon", exit_code=2).stderr
    assert "did you mean `link_down`" in said
    assert "there are: " in cards.rodeo("emulate", "fault", "--id", "cru", "xyzzy", exit_code=2).stderr


@pytest.mark.parametrize("line", [b'{"command":"status","x":1e400}', b"[" * 30000 + b"]" * 30000], ids=["number", "brackets"])
def test_whatever_is_written_to_its_control_socket_the_emulator_goes_on(cards, line):
    answer = written_to(cards.rodeo.directory, "test.emulator", line)
    assert answer["ok"] is False and answer["code"] == "control.bad_json"
    assert json.loads(cards.rodeo("emulate", "status", "-o", "json").stdout)["seconds"] > 0


def test_a_fault_that_cannot_be_says_what_could(cards):
    fault = lambda *arguments, code: cards.rodeo("emulate", "fault", "--id", *arguments, exit_code=code).stderr
    assert "links are 0 to 11" in fault("cru", "link_down", "--link", 12, code=5)
    assert "links are 0 to 3" in fault("felix", "link_down", "--link", 4, code=5)
    assert "-50 to 150" in fault("felix", "temperature", "--value", 1000, code=2)
    assert "has no fault bad_packet_counter" in fault("felix", "bad_packet_counter", code=5)
    answer = written_to(cards.rodeo.directory, "test.emulator", b'{"command":"fault","id":"felix","kind":"temperature","value":1000}')
    assert answer["ok"] is False and "-50 to 150" in answer["what"]


def test_what_a_tool_cannot_do_is_said_with_what_it_can(cards, tmp_path):
    assert "links are 0 to 11" in cards.card("config", "--id", CRU, "--links", "3-0", "--dry-run", exit_code=2).stderr
    assert "links are 0 to 11" in cards.card("config", "--id", CRU, "--links", "12", "--dry-run", exit_code=2).stderr
    assert ".yaml is no kind" in cards.card("config", "--id", CRU, "--generate", tmp_path / "x.yaml", exit_code=2).stderr
    assert ".yaml is no kind" in cards.card("config", "--template", "cru", "--generate", tmp_path / "x.yaml", exit_code=2).stderr
    assert not (tmp_path / "x.yaml").exists()
    for arguments in (["config", tmp_path], ["firmware", "--firmware-list", tmp_path]):
        said = cards.card(*arguments, "--id", CRU, exit_code=3).stderr
        assert said.startswith("error[config.unreadable]") and "directory" in said
    assert "--interval takes" in cards.card("triggers", "--id", CRU, "--interval", "0s", exit_code=2).stderr


def test_a_runtime_directory_that_is_none_is_said(rodeo, tmp_path):
    (tmp_path / "file").write_text("")
    for name, says in (("file", "is no directory"), ("missing", "there is no runtime directory")):
        rodeo.environment["RODEO_RUNTIME_DIR"] = str(tmp_path / name)
        assert says in rodeo("card", "list").stderr


def test_a_bench_whose_data_end_before_it_does_has_no_data(rodeo):
    with emulated(rodeo, CARDS.replace("wait_for = 1", "wait_for = 1\nlimit = 1000")) as cards:
        arguments = ["bench", "dma", "--id", FELIX, "--data-source", "fee", *SMALL]
        said = cards.card(*arguments, "--time", "3s", "--patience", "4s", exit_code=4).stderr
        assert "error[card.no_data]" in said and "bytes had come before" in said
        said = cards.card(*arguments, "--time", "300ms", "--patience", "20s", exit_code=4).stderr
        assert "error[card.no_data]" in said and "no data in 0." in said


@pytest.mark.parametrize("check", ["full", "fast"])
def test_chunks_that_the_card_flags_are_errors_of_a_bench(cards, check):
    arguments = [FELIX, "--data-source", "fee", "--error-check", check]
    assert cards.bench(*arguments)["errors"] == 0
    cards.rodeo("emulate", "fault", "--id", "felix", "truncated_page", "--link", 3)
    result = cards.bench(*arguments, exit_code=7)
    assert result["errors"] == 1 and result["counts"]["firmware_truncated"] == 1


@pytest.mark.parametrize("card, source", [(CRU, "fee"), (FELIX, "fee")])
def test_an_emulator_that_is_killed_ends_a_bench_with_an_error(rodeo, card, source):
    with emulated(rodeo) as cards:
        bench = rodeo.start("card", "bench", "dma", "--id", card, "--data-source", source, "--time", "60s", *SMALL)
        time.sleep(scaled(1))
        assert bench.poll() is None, bench.communicate()
        cards.process.kill()
        out, err = bench.communicate(timeout=scaled(15))
        assert bench.returncode == 4, err
        assert "error[card.gone]" in err or "error[card.timeout]" in err


def test_a_bench_that_is_interrupted_ends_in_order(cards):
    bench = cards.rodeo.start("card", "bench", "dma", "--id", FELIX, "--data-source", "fee", "--time", "60s", *SMALL, "--json", "-")
    time.sleep(scaled(1))
    bench.send_signal(signal.SIGINT)
    out, err = bench.communicate(timeout=scaled(15))
    assert bench.returncode == 0, err
    assert json.loads(out)["errors"] == 0 and json.loads(out)["bytes"] > 0


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_whoever_is_killed_the_card_goes_on_working(rodeo, seed):
    """Owners and bystanders are killed at random points; the next owner finds a card that works, and data without errors."""
    chance = random.Random(seed)
    with emulated(rodeo) as cards:
        for _ in range(8):
            card = chance.choice([CRU, CRU_1, FELIX])
            owner = rodeo.start("card", "bench", "dma", "--id", card, "--data-source", "fee", "--time", "60s", *SMALL)
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
        processes = [rodeo.start("card", "bench", "dma", "--id", CRU, "--data-source", "fee", "--time", "60s", *SMALL),
                     rodeo.start("card", "bench", "bar", "--id", CRU, "--processes", 2, "--time", "30s"),
                     rodeo.start("card", "bench", "dma", "--id", FELIX, "--data-source", "fee", "--time", "60s", *SMALL)]
        time.sleep(chance.uniform(0, 2))
        cards.process.kill()
        for process in processes:
            out, err = process.communicate(timeout=scaled(30))
            assert process.returncode not in (0, -signal.SIGSEGV, -signal.SIGABRT), err
            assert "error[" in err
