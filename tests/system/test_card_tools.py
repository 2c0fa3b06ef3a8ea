"""`rodeo card`: the verbs on emulated cards, and their refusals; other files test benches and configurations."""

import contextlib
import csv
import fcntl
import io
import itertools
import json
import re
import selectors
import signal
import socket
import struct
import threading
import time
import urllib.request

import pytest

from conftest import ROOT, Rodeo, scaled
from emulated_cards import CARDS, CRU, FELIX, emulated
from running_readout import running
from sockets import written_to


F_OFD_SETLK = 37  # Python's module fcntl lacks this constant


@pytest.fixture(scope="module")
def cards(tmp_path_factory):
    with emulated(Rodeo(tmp_path_factory.mktemp("cards"))) as running:
        yield running


def test_cards_are_listed_by_every_name(cards):
    rows = cards.json("list")
    assert [(row["type"], row["serial"], row["endpoint"]) for row in rows] == [
        ("CRU", 245, 0),
        ("CRU", 245, 1),
        ("FELIX", 712, 0),
    ]
    assert all(row["problem"] == "" and row["firmware"] for row in rows)
    for name in ("#0", "af:00.0", "0000:af:00.0", "0245", "0245:0"):
        assert cards.register(name, "serial") == cards.register(CRU, "serial")
    table = cards.card("list").stdout
    assert "0000:3b:00.0" in table and "0712" in table


def test_the_document_names_every_key_of_the_list(cards):
    lines = (ROOT / "docs/reference/card-tools.md").read_text().splitlines()
    begin = lines.index("| `list-cards --json-out` | `card list -o json` | |") + 2
    rows = itertools.takewhile(lambda line: line.startswith("|"), lines[begin:])
    documented = [key for row in rows for key in re.findall(r"`([a-z_]+)`", row.split("|")[2].replace("`unknown`", ""))]
    for row in cards.json("list"):
        assert sorted(row) == sorted(documented)


@pytest.mark.parametrize(
    "name, code", [("#9", 4), ("0999", 4), ("7f:00.0", 4), ("3b:00.0junk", 2), ("#", 2), ("12", 2)]
)
def test_a_card_that_is_not_there_is_said_so(cards, name, code):
    for verb in (
        ["status"],
        ["config", "--dry-run", "--set", "cru_id=1"],
        ["metrics"],
        ["reset"],
        ["bench", "dma"],
        ["reg", "read", "temperature"],
    ):
        assert cards.card(*verb, "--id", name, exit_code=code).stderr.startswith("error[card.")


def test_registers_are_read_by_name_and_by_address(cards):
    by_name, by_address = (
        cards.json("reg", "read", "--id", CRU, "firmware_hash")[0],
        cards.json("reg", "read", "--id", CRU, "--bar", 2, "0x4")[0],
    )
    assert (
        by_name == by_address
        and by_name["name"] == "firmware_hash"
        and by_name["bar"] == 2
        and by_name["address_bytes"] == 4
    )
    assert int(by_name["hex"], 16) == by_name["value"]
    table = cards.card("reg", "read", "--id", CRU, "--bar", 2, "0x4", "temperature").stdout
    assert "firmware_hash" in table and "temperature" in table and "binary" in table


def test_registers_are_written_and_modified(cards):
    assert cards.json("reg", "write", "--id", CRU, "ctp_bc_max", "0xdeb")[0]["value"] == 3563
    assert cards.register(CRU, "ctp_bc_max") == 3563
    assert cards.json("reg", "modify", "--id", CRU, "ctp_bc_max", 5, "--position", 4, "--width", 4)[0]["value"] == 0xD5B
    assert cards.json("reg", "write", "--id", FELIX, "status_leds", "0x5a", "--no-read-back")[0]["value"] == 0x5A


