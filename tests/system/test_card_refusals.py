"""Requests that `rodeo card` refuses at once, and the cause that it names if a resource is missing."""

import json
import shlex
import signal
import subprocess
import time

import pytest

from conftest import TIMEOUT_SCALE, Rodeo, scaled
from emulated_cards import CARDS, CRU, FELIX, SMALL, emulated


unsanitized = pytest.mark.skipif(TIMEOUT_SCALE != 1, reason="sanitizers need descriptors of their own")


@pytest.fixture(scope="module")
def cards(tmp_path_factory):
    with emulated(Rodeo(tmp_path_factory.mktemp("cards"))) as running:
        yield running


def limited(rodeo, limit, *arguments):
    """Runs rodeo under a limit of the shell: ("-n", 5)."""
    command = f"ulimit {limit[0]} {limit[1]}; exec {shlex.join([str(rodeo.binary), *map(str, arguments)])}"
    return subprocess.run(
        ["bash", "-c", command],
        cwd=rodeo.directory,
        env=rodeo.environment,
        text=True,
        capture_output=True,
        timeout=scaled(30),
    )


@pytest.mark.parametrize("duration", ["0s", "999us"])
def test_a_loopback_test_of_no_time_is_refused(cards, duration):
    said = cards.card("loopback", "--id", CRU, "--internal", "--duration", duration, exit_code=2)
    assert said.stdout == "" and "at least a millisecond" in said.stderr


def test_a_bench_leaves_room_for_others_at_the_card(cards):
    said = cards.card("bench", "bar", "--id", CRU, "--processes", 129, "--duration", "20ms", exit_code=2).stderr
    assert "1 to 128" in said and "0000:af:00.0" in said
    assert len(cards.json("bench", "bar", "--id", CRU, "--processes", 8, "--duration", "20ms")["per_process"]) == 8


def test_where_errors_cannot_be_written_nothing_is_measured(cards):
    done = cards.card(
        "bench",
        "dma",
        "--id",
        CRU,
        "--bytes",
        "1MiB",
        *SMALL,
        "--error-file",
        "/nonexistent/errors",
        "--json",
        "-",
        exit_code=1,
    )
    assert done.stdout == "" and "/nonexistent/errors" in done.stderr and "superpages" not in done.stderr


def test_an_error_file_of_a_bench_without_errors_is_empty(cards, tmp_path):
    cards.bench(CRU, "--error-file", tmp_path / "errors", size="1MiB")
    assert (tmp_path / "errors").read_text() == ""


def test_a_card_that_shall_be_let_go_is_named(cards):
    assert "--let-go needs a card" in cards.card("keep", "--let-go", exit_code=2).stderr


def test_a_card_that_is_not_there_cannot_be_kept(cards):
    try:
        assert "error[card.not_found]" in cards.card("keep", "7f:1f.7", exit_code=4).stderr
        assert "error[card.wrong_type]" in cards.card("keep", "--let-go", "af:00.0", exit_code=2).stderr
    finally:
        cards.card("keep", "--stop")


@pytest.mark.parametrize("address", ["foo", "127.0.0.1:99999", "127.0.0.1:22x", "127.0.0.1", "nowhere:80"])
def test_metrics_are_served_at_an_address_and_a_port(cards, address):
    assert "address and a port" in cards.card("metrics", "--listen", address, exit_code=2).stderr


def test_memory_that_is_not_there_is_no_invalid_configuration(cards):
    said = cards.card("bench", "dma", "--id", CRU, "--bytes", "1MiB", "--buffer-size", "1000TiB", exit_code=1).stderr
    assert said.startswith("error[card.dma_memory]") and "--buffer-size" in said


