"""What `rodeo card` refuses at once instead of doing nothing, something else or too much; and whom it blames when something is lacking."""

import shlex
import subprocess

import pytest

from conftest import Rodeo, scaled
from emulated_cards import CARDS, CRU, FELIX, SMALL, emulated


@pytest.fixture(scope="module")
def cards(tmp_path_factory):
    with emulated(Rodeo(tmp_path_factory.mktemp("cards"))) as running:
        yield running


def limited(rodeo, limit, *arguments):
    """Runs rodeo under a limit of the shell: ("-n", 5)."""
    command = f"ulimit {limit[0]} {limit[1]}; exec {shlex.join([str(rodeo.binary), *map(str, arguments)])}"
    return subprocess.run(["bash", "-c", command], cwd=rodeo.directory, env=rodeo.environment, text=True, capture_output=True, timeout=scaled(30))


@pytest.mark.parametrize("duration", ["0s", "999us"])
def test_a_loopback_test_of_no_time_is_refused(cards, duration):
    said = cards.card("loopback", "--id", CRU, "--internal", "--duration", duration, exit_code=2)
    assert said.stdout == "" and "a millisecond or more" in said.stderr


def test_a_bench_leaves_room_for_others_at_the_card(cards):
    said = cards.card("bench", "bar", "--id", CRU, "--processes", 129, "--time", "20ms", exit_code=2).stderr
    assert "1 to 128" in said and "0000:af:00.0" in said
    assert len(cards.json("bench", "bar", "--id", CRU, "--processes", 8, "--time", "20ms")["per_process"]) == 8


def test_where_errors_cannot_be_written_nothing_is_measured(cards):
    done = cards.card("bench", "dma", "--id", CRU, "--bytes", "1MiB", *SMALL, "--error-file", "/nonexistent/errors", "--json", "-", exit_code=1)
    assert done.stdout == "" and "/nonexistent/errors" in done.stderr and "superpages" not in done.stderr


def test_an_error_file_of_a_bench_without_errors_is_empty(cards, tmp_path):
    cards.bench(CRU, "--error-file", tmp_path / "errors", size="1MiB")
    assert (tmp_path / "errors").read_text() == ""


def test_a_card_that_shall_be_let_go_is_named(cards):
    assert "which card" in cards.card("keep", "--let-go", exit_code=2).stderr


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


def test_a_lack_of_descriptors_is_our_own(cards):
    """Whatever is the first that there is no room for: it is not the card's fault, and nothing that was not reached."""
    said = ""
    for most in range(4, 24):
        done = limited(cards.rodeo, ("-n", most), "card", "list")
        assert done.returncode in (0, 1, 6) and "more descriptors than" not in done.stdout + done.stderr
        said += done.stdout
    assert "descriptors that the card sent: Too many open files" in said


def test_an_emulator_without_descriptors_has_failed(rodeo):
    (rodeo.directory / "cards.toml").write_text(CARDS)
    for most in range(5, 13):
        done = limited(rodeo, ("-n", most), "emulate", "cards.toml")
        assert done.returncode == 1 and "Too many open files" in done.stderr, done