@pytest.mark.parametrize(
    "arguments, code, says",
    [
        (["read", "temperatur"], 2, "did you mean `temperature`"),
        (["read", "gbt_link_status[24]"], 2, "gbt_link_status[23]"),
        (["read", "0x10"], 2, "--bar"),
        (["read", "--bar", "2", "0x3"], 2, "multiple of 4"),
        (["read", "--bar", "2", "0x1000000"], 2, "outside"),
        (["read", "--bar", "1", "0x0"], 2, "BAR 1"),
        (["read", "--bar", "0", "temperature"], 2, "BAR 2"),
        (["dump", "--bar", "2", "--address", "0x0", "--words", "0"], 2, "--words 0 reads nothing"),
        (["dump", "--bar", "2", "--address", "0xfffffc", "--words", "2"], 2, "it has 1"),
        (["dump", "--bar", "2", "--address", "0x0", "--words", "99999999999999"], 2, "reach beyond"),
        (["dump", "--words", "2"], 2, "--words needs --address"),
        (["write", "temperature", "1"], 5, "can only be read"),
        (["write", "ctp_bc_max", "0x100000000"], 2, "32 bits"),
        (["write", "ctp_bc_max", "12x"], 2, "not a number"),
        (["modify", "ctp_bc_max", "2", "--width", "1"], 2, "does not fit"),
        (["modify", "ctp_bc_max", "0", "--position", "31", "--width", "2"], 2, "do not fit"),
    ],
)
def test_accesses_that_make_no_sense_are_refused(cards, arguments, code, says):
    assert says in cards.card("reg", arguments[0], "--id", CRU, *arguments[1:], exit_code=code).stderr


def test_the_last_word_of_a_bar_can_be_read(cards):
    assert cards.json("reg", "read", "--id", CRU, "--bar", 2, "0xfffffc")[0]["address_bytes"] == 0xFFFFFC


def test_registers_are_dumped(cards, tmp_path):
    names = {row["name"] for row in cards.json("reg", "dump", "--id", CRU)}
    assert {
        "temperature",
        "superpages_done[0]",
    } <= names and "superpage_size_fifo[0]" not in names  # reading a command register has effects
    cards.card("reg", "dump", "--id", CRU, "--bar", 2, "--address", "0x4", "--words", 2, "--file", tmp_path / "words")
    words = (tmp_path / "words").read_bytes()
    assert len(words) == 8 and int.from_bytes(words[:4], "little") == cards.register(CRU, "firmware_hash")
    assert {row["name"] for row in cards.json("reg", "list", "--id", FELIX)} >= {"card_type", "links"}


def test_status_tells_of_every_link(cards):
    rows = [row for row in cards.json("status", "--id", CRU) if row["measurement"] == "link"]
    assert [row["id"] for row in rows] == list(range(12)) and all(
        row["status"] in (0, 1, 2) and row["rxFreq"] > 200 for row in rows
    )
    assert (
        len([row for row in cards.json("status", "--id", FELIX, "--links", "0,2-3") if row["measurement"] == "link"])
        == 3
    )
    assert {row["measurement"] for row in cards.json("status", "--id", CRU, "--onu-status", "--fec-status")} == {
        "pcie",
        "CRU",
        "link",
        "onu",
        "fec",
    }
    table = cards.card("status", "--id", CRU).stdout
    assert "RX [MHz]" in table and "UP" in table


def test_status_tells_of_the_pcie_link_and_warns_of_a_poor_one(rodeo, cards):
    link = next(row for row in cards.json("status", "--id", CRU) if row["measurement"] == "pcie")
    assert (link["lanes"], link["mostLanes"], link["speed"], link["maxPayload"], link["readRequest"]) == (
        8,
        8,
        8,
        256,
        512,
    )
    assert "trained" not in cards.card("status").stderr
    with emulated(rodeo, CARDS.replace("links = 4\n", 'links = 4\nlanes = "4"\nmax_payload = "128"\n')) as poor:
        done = poor.card("status", "--id", FELIX)
        assert "trained to x4 at 8 GT/s, the card has x8" in done.stderr and "max payload [B]" in done.stdout
        assert poor.bench(FELIX, "--data-source", "fee")["errors"] == 0, "packets of 128 bytes"


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
    assert {row["measurement"] for row in rows} == {"pcie", "CRU", "link", "onu"}
    assert all(None not in row for row in rows) and [row["id"] for row in rows if row["measurement"] == "link"] == [
        str(i) for i in range(12)
    ]
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
    assert [row["card"] for row in rows] == ["0000:af:00.0", "0000:af:00.1"] and all(
        row["heartbeat_rate_hz"] >= 0 for row in rows
    )
    assert "is for CRU" in cards.card("triggers", "--id", FELIX, exit_code=2).stderr


