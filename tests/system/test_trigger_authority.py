"""A trigger authority and emulators that follow it in other processes: all cards have the same triggers, also after a process dies."""

import contextlib
import json
import os
import re
import signal
import socket
import time

import pytest
from conftest import ROOT, scaled
from running_readout import adds_up

EXAMPLE = ROOT / "examples" / "two-emulators"
NAMES = ("authority", "follower")


def status(rodeo, name):
    done = rodeo("emulate", "status", "--name", name, "-o", "json", exit_code=None)
    return json.loads(done.stdout) if done.returncode == 0 else None


def until(condition, what, seconds=30):
    deadline = time.monotonic() + scaled(seconds)
    while not (value := condition()):
        assert time.monotonic() < deadline, what
        time.sleep(0.05)
    return value


def emulator(rodeo, name, *settings):
    sets = [argument for one in settings for argument in ("--set", one)]
    return rodeo.start("emulate", EXAMPLE / f"{name}.toml", *sets)


@contextlib.contextmanager
def two_emulators(rodeo, where="two-emulators", authority=(), follower=(), follower_first=False):
    """Both processes by name, when the follower is connected."""
    settings = {
        "authority": [f"emulator.trigger.serve={where}", *authority],
        "follower": [f"emulator.trigger.follow={where}", *follower],
    }
    processes = {}
    try:
        for name in reversed(NAMES) if follower_first else NAMES:
            processes[name] = emulator(rodeo, name, *settings[name])
            until(
                lambda name=name: processes[name].poll() is not None or status(rodeo, name), f"{name} does not answer"
            )
            assert processes[name].poll() is None, processes[name].stderr.read()
        until(lambda: link(rodeo)["connected"], "the follower does not follow")
        yield processes
    finally:
        for process in processes.values():
            if process.poll() is None:
                process.send_signal(signal.SIGCONT)
                process.terminate()
            process.communicate(timeout=scaled(20))


def link(rodeo):
    report = status(rodeo, "follower")
    return report["trigger"]["link"]


def triggers(rodeo, name):
    return status(rodeo, name)["functions"][0]["triggers"]


def follower_of(rodeo):
    return next((one for one in status(rodeo, "authority")["trigger"]["followers"] if one["peer"]), None)


def whole(rodeo, report, stderr, before=(0, 0)):
    """Checks that every assigned trigger is on both cards and in a whole fragment."""
    assert report["run"]["condition"] == "GOOD" and adds_up(report), stderr
    assert report["fragments"]["incomplete"] == 0 and not report["chunks"]["lost"], report["fragments"]
    assert report["verified"] == {"chunks": report["chunks"]["built"], "mismatches": 0}
    counts = [triggers(rodeo, name) - one for name, one in zip(NAMES, before)]
    assert counts[0] == counts[1] == report["fragments"]["built"] > 1000
    assert report["chunks"]["built"] == counts[0] * 192


@contextlib.contextmanager
def endless_reader(rodeo, card):
    with rodeo.start(
        "card",
        "bench",
        "dma",
        "--id",
        card,
        "--bytes",
        "100GB",
        "--buffer-size",
        "32MiB",
        "--superpage-size",
        "256KiB",
        "--error-check",
        "none",
    ) as reader:
        yield
        reader.terminate()
        reader.communicate(timeout=scaled(20))


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def read(rodeo, seconds=1):
    done = rodeo("readout", EXAMPLE / "readout.toml", "--seconds", seconds, "--json", "-")
    return json.loads(done.stdout), done.stderr


@pytest.mark.parametrize("way", ["unix", "tcp"])
def test_two_emulators_are_built_to_whole_fragments(rodeo, way):
    where = "two-emulators" if way == "unix" else f"127.0.0.1:{free_port()}"
    with two_emulators(rodeo, where, follower_first=way == "tcp"):
        before = (0, 0)
        for _ in range(2):
            whole(rodeo, *read(rodeo), before)
            before = tuple(triggers(rodeo, name) for name in NAMES)
        trigger = status(rodeo, "authority")["trigger"]
        assert trigger["accepted"] == before[0]
        assert all(one["missed"] == 0 for one in trigger["followers"]) and len(trigger["followers"]) == 2
        table = rodeo("emulate", "status", "--name", "authority").stdout
        assert "dead time [%]" in table and "follower" in table


