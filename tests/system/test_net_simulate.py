"""`rodeo net simulate`: JSON for programs, files on request, and clear errors for impossible settings."""

import csv
import json
import re
import signal
import time

import pytest
from conftest import ROOT, scaled


def simulate(rodeo, *arguments, **options):
    return json.loads(rodeo("net", "simulate", *arguments, "--json", "-", **options).stdout)


def test_the_operating_point_of_the_paper(rodeo):
    out = simulate(rodeo, "--event-size", "5MB", "--rate", "12kHz", "--mtu", 1500, "--duration", "20ms")
    formula = json.loads(
        rodeo(
            "net", "formula", "--event-size", "5MB", "--rate", "12kHz", "--mtu", 1500, "--readouts", 48, "--json", "-"
        ).stdout
    )
    assert out["max_buffer_bytes"] == pytest.approx(formula["exact_bytes"], rel=0.005)
    assert out["max_buffer_payload_bytes"] < out["max_buffer_bytes"] == out["max_buffer_cell_bytes"]
    assert (out["drops"], out["retransmits"], out["timeouts"]) == (0, 0, 0)
    assert out["events_completed"] >= 215
    assert out["virtual_seconds"] == 0.02 and out["cpu_seconds"] > 0 and out["wall_seconds"] > 0
    assert out["packets"]["data"] == 240 * 48 * 72 and out["packets"]["request"] == 240 * 48
    assert 0.45 < out["packets"]["ack"] / out["packet_fates"]["data"]["delivered"] <= 0.5
    for fate in out["packet_fates"].values():
        assert fate["sent"] == fate["delivered"] + fate["dropped"] + fate["in_flight"]


@pytest.mark.slow
@pytest.mark.parametrize("engine, buffer", [("packet", "infinite"), ("packet", "27MB"), ("train", "infinite")])
def test_the_document_says_what_the_simulator_finds(rodeo, engine, buffer):
    """A virtual second gives the same bits on every machine; the times in the table are from one machine."""
    cell = buffer.replace("27MB", "27 MB")
    (said,) = re.findall(
        rf"^\| {engine} \| {cell} \| [^|]* \| ([^|]*) \|$",
        (ROOT / "docs/explanation/network-simulator.md").read_text(),
        re.MULTILINE,
    )
    out = simulate(
        rodeo,
        "--event-size",
        "5MB",
        "--rate",
        "12kHz",
        "--mtu",
        1500,
        "--readouts",
        48,
        "--nodes",
        32,
        "--duration",
        "1s",
        "--engine",
        engine,
        "--buffer",
        buffer,
        timeout=120,
    )
    found = f"{out['drops']:,} drops".replace(",", " ") if out["drops"] else f"{out['max_buffer_bytes'] / 1e6:.2f} MB"
    assert said.startswith(found)


def test_a_shallow_switch_loses_and_the_series_tells_when(rodeo):
    out = simulate(
        rodeo,
        "--buffer",
        "27MB",
        "--arrivals",
        "poisson",
        "--duration",
        "20ms",
        "--engine",
        "train",
        "--occupancy",
        "series.csv",
        "--occupancy-interval",
        "100us",
        "--flows",
        "flows.csv",
    )
    assert out["drops"] > 0 and out["max_buffer_bytes"] <= 27e6
    with open(rodeo.directory / "series.csv") as file:
        series = list(csv.DictReader(file))
    assert len(series) == 200
    assert max(int(row["max_bytes"]) for row in series) == out["max_buffer_bytes"]
    assert sum(int(row["drops"]) for row in series) == out["drops"]
    with open(rodeo.directory / "flows.csv") as file:
        flows = list(csv.DictReader(file))
    assert len(flows) == 48 * 32
    assert sum(int(row["segments_dropped"]) for row in flows) == out["drops"]
    assert sum(int(row["retransmits"]) for row in flows) == out["retransmits"]


def test_a_latency_that_nobody_has_is_none_and_a_slow_readout_is_named(rodeo):
    out = rodeo("net", "simulate", "--duration", "200us", "--readout-service", "1kHz", "--json", "-")
    assert "warning[network.slow_service]: a readout accepts 1000 Hz but gets 12000 Hz" in out.stderr
    found = json.loads(out.stdout)
    assert (
        found["events_completed"] == 0 and [found[f"latency_{one}_us"] for one in ("p50", "p99", "max")] == [None] * 3
    )
    assert "0.000 ms" not in rodeo("net", "simulate", "--duration", "200us").stdout


def test_the_same_seed_gives_the_same_run(rodeo):
    one, again, other = (
        simulate(rodeo, "--arrivals", "poisson", "--engine", "train", "--duration", "10ms", "--seed", seed)["hash"]
        for seed in (1, 1, 2)
    )
    assert one == again != other


def test_every_kernel_of_the_cpu_gives_the_same_run(rodeo):
    found = []
    for level in ("v2", "avx2", "avx512"):  # the command limits the level to that of the CPU
        rodeo.environment["RODEO_CPU_LEVEL"] = level
        for engine in ("packet", "train"):
            found.append(
                simulate(
                    rodeo,
                    "--arrivals",
                    "poisson",
                    "--rate",
                    "8kHz",
                    "--buffer",
                    "27MB",
                    "--engine",
                    engine,
                    "--duration",
                    "10ms",
                )["hash"]
            )
    assert found == found[:2] * 3