def test_the_ctp_emulator_is_started_and_ended(cards):
    set_to = cards.json("ctp", "--id", CRU, "--trigger-mode", "cal", "--trigger-period", 400, "--hbkeep", 3)
    assert (set_to["mode"], set_to["period_ticks"], set_to["keep"], set_to["drop"]) == ("cal", 400, 3, 15000)
    assert cards.json("ctp", "--id", CRU, "--status") == set_to
    assert cards.register(CRU, "ctp_cal_divisor") == 400 and cards.register(CRU, "ctp_hb_prescale") == 15000 << 16 | 3
    cards.card("ctp", "--id", CRU, "--single-trigger")
    assert cards.json("ctp", "--id", CRU, "--eox")["mode"] == "idle"
    for orbit in ("10", "0x10"):  # upstream reads this number as hexadecimal, with or without 0x
        assert cards.json("ctp", "--id", CRU, "--init-orbit", orbit)["first_orbit"] == 16
    assert (
        "--init-orbit: `1g` is not a hexadecimal number"
        in cards.card("ctp", "--id", CRU, "--init-orbit", "1g", exit_code=2).stderr
    )
    defaults = cards.json("ctp", "--id", CRU)
    assert (defaults["keep"], defaults["drop"], defaults["last_hb"], defaults["period_ticks"]) == (15000, 15000, 255, 8)
    assert "must be" in cards.card("ctp", "--id", CRU, "--trigger-period", 3, exit_code=2).stderr
    cards.card("ctp", "--id", FELIX, exit_code=2)


def test_patterns_are_played_and_read_back(cards):
    cards.card("pattern", "--id", CRU, "--pat1", "0x123456789abcdef01234", "--pat1-length", 7, "--execute-pat1-now")
    read = cards.json("pattern", "--id", CRU, "--read-back")
    assert read["pattern_1"] == "0x123456789abcdef01234" and read["length_1"] == 7
    assert cards.json("pattern", "--id", CRU) == read  # without an option, nothing changes
    assert "pattern 1: length" in cards.card("pattern", "--id", CRU, "--pat2", "0x2").stdout
    cards.card("pattern", "--id", CRU, "--pat2", "0x2", "--read-back", exit_code=2)
    assert "80 bits" in cards.card("pattern", "--id", CRU, "--pat2", "0x1ffffffffffffffffffff", exit_code=2).stderr


def test_the_loopback_test_gives_links_back(cards):
    before = cards.register(CRU, "gbt_link_source[0]")
    rows = cards.json("loopback", "--id", CRU, "--links", "0,1", "--internal", "--duration", "10ms", exit_code=None)
    assert [row["link"] for row in rows] == [0, 1] and all("rx_errors" in row for row in rows)
    shown = cards.card(
        "loopback",
        "--id",
        CRU,
        "--links",
        "0",
        "--internal",
        "--duration",
        "60ms",
        "--interval",
        "20ms",
        "-o",
        "json",
        exit_code=None,
    ).stdout
    assert len(shown.splitlines()) >= 2 and all(json.loads(line)[0]["link"] == 0 for line in shown.splitlines())
    assert "PLL" not in cards.card("loopback", "--id", CRU, "--skip-reset", "--duration", "1ms", exit_code=None).stdout
    assert (
        "PLL"
        in cards.card(
            "loopback", "--id", CRU, "--skip-reset", "--duration", "1ms", "--expert-view", exit_code=None
        ).stdout
    )
    assert cards.register(CRU, "gbt_link_source[0]") == before
    for links in ("11-0", "16-", "x", "40"):
        cards.card("loopback", "--id", CRU, "--links", links, exit_code=2)


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


