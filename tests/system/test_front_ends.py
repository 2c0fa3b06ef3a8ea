"""`rodeo route send`: messages to front ends through a router and emulated cards, which echo or answer them; owners of links, and refusals."""

import json

import pytest
from conftest import scaled
from running_emulator import emulated
from running_router import readout, router, sides

FELIX = """
[emulator]
name = "cards"

[[emulator.card]]
type = "felix"
name = "felix"
address = "0000:50:00.0"
serial = 801
links = 2
loopback = true
flush = "1ms"

[emulator.trigger]
rate = "1kHz"
wait_for = 0

[router]
name = "felix"
bus = "bus"

[router.input]
type = "card"
cards = ["0000:50:00.0"]
start_generator = true

[router.front_ends]
enabled = true
"""

CRU = """
[emulator]
name = "cards"

[[emulator.card]]
type = "cru"
name = "cru"
address = "0000:51:00.0"
serial = 802
links = 4

[emulator.trigger]
rate = "1kHz"
wait_for = 0

[router]
name = "felix"
bus = "bus"

[router.input]
type = "card"
cards = ["0000:51:00.0"]

[router.front_ends]
enabled = true
"""

EC = "0x10000000003f0000"  # the EC link of link 0: e-group 7, e-path 7


@pytest.fixture
def routed(rodeo, sides):
    """Starts cards and their router. Both end with the test."""
    running = []

    def start(text, *settings):
        file = rodeo.directory / "cards.toml"
        file.write_text(text)
        running.append(
            emulated(
                rodeo,
                file,
                *(part for setting in settings if setting.startswith("emulator.") for part in ("--set", setting)),
            )
        )
        running[-1].__enter__()
        return router(sides, *(setting for setting in settings if setting.startswith("router.")), text=text)

    yield start
    for cards in running:
        cards.__exit__(None, None, None)


def sent(rodeo, *arguments, exit_code=0):
    """The rows of a successful command, else its error."""
    done = rodeo("route", "send", *arguments, "--bus", "bus", "-o", "json", exit_code=exit_code)
    return json.loads(done.stdout) if exit_code == 0 else done.stderr


@pytest.mark.parametrize("bits", ["4", "5"])
def test_what_a_front_end_is_sent_comes_back_on_its_link(rodeo, routed, bits):
    side = routed(FELIX, f"emulator.card[0].from_host_length_bits={bits}")
    (row,) = sent(rodeo, EC, "--hex", "01 02 ff a0", "--answer", "10s")
    assert row == {"message": 1, "fid": "0x10000000003f8000", "bytes": 4, "answer": "01 02 ff a0"}
    text = "a message that goes over several packets, which have 30 bytes each"
    rows = sent(rodeo, EC, "--text", text, "--answer", "10s", "--repeat", 20)
    assert [bytes.fromhex(row["answer"]).decode() for row in rows] == 20 * [text]
    report, said = side.finish()
    assert (
        report["front_ends"]["counters"]["messages_sent"] == 21
        and report["front_ends"]["counters"]["messages_failed"] == 0
    )
    assert report["front_ends"]["counters"]["message_bytes_sent"] == 4 + 20 * len(text)
    assert "21 messages sent" in said
    assert report["run"]["condition"] == "GOOD", report


def test_a_link_that_sends_nothing_back_takes_its_messages(rodeo, routed):
    routed(FELIX)
    (rodeo.directory / "configuration.bin").write_bytes(bytes(range(256)))
    (row,) = sent(rodeo, "0x1000000000020000", "--file", "configuration.bin")
    assert row["bytes"] == 256 and row["answer"] is None
    assert sent(rodeo, "0x1000000000270000", "--hex", "00")[0]["answer"] is None, "a link without data to the host"
    assert "error[input.no_publisher]" in sent(
        rodeo, "0x1000000000270000", "--hex", "00", "--answer", "300ms", exit_code=None
    )
    emulator = json.loads(rodeo("emulate", "status", "-o", "json").stdout)
    (function,) = emulator["functions"]
    assert function["counters"]["from_host_messages"] == 2 and "chunks_looped_back" not in function["counters"]
    assert function["counters"]["from_host_bytes"] == 32 * (9 + 1)


def test_a_link_has_one_owner(rodeo, routed):
    side = routed(FELIX)
    owner = rodeo.start("route", "send", EC, "--text", "x" * 60_000, "--repeat", 10_000, "--bus", "bus")
    try:
        status = side.wait_until(lambda status: status["front_ends"]["owners"], "it has claimed the link")
        assert (
            status["front_ends"]["owners"][0]["name"] == "rodeo route send"
            and status["front_ends"]["owners"][0]["links"] == 1
        )
        error = sent(rodeo, EC, "--hex", "01", exit_code=5)
        assert "error[transport.link_owned]" in error and "rodeo route send (127.0.0.1:" in error
        assert sent(rodeo, "0x10000000003e0000", "--hex", "01"), "another link"
    finally:
        owner.kill()
        owner.communicate(timeout=scaled(10))
    side.wait_until(lambda status: not status["front_ends"]["owners"], "its link is free")
    assert sent(rodeo, EC, "--hex", "01")


def test_no_link_gets_more_than_its_rate(rodeo, routed):
    side = routed(FELIX, "router.front_ends.bytes_per_second=10000")
    # The test sends 64 KiB at once. The second message uses up the credit, and the third waits more than a second for new credit.
    sent(rodeo, EC, "--text", "x" * 40_000, "--repeat", 3)
    report, _ = side.finish()
    assert report["front_ends"]["counters"]["rate_waits"] == 1


