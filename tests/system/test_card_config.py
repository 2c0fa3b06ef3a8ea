"""`rodeo card config` on emulated cards: TOML and upstream's files, differences, and places of errors in a file."""

import pytest

from conftest import Rodeo
from emulated_cards import CRU, CRU_1, emulated
from running_readout import running


@pytest.fixture(scope="module")
def cards(tmp_path_factory):
    with emulated(Rodeo(tmp_path_factory.mktemp("cards"))) as running:
        yield running


def test_a_configuration_changes_what_differs_and_nothing_else(cards, tmp_path):
    file = tmp_path / "card.toml"
    file.write_text("[cru]\ncru_id = 0x123\ntrigger_window = 777\n[links]\nfee_id = 0x7\n[link3]\nfee_id = 0x1a\n")
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
    assert (
        "nothing to change"
        in cards.card("config", f"{'ini' if kind == 'ini' else 'json'}://{file}", "--id", CRU).stderr
    )


def test_templates_have_every_setting(cards, tmp_path):
    for kind in ("cru", "crorc", "felix"):
        assert f"[{kind}]" in cards.card("config", "--template", kind).stdout


@pytest.mark.parametrize(
    "text, says",
    [
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
    ],
)
def test_a_configuration_that_is_wrong_is_refused_with_its_place(cards, tmp_path, text, says):
    file = tmp_path / "bad.toml"
    file.write_text(text)
    done = cards.card("config", file, "--id", CRU, "--dry-run", exit_code=3)
    assert says in done.stderr


def test_everything_that_is_wrong_in_a_configuration_is_told_at_once(cards, tmp_path):
    file = tmp_path / "bad.toml"
    file.write_text(
        "[cru]\nclok = 'ttc'\ncru_id = 0x1000\n[links]\nfee_id = 0x10000\n[crew]\n[link12]\nenabled = true\n"
    )
    said = cards.card("config", file, "--all", exit_code=3).stderr
    for place in ("bad.toml:2:", "bad.toml:3:", "bad.toml:5:", "bad.toml:6:"):
        assert said.count(place) == 1, said
    assert "no link 12" in said
    said = cards.card("config", "--id", CRU, "--set", "clok=ttc", "--set", "cru_id=0x1000", exit_code=3).stderr
    assert said.count("error[") == 2


@pytest.mark.parametrize(
    "text, place, says",
    [
        ('{"cru": {\n"clock": "ttc",\n}}', ":3:1", "not JSON"),
        ("[]", "", "object of sections"),
        ('{"cru": {\n"clock": "sun"}}', ":2:1", "clock is one of"),
        ('{"cru": {\n"clock": "ttc",\n  "cruId": "1", "clock": "local"}}', ":3:17", "clock is given twice"),
        ('{"cru": {"clock": "ttc"},\n"cru": {"cruId": "1"}}', ":2:1", "cru is given twice"),
        ('{"cru": {},\n"links": {\n "feeId": "0x10000"}}', ":3:2", "fee"),
        ('{"cru": {\n "clock": ["ttc"]}}', ":2:2", "text, a number"),
        ('{"cru": {\n "cruId": 1e400}}', ":2:", "a number is too large"),
        ("[" * 20000 + "]" * 20000, ":1:101", "nested"),
    ],
)
def test_json_that_is_wrong_is_refused_with_its_place(cards, tmp_path, text, place, says):
    file = tmp_path / "bad.json"
    file.write_text(text)
    said = cards.card("config", file, "--id", CRU, "--dry-run", exit_code=3).stderr
    assert f"{file}{place}" in said and says in said


def test_a_configuration_of_nothing_is_a_mistake(cards):
    assert "no setting is given" in cards.card("config", "--id", CRU, exit_code=2).stderr


def test_a_configuration_without_a_card_is_a_mistake(cards):
    (said,) = (line for line in cards.card("config", "--help").stdout.splitlines() if line.strip().startswith("--id "))
    assert "or --all" in said and "left out" not in said
    cards.card("config", "--clock", "ttc", exit_code=2)
    cards.card("config", "missing.toml", "--id", CRU, exit_code=3)


def test_user_logic_of_a_fresh_card_takes_one_setting_alone(rodeo):
    with emulated(rodeo) as cards:
        assert cards.register(CRU, "user_logic_event_size") == 0  # at this value, one setting alone could not be set
        assert cards.json("userlogic", "--id", CRU, "--system-id", 5)["system_id"] == 5
        now = cards.json("userlogic", "--id", CRU, "--link-id", 3)
        assert (now["system_id"], now["link_id"], now["event_words"]) == (5, 3, 0)
        for refused in (["--event-size", 0], ["--system-id", 256], ["--link-id", 256]):
            assert "must be" in cards.card("userlogic", "--id", CRU, *refused, exit_code=2).stderr


def test_user_logic_is_set(cards):
    assert cards.json("userlogic", "--id", CRU, "--event-size", 128, "--system-id", 3)["event_words"] == 128
    assert cards.register(CRU, "user_logic_event_size") == 128


def test_the_clock_in_use_is_read_from_its_chip(cards):
    for clock, number in (("ttc", 0), ("local", 2)):
        done = cards.card("config", "--id", CRU, "--clock", clock)
        (row,) = [row for row in cards.json("status", "--id", CRU) if row["measurement"] == "CRU"]
        assert (row["clock"], row["clockInUse"]) == (number, number) and "jitter cleaner" not in done.stderr