def test_a_crorc_is_read_asked_and_flashed(rodeo, tmp_path):
    text = '[emulator]\nname = "crorc"\n[[emulator.card]]\ntype = "crorc"\naddress = "0000:05:00.0"\nserial = 1001\n[emulator.trigger]\nrate = 0\nwait_for = 1\n'
    with emulated(rodeo, text, count=1) as cards:
        assert cards.json("list")[0]["type"] == "C-RORC"
        rows = cards.json("status", "--id", "#0")
        assert [row["id"] for row in rows if row["measurement"] == "link"] == list(range(6))
        assert len(cards.json("packets", "--id", "#0")) == 6
        dump = tmp_path / "dump"
        result = cards.bench("#0", "--data-source", "internal", "--channel", 2, "--to-file", dump, size="4MiB")
        assert result["errors"] == 0 and result["bytes"] >= 4 << 20
        (verified,) = json.loads(rodeo("data", "verify", dump, "-o", "json").stdout)
        assert (verified["sound"], verified["pattern"], verified["pages"]) == (True, "words", result["counts"]["pages"])
        assert cards.json("siu", "--id", "#0", "--channel", 1)["conditions"][-1].startswith("port: ")
        assert cards.json("siu", "--id", "#0", "--channel", 1, "--reset")["channel"] == 1
        cards.card("siu", "--id", "#0", "--channel", 6, exit_code=2)
        words = tmp_path / "words"
        words.write_text("".join(f"{i * 7 % 65536}\n" for i in range(100)))
        assert cards.json("flash", "write", words, "--id", "#0", "--address", "0x30000")["blocks_written"] == 1
        assert cards.json("flash", "write", words, "--id", "#0", "--address", "0x30000")["blocks_written"] == 0
        assert [
            row["value"] for row in cards.json("flash", "read", "--id", "#0", "--address", "0x30000", "--words", 3)
        ] == [0, 7, 14]
        serial = b"".join(
            row["value"].to_bytes(2, "big")
            for row in cards.json("flash", "read", "--id", "#0", "--address", "0x470010", "--words", 3)
        )
        assert int(serial[1:5]) == cards.json("list")[0]["serial"]  # upstream reads the serial number at this place
        words.write_text("1\n70000\n")
        assert f"{words}:2:1" in cards.card("flash", "write", words, "--id", "#0", exit_code=2).stderr
        assert cards.json("config", "--id", "#0", "--crorc-id", "0x12", "--no-firmware-check")[0]["to"] == "0x12"
        cards.card("reset", "--id", "#0", "--channel", 2, "--level", "siu")


def test_huge_pages_are_shown(cards):
    assert isinstance(cards.json("hugepages"), list)
    cards.card("hugepages", "--size", "2MiB", exit_code=2)


def test_huge_pages_beyond_the_memory_are_refused_at_once(cards):
    pools = [pool for pool in cards.json("hugepages") if pool["page_bytes"] == 2 << 20]
    if not pools:
        pytest.skip("host: this kernel offers no huge pages of 2 MiB")
    before = [pool["pages"] for pool in cards.json("hugepages")]
    for pages in (99999999999999, 2**64 - 1):
        said = cards.card(
            "hugepages", "--size", "2MiB", "--pages", pages, "--node", pools[0]["numa_node"], exit_code=5
        ).stderr
        assert said.startswith("error[card.huge_pages_memory]") and "has memory for" in said
    assert [pool["pages"] for pool in cards.json("hugepages")] == before


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


def test_cleanup_leaves_alone_who_has_the_lock_and_does_not_listen_yet(rodeo):
    """A server takes its lock, makes its socket, then listens. In between it does not answer, but its name is in use."""
    directory = rodeo.directory / "rodeo"
    (directory / "cards").mkdir(mode=0o700, parents=True, exist_ok=True)
    for name, lock_name, take in (
        ("a.emulator", "a.emulator.lock", lambda file: fcntl.flock(file, fcntl.LOCK_EX)),
        ("a.events", "a.events.lock", lambda file: fcntl.flock(file, fcntl.LOCK_EX)),
        (
            "cards/0000:3b:00.0.sock",
            "cards/0000:3b:00.0.lock",
            lambda file: fcntl.fcntl(file, F_OFD_SETLK, struct.pack("hhqqi4x", fcntl.F_WRLCK, 0, 255, 1, 0)),
        ),
    ):
        with open(directory / lock_name, "w") as lock, socket.socket(socket.AF_UNIX) as starting:
            take(lock)
            starting.bind(str(directory / name))
            assert json.loads(rodeo("card", "cleanup", "--yes", "-o", "json").stdout) == []
            assert (directory / name).exists() and (directory / lock_name).exists()
        left = json.loads(rodeo("card", "cleanup", "--yes", "-o", "json").stdout)
        assert {row["path"] for row in left} == {str(directory / name), str(directory / lock_name)}
        assert (
            all(row["outcome"] == "removed" for row in left)
            and not (directory / name).exists()
            and not (directory / lock_name).exists()
        )