def test_a_topology_file_with_flags_over_it(rodeo):
    out = simulate(
        rodeo, "--topology", ROOT / "examples" / "network" / "lab-2023.toml", "--engine", "train", "--rate", "6kHz"
    )
    assert out["event_rate_hz"] == 6000
    assert out["settings"]["arrivals"] == "jittered"
    assert out["events_offered"] >= 100


@pytest.mark.parametrize(
    "arguments, status, code, says",
    [
        (("--rate", "20kHz"), 2, "network.overload", "kHz at most"),
        (("--nodes", 0), 2, "network.zero", "filter nodes"),
        (("--event-size", "0"), 2, "network.zero", "event size"),
        (("--racks", 3), 2, "network.topology", "racks"),
        (("--node-link", "0bps"), 2, "network.zero", "node link"),
        (("--size-sigma", 0.1), 2, "network.size", "spread"),
        (("--size-spread", "normal", "--size-sigma", 2), 2, "network.size", "log-normal"),
        (("--cell", "64B", "--cell-metadata", "64B"), 2, "network.size", "metadata"),
        (("--buffer", "100B"), 2, "network.size", "room"),
        (("--event-size", "5"), 2, "cli.bad_value", "it has no unit"),
        (("--preset", "lab"), 2, "network.unknown_preset", "lab-2023"),
        (("--arrivals", "sometimes"), 2, "network.bad_setting", "poisson"),
        (("--topology", "none.toml"), 3, "config.unreadable", "none.toml"),
        (("--occupancy", "no/such/folder.csv"), 1, "cli.output", "folder.csv"),
    ],
)
def test_what_cannot_be_is_answered_at_once(rodeo, arguments, status, code, says):
    done = rodeo("net", "simulate", *arguments, exit_code=status)
    assert f"error[{code}]" in done.stderr and says in done.stderr
    assert done.stdout == ""


@pytest.mark.parametrize(
    "text, code, says",
    [
        ("[network.topology]\nracks = 3\n", "network.topology", "racks"),
        ("[network.topology]\nnodes = 0\n", "network.zero", "filter nodes"),
        ('[network.traffic]\nrate = "20kHz"\n', "network.overload", "kHz at most"),
        ("[topology]\nnodes = 4\n", "config.missing_key", "[network.topology]"),
        ("[run]\nnumber = 1\n", "config.missing_key", "the file has no [network]"),
    ],
)
def test_a_mistake_in_a_file_is_one_of_the_configuration(rodeo, text, code, says):
    """A wrong value in a file has exit status 3. The same value as an option is a usage error with exit status 2."""
    (rodeo.directory / "network.toml").write_text(text)
    done = rodeo("net", "simulate", "--topology", "network.toml", exit_code=3)
    assert f"error[{code}]" in done.stderr and says in done.stderr
    assert "readout" not in done.stderr


def test_help_speaks_in_units(rodeo):
    text = " ".join(rodeo("net", "simulate", "--help").stdout.split())
    for shown in (
        "--event-size SIZE Payload of a whole event, all readouts together. (default 5 MB)",
        "(default 12 kHz)",
        "(default 25 Gbps)",
        "(default 200 ms)",
        "(default 1 us)",
        "(default 120 s)",
        "--arrivals periodic|jittered|poisson",
    ):
        assert shown in text
    assert "TEXT" not in text


def test_an_interrupted_run_says_how_far_it_came(rodeo):
    with rodeo.start(
        "net", "simulate", "--rate", "1kHz", "--event-size", "100kB", "--duration", "10000s", "--json", "out.json"
    ) as process:
        process.wait_until_it_catches(signal.SIGINT)
        time.sleep(0.1)  # interrupts the simulation while it runs
        process.send_signal(signal.SIGINT)
        talk, said = process.communicate(timeout=scaled(30))
    assert process.returncode == 6
    assert "interrupted after" in said and "of 10000 s of virtual time" in said
    assert "largest buffer" in talk
    out = json.loads((rodeo.directory / "out.json").read_text())
    assert out["complete"] is False and 0 < out["virtual_seconds"] < 10000


def test_the_example_of_the_whole_system_with_fewer_racks(rodeo):
    """Simulates examples/network/hl-lhc.toml with three of its 83 racks and a third of its time. Each event uses the farm's real dispatch."""
    example = (
        "--topology",
        ROOT / "examples" / "network" / "hl-lhc.toml",
        "--nodes",
        96,
        "--racks",
        3,
        "--duration",
        "3ms",
    )
    free, shaped = simulate(rodeo, *example), simulate(rodeo, *example, "--request-credits", 16)
    for out in (free, shaped):
        assert (
            out["drops"] == 0
            and out["events_completed"] > 0
            and out["packets"]["request"] > 600 * out["events_completed"]
        )
    assert shaped["max_buffer_bytes"] < free["max_buffer_bytes"] / 4  # credits exist to keep the buffer small
