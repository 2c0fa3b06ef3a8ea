"""Subscribers of a router: several at once, at different speeds, stalled monitors, refused subscribers, and unbuffered sending."""

import json
import os
import re
import signal
import socket
import struct
import time

from conftest import scaled
from running_router import READOUT, all_is_verified, has_built, readout, route_adds_up, router, sides

# FULL mode and raw pages of a CRU work the same way; see test_route_cards.py.


def counters_of(report, reader="felix.0"):
    (found,) = [one["counters"] for one in report["readers"] if one["name"] == reader]
    return found


def subscriber_of(report, name, reader="felix.0"):
    (found,) = [one for one in report["subscribers"] if one["reader"] == reader and one["name"] == name]
    return found


def stopped(side, seconds):
    side.process.send_signal(signal.SIGSTOP)
    time.sleep(seconds)
    side.process.send_signal(signal.SIGCONT)


def test_two_readouts_at_different_speeds_both_have_every_chunk(rodeo, sides):
    """The slower subscriber stalls repeatedly, until no page is left. The router waits for it, and both subscribers get the same data."""
    routed = router(sides, "router.pages=8", "router.input.rate=0", "router.wait_for_subscribers=true")
    fast = readout(sides, 'readout.input.subscriber="fast"', name="fast")
    fast.wait_until(has_built(1000), "the first builds")
    slow = readout(sides, 'readout.input.subscriber="slow"', name="slow")
    slow.wait_until(has_built(1000), "the second builds")
    for _ in range(3):
        stopped(slow, 0.2)
    routed.wait_until(lambda status: counters_of(status)["waits"] > 0, "the router has waited")
    sent, said = routed.finish()
    of_fast, _ = fast.finish(how=None)
    of_slow, _ = slow.finish(how=None)
    assert sent["run"]["condition"] == "GOOD" and route_adds_up(sent), said
    all_is_verified(of_fast)
    assert of_fast["chunks"]["sent"] == subscriber_of(sent, "fast")["chunks"] == sent["chunks"]["published"]
    # The slow subscriber connected while the links were sending, each at another event. So its first events lack some links.
    assert (
        of_slow["verified"] == {"chunks": of_slow["chunks"]["built"], "mismatches": 0}
        and of_slow["input"]["network_lost"] == 0
    )
    assert of_slow["chunks"]["sent"] == subscriber_of(sent, "slow")["chunks"]
    assert set(of_slow["chunks"]["lost"]) <= {"out_of_sequence", "late"}, "only at its beginning"


def test_a_monitor_that_stalls_loses_what_both_sides_count_and_holds_up_nobody(rodeo, sides):
    routed = router(sides, "router.input.rate=20kHz", "router.wait_for_subscribers=true")
    net = readout(sides, 'readout.input.subscriber="data"')
    net.wait_until(has_built(1000), "the readout builds")
    monitor = readout(
        sides, 'readout.input.subscriber="look"', "readout.input.monitor=true", "readout.input.pages=4", name="monitor"
    )
    monitor.wait_until(has_built(1000), "the monitor builds")
    monitor.process.send_signal(signal.SIGSTOP)
    stalled = routed.wait_until(lambda status: counters_of(status)["monitor_chunks_dropped"] > 0, "it loses some data")
    routed.wait_until(
        lambda status: status["chunks"]["published"] > stalled["chunks"]["published"] + 100_000, "the router goes on"
    )
    monitor.process.send_signal(signal.SIGCONT)
    monitor.wait_until(lambda status: status["input"]["network_lost"] > 0, "it knows what it lost")
    sent, said = routed.finish()
    built, _ = net.finish(how=None)
    seen, _ = monitor.finish(how=None, exit_code=None)
    all_is_verified(built)
    assert sent["run"]["condition"] == "GOOD" and route_adds_up(sent), said
    assert built["chunks"]["sent"] == sent["chunks"]["published"]
    dropped = counters_of(sent)["monitor_chunks_dropped"]
    # The reader cannot know of chunks that were lost after a link's last chunk.
    assert 0 < seen["input"]["network_lost"] <= dropped and seen["verified"]["mismatches"] == 0
    assert seen["chunks"]["sent"] == subscriber_of(sent, "look")["chunks"]


def test_a_link_that_is_sent_unbuffered_waits_for_no_other(rodeo, sides):
    """Pages are not closed by size or time: each run is sent by itself."""
    routed = router(sides, "router.wait_for_subscribers=true", "router.input.events=500", "router.flush=1s")
    built, _ = readout(sides, "readout.input.unbuffered=true").finish(how=None)
    sent, _ = routed.finish(how=None)
    all_is_verified(built)
    counters = counters_of(sent)
    assert counters["pages_unbuffered"] > 0 and counters["pages_full"] == counters["pages_by_time"] == 0, counters
    assert built["chunks"]["built"] == 500 * 24