def test_cleanup_knows_the_sockets_of_readouts(rodeo):
    with running(rodeo) as run:
        run.wait_until(lambda status: status["fragments"]["built"] > 0, "it runs")
        assert json.loads(rodeo("card", "cleanup", "-o", "json").stdout) == []
        run.process.kill()
        run.process.communicate()
    left = json.loads(rodeo("card", "cleanup", "--yes", "-o", "json").stdout)
    assert {row["path"].split("/")[-1] for row in left} == {
        "test.control",
        "test.control.lock",
        "test.events",
        "test.events.lock",
    }
    assert json.loads(rodeo("card", "cleanup", "-o", "json").stdout) == []


def test_a_fault_says_what_it_did(cards):
    said = cards.rodeo("emulate", "fault", "--id", "cru", "link_down", "--link", 3, "--duration", "1ms").stdout
    assert said == "cru: link_down of link 3 for 1ms\n"


def test_a_fault_that_is_none_is_a_mistake(cards):
    said = cards.rodeo("emulate", "fault", "--id", "cru", "link_dwon", exit_code=2).stderr
    assert "did you mean `link_down`" in said
    assert "there are: " in cards.rodeo("emulate", "fault", "--id", "cru", "xyzzy", exit_code=2).stderr


@pytest.mark.parametrize(
    "line", [b'{"command":"status","x":1e400}', b"[" * 30000 + b"]" * 30000], ids=["number", "brackets"]
)
def test_whatever_is_written_to_its_control_socket_the_emulator_goes_on(cards, line):
    answer = written_to(cards.rodeo.directory, "test.emulator", line)
    assert answer["ok"] is False and answer["code"] == "config.bad_json"
    assert json.loads(cards.rodeo("emulate", "status", "-o", "json").stdout)["seconds"] > 0


def test_a_fault_that_cannot_be_says_what_could(cards):
    fault = lambda *arguments, code: cards.rodeo("emulate", "fault", "--id", *arguments, exit_code=code).stderr
    assert "links are 0 to 11" in fault("cru", "link_down", "--link", 12, code=5)
    assert "links are 0 to 3" in fault("felix", "link_down", "--link", 4, code=5)
    assert "-50 to 150" in fault("felix", "temperature", "--value", 1000, code=2)
    assert "has no fault bad_packet_counter" in fault("felix", "bad_packet_counter", code=5)
    answer = written_to(
        cards.rodeo.directory, "test.emulator", b'{"command":"fault","id":"felix","kind":"temperature","value":1000}'
    )
    assert answer["ok"] is False and "-50 to 150" in answer["what"]


def test_what_a_tool_cannot_do_is_said_with_what_it_can(cards, tmp_path):
    assert "links are 0 to 11" in cards.card("config", "--id", CRU, "--links", "3-0", "--dry-run", exit_code=2).stderr
    assert "links are 0 to 11" in cards.card("config", "--id", CRU, "--links", "12", "--dry-run", exit_code=2).stderr
    changes = {
        row["setting"]: row["to"]
        for row in cards.json(
            "config",
            "--id",
            CRU,
            "--links",
            "2-3",
            "--gbtmux",
            "DDG",
            "--fee-id",
            "2a",
            "--datapathmode",
            "packet",
            "--dry-run",
        )
    }
    assert (
        changes["link 3 gbt_mux"],
        changes["link 3 fee_id"],
        changes["link 2 fee_id"],
        changes["link 2 datapath_mode"],
    ) == ("ddg", "0x2a", "0x2a", "packet")
    assert cards.register(CRU, "datapath_link_control[0]") & 0x7FFFFFFF == 0x1FC
    assert cards.card("cleanup", "--light").returncode == 0
    assert (
        ".yaml is not a kind"
        in cards.card("config", "--id", CRU, "--generate", tmp_path / "x.yaml", exit_code=2).stderr
    )
    assert (
        ".yaml is not a kind"
        in cards.card("config", "--template", "cru", "--generate", tmp_path / "x.yaml", exit_code=2).stderr
    )
    assert not (tmp_path / "x.yaml").exists()
    for arguments in (["config", tmp_path], ["firmware", "--firmware-list", tmp_path]):
        said = cards.card(*arguments, "--id", CRU, exit_code=3).stderr
        assert said.startswith("error[config.unreadable]") and "directory" in said
    assert "--interval takes" in cards.card("triggers", "--id", CRU, "--interval", "0s", exit_code=2).stderr