def test_a_follower_that_stands_still_is_dead_time_and_no_loss(rodeo):
    with two_emulators(rodeo) as processes:
        # With the default time-out the readout would give up these events, which is not tested here.
        with rodeo.start(
            "readout", EXAMPLE / "readout.toml", "--seconds", 2, "--json", "-", "--set", "readout.builder.timeout=30s"
        ) as reader:
            until(lambda: triggers(rodeo, "follower") > 1000, "no triggers")
            processes["follower"].send_signal(signal.SIGSTOP)
            time.sleep(0.5)
            processes["follower"].send_signal(signal.SIGCONT)
            out, err = reader.communicate(timeout=scaled(60))
        assert reader.returncode == 0, err
        whole(rodeo, json.loads(out), err)
        follower = follower_of(rodeo)
        assert follower["connected"] and follower["missed"] == 0
        # At 20 kHz, room for 4096 triggers lasts for 0.2 s of the stop of 0.5 s.
        assert follower["vetoed"] > 3000 and follower["dead_time_fraction"] > 0.02
        assert follower["busy_seconds"] > 0.1 and follower["vetoed_alone"] > 3000
        authority = status(rodeo, "authority")
        # On a busy machine the authority's own card may have lacked room for longer.
        busiest = max(authority["functions"], key=lambda one: one["vetoed"])
        longest = "follower" if follower["vetoed"] > busiest["vetoed"] else busiest["name"]
        assert authority["trigger"]["busy_card"] == longest
        # The follower's functions count the time without room, and the authority counts the vetoed triggers.
        assert all(
            one["dead_time_fraction"] is None and one["vetoed"] == 0 for one in status(rodeo, "follower")["functions"]
        )


def test_a_readout_that_stood_still_loses_nothing_of_either_card(rodeo):
    """Both cards hold more events than the builder's window. So the card that is read first must wait for the other."""
    with two_emulators(rodeo):
        with rodeo.start(
            "readout", EXAMPLE / "readout.toml", "--seconds", 2, "--json", "-", "--set", "readout.builder.window=1024"
        ) as reader:
            until(lambda: triggers(rodeo, "follower") > 1000, "no triggers")
            reader.send_signal(signal.SIGSTOP)
            before = triggers(rodeo, "follower")

            def full_or_enough():
                now = triggers(rodeo, "follower")
                time.sleep(0.3)
                return now > before + 8000 or (now > before and triggers(rodeo, "follower") == now)

            until(full_or_enough, "the cards do not fill")
            reader.send_signal(signal.SIGCONT)
            out, err = reader.communicate(timeout=scaled(60))
        assert reader.returncode == 0, err
        whole(rodeo, json.loads(out), err)


def test_a_follower_that_is_killed_is_dropped_and_said_so(rodeo):
    one_is_enough = ["emulator.trigger.wait_for=1"]
    with two_emulators(rodeo, authority=one_is_enough) as processes:
        with endless_reader(rodeo, "3b:00.0"), endless_reader(rodeo, "5e:00.0"):
            until(lambda: all(triggers(rodeo, name) > 1000 for name in NAMES), "no triggers")
            processes["follower"].kill()
            until(
                lambda: status(rodeo, "authority")["trigger"]["counters"].get("followers_dropped") == 1,
                "it is not dropped",
            )
            before = triggers(rodeo, "authority")
            until(lambda: triggers(rodeo, "authority") > before + 1000, "the other card has stopped")
        # A new follower with the same name starts at the current trigger.
        processes["follower"].communicate(timeout=scaled(20))
        processes["follower"] = emulator(rodeo, "follower")
        until(lambda: status(rodeo, "follower") and link(rodeo)["connected"], "the new one does not follow")
        processes["authority"].terminate()
        _, err = processes["authority"].communicate(timeout=scaled(20))
        assert "trigger follower follower" in err and "is dropped" in err


def test_a_follower_whose_authority_is_killed_keeps_its_card_and_follows_the_next(rodeo):
    with two_emulators(rodeo) as processes:
        with rodeo.start("readout", EXAMPLE / "readout.toml", "--seconds", 60, "--json", "-") as reader:
            until(lambda: triggers(rodeo, "follower") > 1000, "no triggers")
            os.kill(processes["authority"].pid, signal.SIGKILL)
            processes["authority"].communicate(timeout=scaled(20))
            reader.communicate(timeout=scaled(60))  # one card of the readout is gone; another test checks its message
        until(lambda: not link(rodeo)["connected"] and link(rodeo)["lost"] == 1, "it does not notice")
        before = triggers(rodeo, "follower")
        time.sleep(0.3)
        assert triggers(rodeo, "follower") == before
        assert rodeo("card", "reg", "read", "--id", "5e:00.0", "card_type", "-o", "json").returncode == 0
        processes["authority"] = emulator(rodeo, "authority")
        until(lambda: status(rodeo, "authority") and link(rodeo)["connected"], "it does not follow the next one")
        assert link(rodeo)["connections"] == 2
        whole(rodeo, *read(rodeo), (0, before))
        processes["follower"].terminate()
        _, err = processes["follower"].communicate(timeout=scaled(20))
        assert "the trigger authority at two-emulators is lost" in err


def test_beyond_this_host_both_know_the_secret(rodeo):
    for name, secret in (("ours", "our secret"), ("other", "another secret")):
        (rodeo.directory / name).write_text(secret)
        (rodeo.directory / name).chmod(0o600)
    where = f"0.0.0.0:{free_port()}"
    ours = f"emulator.trigger.secret_file={rodeo.directory / 'ours'}"
    with two_emulators(rodeo, where, authority=(ours,), follower=(ours,)):
        done = rodeo(
            *("emulate", EXAMPLE / "follower.toml", "--set", "emulator.name=third"),
            *("--set", f"emulator.trigger.follow={where}"),
            *("--set", f"emulator.trigger.secret_file={rodeo.directory / 'other'}"),
            *("--set", "emulator.card[0].address=0000:5e:01.0"),
            exit_code=5,
        )
        assert "error[trigger.refused]" in done.stderr and "their secrets differ" in done.stderr