def test_a_readout_takes_all_links_of_a_publisher_by_its_name(rodeo, sides):
    """One router has two readers with 12 links each. The configuration need not list a card's links."""
    routed = router(sides, "router.readers=2")
    (rodeo.directory / "net.toml").write_text(READOUT)
    absent = rodeo(
        "readout",
        "net.toml",
        "--seconds",
        1,
        "--set",
        'readout.input.publishers=["felix.9"]',
        "--set",
        "readout.input.wait=100ms",
        exit_code=None,
    )
    assert absent.returncode == 4 and "publisher felix.9 does not answer on the bus" in absent.stderr
    net = readout(sides, 'readout.input.publishers=["felix.1"]', "readout.builder.trigger_list=true")
    net.wait_until(has_built(1000), "something is built")
    built, _ = net.finish()
    sent, _ = routed.finish()
    assert built["links"] == 12 and built["verified"] == {"chunks": built["chunks"]["built"], "mismatches": 0}
    assert {one["reader"] for one in sent["subscribers"]} == {"felix.1", "felix.2"}, (
        "its links, and the router's list of triggers"
    )


def test_who_does_not_know_the_secret_has_no_link(rodeo, sides):
    for name in ("ours", "other"):
        (rodeo.directory / name).write_text(f"the secret of {name}\n")
        os.chmod(rodeo.directory / name, 0o600)
    routed = router(sides, "router.secret_file=ours", "router.input.events=1000", "router.wait_for_subscribers=true")
    (rodeo.directory / "net.toml").write_text(READOUT)
    for secret, why in (
        ((), "the subscriber has none"),
        (("--set", "readout.input.secret_file=other"), "the secrets of the subscriber and the publisher differ"),
    ):
        done = rodeo(
            "readout", "net.toml", "--seconds", scaled(1), "--json", "-", "--set", "readout.input.wait=600s", *secret
        )
        assert "warning publisher felix.0: " in done.stderr and why in done.stderr
        assert json.loads(done.stdout)["chunks"] == {"sent": 0, "built": 0, "lost": {}}
    done = rodeo(
        "readout", "net.toml", "--seconds", 600, "--json", "-", "--set", "readout.input.wait=300ms", exit_code=None
    )
    assert done.returncode == 1 and json.loads(done.stdout)["run"]["condition"] == "ABORTED"
    assert "publisher felix.0 refuses: the publisher requires a secret" in done.stderr
    built, _ = readout(sides, "readout.input.secret_file=ours").finish(how=None)
    sent, said = routed.finish(how=None)
    all_is_verified(built)
    assert counters_of(sent)["refused_secret"] >= 2 and sent["chunks"]["published"] == 24 * 1000, said


def greeting(version, marker=0x4C544352):
    """A HELLO (docs/reference/formats/network-control.md) of a program with another protocol version."""
    body = struct.pack("<IHHHQ32sH5s", marker, version, 1, 0, 7, bytes(32), 5, b"other")
    return struct.pack("<IHH", len(body), 1, 0) + body


def what_it_says(address, to_send):
    """Everything that a publisher sends until it ends the connection."""
    with socket.create_connection(address, timeout=scaled(20)) as client:
        client.sendall(to_send)
        said = b""
        while part := client.recv(65536):
            said += part
    return said


def test_another_version_and_what_is_no_greeting_are_refused_by_name_and_harm_nobody(rodeo, sides):
    routed = router(sides, "router.wait_for_subscribers=true")
    net = readout(sides)
    net.wait_until(has_built(1000), "the readout builds")
    (entry,) = [
        json.loads(file.read_text())
        for file in (rodeo.directory / "bus").iterdir()
        if json.loads(file.read_text())["name"] == "felix.0"
    ]
    address = (entry["address"], entry["port"])
    said = what_it_says(address, greeting(99))
    assert b"transport.version" in said and b"99" in said
    said = what_it_says(address, b"GET / HTTP/1.1\r\nHost: felix\r\n\r\n" + bytes(100))
    assert said.startswith(greeting(3)[:16]) and said.endswith(b"rodeo"), "its own greeting, and the end"
    net.wait_until(has_built(net.wait_until(has_built(0), "it builds")["chunks"]["built"] + 1000), "it goes on")
    sent, said = routed.finish()
    built, _ = net.finish(how=None)
    assert counters_of(sent)["refused_peers"] == 2 and "speaks version 99" in said, said
    assert re.search(r"felix\.0: 127\.0\.0\.1:\d+ is turned away", said), "subscribers that have left are named, too"
    assert counters_of(sent)["refused_version"] == counters_of(sent)["refused_unreadable"] == 1
    all_is_verified(built)
    assert built["chunks"]["sent"] == sent["chunks"]["published"]