def test_a_runtime_directory_that_is_none_is_said(rodeo, tmp_path):
    (tmp_path / "file").write_text("")
    for name, says in (("file", "is not a directory"), ("missing", "there is no runtime directory")):
        rodeo.environment["RODEO_RUNTIME_DIR"] = str(tmp_path / name)
        assert says in rodeo("card", "list").stderr


class SilentCards:
    """Sockets of cards whose process hangs: it accepts connections and never answers. Counts simultaneous connections."""

    def __init__(self, directory, count):
        (directory / "cards").mkdir(mode=0o700, parents=True, exist_ok=True)
        self.selector, self.total, self.most, self.open = selectors.DefaultSelector(), 0, 0, set()
        self.listeners = []
        for number in range(count):
            listener = socket.socket(socket.AF_UNIX)
            listener.bind(str(directory / "cards" / f"0000:{number + 16:02x}:00.0.sock"))
            listener.listen(64)
            self.listeners.append(listener)
            self.selector.register(listener, selectors.EVENT_READ)
        self.stop_socket, stopped = socket.socketpair()
        self.selector.register(stopped, selectors.EVENT_READ)
        self.stopped = stopped
        self.thread = threading.Thread(target=self.run)
        self.thread.start()

    def run(self):
        while True:
            for key, _ in self.selector.select():
                if key.fileobj is self.stopped:
                    return
                if key.fileobj in self.listeners:
                    connection = key.fileobj.accept()[0]
                    self.selector.register(connection, selectors.EVENT_READ)
                    self.open.add(connection)
                    self.total += 1
                    self.most = max(self.most, len(self.open))
                elif not key.fileobj.recv(65536):
                    self.selector.unregister(key.fileobj)
                    self.open.discard(key.fileobj)
                    key.fileobj.close()

    def close(self):
        self.stop_socket.close()
        self.thread.join()
        for one in [*self.listeners, *self.open, self.stopped]:
            one.close()


@pytest.mark.parametrize(
    "verb, code",
    [
        (["list"], 6),
        (["status"], 4),
        (["metrics", "--prometheus"], 4),
        (["triggers"], 4),
        (["firmware"], 4),
        (["status", "--id", "10:00.0", "--id", "11:00.0", "--id", "12:00.0"], 4),
    ],
    ids=lambda value: "-".join(value[:3]).replace(":", "") if isinstance(value, list) else None,
)
def test_silent_cards_are_waited_for_all_at_once_and_once(rodeo, verb, code):
    silent = SilentCards(rodeo.directory / "rodeo", 3)
    try:
        said = rodeo("card", *verb, exit_code=code).stderr
        assert verb == ["list"] or said.count("error[card.timeout]") == 3
        assert (silent.most, silent.total) == (3, 3)
    finally:
        silent.close()


def test_a_card_that_is_named_by_its_address_is_asked_alone(rodeo):
    silent = SilentCards(rodeo.directory / "rodeo", 3)
    try:
        rodeo("card", "reg", "read", "--id", "11:00.0", "temperature", exit_code=4)
        assert silent.total == 1
    finally:
        silent.close()


def test_a_card_whose_answer_comes_byte_by_byte_is_given_up_as_a_silent_one(rodeo):
    (rodeo.directory / "rodeo" / "cards").mkdir(mode=0o700, parents=True)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(rodeo.directory / "rodeo" / "cards" / "0000:10:00.0.sock"))
        listener.listen()

        def drip():
            for _ in range(2):
                with contextlib.suppress(OSError), listener.accept()[0] as connection:
                    while True:  # ends when the client hangs up
                        connection.sendall(b"\0")
                        time.sleep(0.2)

        thread = threading.Thread(target=drip)
        thread.start()
        assert "did not answer in time" in rodeo("card", "list", exit_code=6).stdout
        assert (
            "error[card.timeout]" in rodeo("card", "reg", "read", "--id", "10:00.0", "temperature", exit_code=4).stderr
        )
        thread.join()