def test_who_must_not_follow_is_refused(rodeo):
    process = emulator(rodeo, "authority")
    try:
        until(lambda: status(rodeo, "authority"), "it does not answer")
        done = rodeo("emulate", EXAMPLE / "follower.toml", "--set", "emulator.trigger.system=other", exit_code=5)
        assert "error[trigger.refused]" in done.stderr and "`other`" in done.stderr
        done = rodeo("emulate", EXAMPLE / "follower.toml", "--set", "emulator.card[0].seed=9", exit_code=5)
        assert "seed 9" in done.stderr
        done = rodeo(
            "emulate",
            EXAMPLE / "follower.toml",
            "--set",
            "emulator.name=other",
            "--set",
            "emulator.trigger.follow=",
            "--set",
            "emulator.trigger.serve=two-emulators",
            exit_code=5,
        )
        assert "error[trigger.taken]" in done.stderr
    finally:
        process.terminate()
        process.communicate(timeout=scaled(20))


@pytest.mark.parametrize(
    "settings, what",
    [
        (["emulator.trigger.rate=1kHz"], "belongs to the authority"),
        (["emulator.trigger.serve=x"], "cannot serve"),
        (["emulator.trigger.follow=nowhere:port"], "not a port"),
        (["emulator.trigger.follow=10.0.0.1:7411"], "set emulator.trigger.secret_file"),
        (["emulator.trigger.follow=", "emulator.trigger.serve=0.0.0.0:7411"], "error[transport.no_secret]"),
        (
            ["emulator.trigger.follow=10.0.0.1:7411", "emulator.trigger.secret_file=none"],
            "error[transport.secret_file]",
        ),
    ],
)
def test_keys_that_do_not_fit_are_refused(rodeo, settings, what):
    sets = [argument for one in settings for argument in ("--set", one)]
    done = rodeo("emulate", EXAMPLE / "follower.toml", *sets, exit_code=3)
    assert what in done.stderr


@pytest.mark.parametrize(
    "settings",
    [
        ["mode=full", "link_speed=11Gbps"],
        ["mode=full", "links=24", "link_speed=9.6Gbps"],
        ["elinks_per_link=40", "link_speed=320Mbps"],
        ["link_speed=fast"],
    ],
)
def test_speeds_that_fibres_do_not_have_are_refused(rodeo, settings):
    sets = [argument for one in settings for argument in ("--set", f"emulator.card[0].{one}")]
    done = rodeo("emulate", EXAMPLE / "authority.toml", *sets, exit_code=3)
    assert "error[emulator.bad_card]" in done.stderr and "link_speed" in done.stderr


def test_a_luminosity_block_and_a_scan_step_begin_with_the_next_trigger(rodeo):
    """`rodeo emulate advance`: the answer, the authority's marks, and the message to followers."""
    with two_emulators(rodeo, authority=("emulator.trigger.lumi_block=4",)):
        with rodeo.start("readout", EXAMPLE / "readout.toml", "--seconds", 60) as readout:
            until(lambda: status(rodeo, "authority")["trigger"]["accepted"] > 100, "no trigger comes")
            said = rodeo("emulate", "advance", "--lumi-block", "next", "--scan-step", 7, "--name", "authority").stdout
            first = int(re.fullmatch(r"from trigger (\d+) on: luminosity block 5, scan step 7\n", said)[1])
            until(lambda: status(rodeo, "authority")["trigger"]["accepted"] > first, "no later trigger comes")
            rodeo("emulate", "advance", "--lumi-block", 9, "--name", "authority")
            until(
                lambda: status(rodeo, "authority")["trigger"]["marks"][-1]["lumi_block"] == 9,
                "the third block does not begin",
            )
            marks = status(rodeo, "authority")["trigger"]["marks"]
            until(
                lambda: [each["lumi_block"] for each in status(rodeo, "follower")["trigger"]["marks"]][-1:] == [9],
                "the follower does not get the mark",
            )
            readout.terminate()
            readout.communicate(timeout=scaled(30))
        assert [(each["lumi_block"], each["scan_step"]) for each in marks] == [(4, 0), (5, 7), (9, 7)]
        assert marks[0]["sequence"] == 0 and marks[1]["sequence"] == first < marks[2]["sequence"]
        assert [each["id"] for each in marks] == sorted({each["id"] for each in marks})
        assert (
            "expected next, or a number"
            in rodeo("emulate", "advance", "--lumi-block", "soon", "--name", "authority", exit_code=2).stderr
        )
        assert (
            "follows" in rodeo("emulate", "advance", "--lumi-block", "next", "--name", "follower", exit_code=5).stderr
        )