@unsanitized
def test_a_lack_of_descriptors_is_our_own(cards):
    """The error names neither the card nor anything unreached, for any resource that is exhausted first."""
    said = ""
    for most in range(4, 24):
        # A list reads all cards at once, so any card may lack a resource. With one card, it is always the same.
        for command in (["card", "list"], ["card", "status", "--id", FELIX]):
            done = limited(cards.rodeo, ("-n", most), *command)
            assert done.returncode in (0, 1, 4, 6) and "more descriptors than" not in done.stdout + done.stderr
            said += done.stdout + done.stderr
    assert "descriptors that the card sent: Too many open files" in said


@unsanitized
def test_an_emulator_without_descriptors_has_failed(rodeo):
    (rodeo.directory / "cards.toml").write_text(CARDS)
    for most in range(5, 13):
        done = limited(rodeo, ("-n", most), "emulate", "cards.toml")
        assert done.returncode == 1 and "Too many open files" in done.stderr, done


def test_an_error_of_payload_says_what_differs(cards, tmp_path):
    cards.bench(CRU, "--data-source", "fee", "--seed", 2, "--error-file", tmp_path / "errors", size="1MiB", exit_code=7)
    lines = (tmp_path / "errors").read_text().splitlines()
    values = [line.split("expected ")[1].split(", found ") for line in lines]
    assert lines and all(expected != found for expected, found in values), lines[:5]


@pytest.mark.parametrize(
    "option, value",
    [
        ("--trigger-window", 65536),
        ("--trigger-window-size", 65536),
        ("--tf-length", 4096),
        ("--time-frame-length", 4096),
        ("--cru-id", "0x1000"),
        ("--dyn-offset", "maybe"),
    ],
)
def test_an_option_of_a_setting_is_told_by_its_names(cards, option, value):
    said = cards.card("config", "--id", CRU, option, value, "--dry-run", exit_code=3).stderr
    named = said.split(": ")[1].split(",")
    assert option in named and all(name in cards.card("config", "--help").stdout for name in named), said


def test_the_name_that_was_given_is_the_name_that_is_wrong(cards):
    for name in ("--bar", "--channel"):
        assert f"bench bar: {name}: " in cards.card("bench", "bar", "--id", CRU, name, -1, exit_code=2).stderr
        assert f"bench bar: {name}: " in cards.card("bench", "bar", "--id", CRU, f"{name}=-1", exit_code=2).stderr


@pytest.mark.parametrize(
    "arguments, says",
    [
        (["ctp", "--eox", "--single-trigger"], "one at a time"),
        (["ctp", "--eox", "--status"], "one at a time"),
        (["ctp", "--trigger-mode", "periodic", "--bc", 5], "--bc is for mode fixed"),
        (["ctp", "--status", "--hbkeep", 3], "another option gives a setting"),
        (["reg", "read", "--register-map", "4.0", "temperature"], "is not a known register map"),
        (["bench", "bar", "--cycles", 5, "--duration", "1s"], "leave out one"),
        (["config", "--all", "--set", "cru_id=1"], "--all and --id exclude each other"),
    ],
)
def test_options_that_say_two_things_are_refused(cards, arguments, says):
    assert says in cards.card(*arguments, "--id", CRU, exit_code=2).stderr


@pytest.mark.parametrize(
    "verb, links",
    [
        (["bench", "dma", "--bytes", "1MiB"], "12"),
        (["loopback"], "12"),
        (["config", "--dry-run"], "12"),
        (["status"], "24"),
        (["packets"], "24"),
    ],
)
def test_links_are_the_same_list_for_every_verb(cards, verb, links):
    for wrong in (links, "0x1", "3-0", "1-", "-1", "1,", "1;2"):
        said = cards.card(*verb, "--id", CRU, f"--links={wrong}", exit_code=2).stderr
        assert f"is not a link or range of links\n  links are 0 to {int(links) - 1}" in said
    assert "--links: the value is empty" in cards.card(*verb, "--id", CRU, "--links=", exit_code=2).stderr


def test_an_option_with_nothing_behind_its_sign_does_not_take_the_next(cards, tmp_path):
    for arguments in (
        ["config", "--generate=", "--dry-run"],
        ["config", "--generate", "", "--dry-run"],
        ["bench", "dma", "--to-file=", "--duration", "1s"],
    ):
        assert "the value is empty" in cards.card(*arguments, "--id", CRU, exit_code=2).stderr
    assert not list(cards.rodeo.directory.glob("--*"))