def test_what_a_card_has_been_given_goes_when_the_router_ends(rodeo, routed):
    side = routed(FELIX)
    sent(rodeo, "0x1000000000020000", "--text", "x" * 50_000, "--repeat", 40)
    side.finish()
    emulator = json.loads(rodeo("emulate", "status", "-o", "json").stdout)
    assert emulator["functions"][0]["counters"]["from_host_messages"] == 40


def test_a_router_that_dies_ends_its_senders_and_its_successor_has_the_card(rodeo, routed, sides):
    side = routed(FELIX)
    with rodeo.start("route", "send", EC, "--text", "x" * 60_000, "--repeat", 100_000, "--bus", "bus") as owner:
        side.wait_until(lambda status: status["front_ends"]["owners"], "it has claimed the link")
        side.kill()
        _, error = owner.communicate(timeout=scaled(30))
    assert owner.returncode == 4 and "error[transport.closed]" in error
    router(sides, text=FELIX)
    assert sent(rodeo, EC, "--hex", "01 02", "--answer", "10s")[0]["answer"] == "01 02"


def test_slow_control_of_a_cru_answers(rodeo, routed):
    routed(CRU)
    link = "0x1000000000400000"  # 1
    assert sent(rodeo, link, "--sca", "0x02010010,0xcafe")[0]["answer"] == "0x02010000,0x00000000"
    assert sent(rodeo, link, "--sca", "0x02020011,0")[0]["answer"] == "0x02020000,0x0000cafe"
    assert "invalid channel" in sent(rodeo, link, "--sca", "0x7f010010,0", exit_code=4)
    assert sent(rodeo, link, "--ic", "0x54=0xff")[0]["answer"] == "ff"
    assert sent(rodeo, link, "--ic", "0x54")[0]["answer"] == "ff"
    assert sent(rodeo, link, "--swt", "0xabc0000000badc0ffee")[0]["answer"] == "0xabc0000000badc0ffee"
    assert sent(rodeo, link, "--reset")[0]["answer"] is None
    # The frames of SCA have 8 bytes, the words of SWT 10, at most 128 of them; a request of IC has 2 or 3 bytes.
    for protocol, frame in ((1, 8), (2, 10)):
        for size in (frame - 1, frame + 1, 129 * frame):
            (rodeo.directory / "wrong").write_bytes(bytes(size))
            assert "error[router.front_end_message]" in sent(
                rodeo, f"0x1000000000400{protocol}00", "--file", "wrong", exit_code=2
            ), (protocol, size)
    for size in (0, 1, 4):
        (rodeo.directory / "wrong").write_bytes(bytes(size))
        assert "error[router.front_end_message]" in sent(rodeo, "0x1000000000400300", "--file", "wrong", exit_code=2), (
            size
        )
    assert sent(rodeo, link, "--ic", "0x54")[0]["answer"] == "ff", "it answers as before"


def test_what_cannot_be_sent_is_refused_by_name(rodeo, routed, sides):
    assert "error[transport.no_front_end]" in sent(rodeo, EC, "--hex", "01", exit_code=4)
    for wrong in (
        ["--hex", "0"],
        ["--hex", "xy"],
        ["--sca", "1"],
        ["--swt", "0x10000000000000000000"],
        ["--ic", "0x10000"],
        [],
        ["--hex", "01", "--text", "a"],
    ):
        assert "error[cli." in sent(rodeo, EC, *wrong, exit_code=2)
    assert "error[formats.fid]" in sent(rodeo, "0x0", "--hex", "01", exit_code=2)
    routed(FELIX)
    assert "error[transport.no_front_end]" in sent(rodeo, "0x10000000ff3f0000", "--hex", "01", exit_code=4)
    (rodeo.directory / "big").write_bytes(bytes(65_536))
    assert "error[router.front_end_message]" in sent(rodeo, EC, "--file", "big", exit_code=2)
    generator = FELIX.replace(
        'type = "card"\ncards = ["0000:50:00.0"]\nstart_generator = true', 'type = "generator"'
    ).replace('[router]\nname = "felix"', '[router]\nname = "other"')
    (rodeo.directory / "generator.toml").write_text(generator)
    assert "error[config." in rodeo("check", "generator.toml", exit_code=3).stderr


def test_a_secret_that_differs_is_refused(rodeo, routed):
    for name, secret in (("secret", "right"), ("other", "wrong")):
        (rodeo.directory / name).write_text(secret)
        (rodeo.directory / name).chmod(0o600)
    routed(FELIX, f"router.secret_file={rodeo.directory / 'secret'}")
    assert "error[transport.secret]" in sent(rodeo, EC, "--hex", "01", exit_code=None)
    assert "error[transport.secret]" in sent(rodeo, EC, "--hex", "01", "--secret-file", "other", exit_code=None)
    assert sent(rodeo, EC, "--hex", "01", "--secret-file", "secret", "--answer", "10s")[0]["answer"] == "01"


def test_a_readout_of_all_that_is_on_the_bus_leaves_front_ends_out(rodeo, routed, sides):
    side = routed(FELIX)
    listed = {one["name"]: one for one in json.loads(rodeo("route", "list", "--bus", "bus", "-o", "json").stdout)}
    assert listed["felix.front_ends"]["links"] == 2 * 42 and listed["felix.front_ends"]["alive"]
    assert listed["felix.0"]["links"] == 2 * (8 + 2)
    # Each readout has to find the links with data, because it subscribes to all of them.
    net = readout(sides)
    status = net.wait_until(lambda status: status["chunks"]["built"] > 0, "it builds")
    assert sum(len(rob["links"]) for rob in status["robs"]) == 20
    side.finish()