def test_words_are_taken_in_any_case(cards):
    assert cards.bench(CRU, "--data-source", "INTERNAL", "--error-check", "Fast", size="4MiB")["errors"] == 0
    assert cards.json("ctp", "--id", CRU, "--trigger-mode", "MANUAL")["mode"] == "manual"
    cards.card("list", "-o", "JSON")


def test_links_are_chosen_in_a_cru_alone(cards):
    assert "in a CRU" in cards.card("bench", "dma", "--id", FELIX, "--bytes", "1MiB", "--links", 1, exit_code=2).stderr


@pytest.mark.parametrize(
    "text", ["[cru]\nclock=ttc\ncruId=1\nclock=local\n", "[cru]\nclock=ttc\n[links]\ngbtMux=ttc\n[cru]\nclock=local\n"]
)
def test_a_key_that_is_given_twice_is_an_error(cards, tmp_path, text):
    file = tmp_path / "twice.ini"
    file.write_text(text)
    said = cards.card("config", file, "--id", CRU, "--dry-run", exit_code=3).stderr
    assert "cru.clock is given twice" in said and f"twice.ini:{text.count(chr(10))}:" in said and "twice.ini:2:" in said


def test_a_file_without_an_end_is_none(cards, tmp_path):
    endless = tmp_path / "endless"
    with open(endless, "wb") as file:
        file.truncate(17 << 20)
    for path, why in ((endless, "it has more than 16 MiB"), ("/dev/zero", "is not a regular file")):
        for command in (
            ["card", "config", path, "--id", CRU],
            ["card", "firmware", "--firmware-list", path],
            ["check", path],
        ):
            assert why in cards.rodeo(*command, exit_code=3).stderr
    assert "is not a word of 16 bits" in cards.card("flash", "write", "/dev/zero", "--id", CRU, exit_code=2).stderr
    words = tmp_path / "words"
    words.write_text("1\n" + "2" * 1000 + "\n")
    assert f"{words}:2:1" in cards.card("flash", "write", words, "--id", CRU, exit_code=2).stderr


def test_a_list_of_firmware_that_is_wrong_is_named(cards, tmp_path):
    listed = tmp_path / "list.json"
    listed.write_text('{"no hash": "v1"}')
    assert str(listed) in cards.card("firmware", "--firmware-list", listed, exit_code=3).stderr


def test_what_would_change_the_data_of_a_reader_is_refused(rodeo):
    with emulated(rodeo) as cards:
        owner = cards.rodeo.start(
            "card", "bench", "dma", "--id", CRU, "--data-source", "fee", "--duration", "60s", *SMALL, "--json", "-"
        )
        try:
            deadline = time.monotonic() + scaled(20)
            while not cards.register(CRU, "superpages_done[0]"):
                assert owner.poll() is None and time.monotonic() < deadline
            for change in (
                ["config", "--tf-length", 128],
                ["config", "--dynamic-offset", "true"],
                ["userlogic", "--event-size", 64],
            ):
                said = cards.card(*change, "--id", CRU, exit_code=5).stderr
                assert "card.locked" in said and str(owner.pid) in said and "--while-running" in said
            cards.card("userlogic", "--id", CRU)
            cards.card("pattern", "--id", CRU, "--pat0", "0x1")
            cards.card("config", "--id", CRU, "--tf-length", 128, "--dry-run")
            cards.card("config", "--id", CRU, "--cru-id", "0x77")  # the CRU id does not change the form of data
            cards.card("userlogic", "--id", CRU, "--event-size", 64, "--while-running")
        finally:
            owner.send_signal(signal.SIGINT)
            out, err = owner.communicate(timeout=scaled(30))
        assert owner.returncode == 0 and json.loads(out)["errors"] == 0, err
