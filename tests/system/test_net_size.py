"""`rodeo net size`: the answer drops nothing over 20 seeds, and nine tenths of it drop packets; the examples; the page."""

import json
import shutil
import sys

import pytest

from conftest import BUILD, ROOT

if not list((BUILD / "python" / "rodeo").glob("_network*.so")):
    pytest.skip(
        "this build has no Python modules (sanitizers, or python3-dev or nanobind is missing)", allow_module_level=True
    )
sys.path.insert(0, str(BUILD / "python"))
from rodeo import network  # noqa: E402
from rodeo.network import executors, report  # noqa: E402
from rodeo.network import size as sizing  # noqa: E402


@pytest.fixture
def size(rodeo):
    rodeo.environment["RODEO_PYTHON"] = sys.executable

    def run(example, *arguments, timeout=60):
        shutil.copy(ROOT / "examples" / "network" / example, rodeo.directory)
        found = json.loads(rodeo("net", "size", example, *arguments, "--json", "-", timeout=timeout).stdout)
        page = (rodeo.directory / "size" / "report.html").read_text()
        assert page.count("<svg") >= 3 and "src=" not in page and f"{found['buffer_bytes'] * 1e-6:.1f} MB" in page
        return found

    return run


def proves_itself(found, settings, engine):
    """Tests the promise independently, with other seeds than the sizing: only drops with the whole buffer count."""
    settings = {**settings, "engine": engine}
    seeds = range(found["proof"]["seeds"][0], found["proof"]["seeds"][1] + 1)
    assert len(seeds) == 20
    assert sum(network.simulate(**settings, buffer=found["buffer_bytes"], seed=seed).drops for seed in seeds) == 0
    assert (
        sum(network.simulate(**settings, buffer=round(0.9 * found["buffer_bytes"]), seed=seed).drops for seed in seeds)
        > 0
    )


def given(found):
    return {
        name: value
        for name, value in found["settings"].items()
        if name not in ("buffer", "seed", "engine", "preset", "switch")
    }


def test_the_answer_holds_and_nine_tenths_of_it_does_not(size):
    found = size("rack.toml", "--set", "network.simulation.duration=5ms")
    assert found["proof"]["proved"] and found["proof"]["tight"] and found["proof"]["nine_tenths_seeds_that_drop"] > 0
    proves_itself(found, given(found), "packet")
    assert found["quantile_bytes"] >= max(found["maxima_bytes"]) and found["buffer_bytes"] == pytest.approx(
        1.03 * found["quantile_bytes"], rel=0.02
    )
    assert found["dominant"] == "assignment"
    assert {row["assumption"] for row in found["assumptions"]} == {
        "arrivals",
        "assignment",
        "size spread",
        "MTU",
        "cells",
        "readouts",
    }
    assert found["switch"]["rate_hz"] > 20e3  # this rack needs far less than 27 MB


def test_a_switch_of_ones_own_is_asked_for_its_rate_and_counts_in_its_cells(size):
    found = size(
        "rack.toml",
        "--set",
        "network.simulation.duration=5ms",
        "--set",
        "network.switch.buffer=3MB",
        "--set",
        "network.switch.cell=256",
        "--set",
        "network.switch.cell_metadata=64",
        "--set",
        "network.size.proof_engine=train",
    )
    assert found["counted_in"] == "cells of the switch" and not found["switch"]["is_example"]
    assert found["proof"]["proved"] and found["proof"]["tight"]
    rate = found["switch"]["rate_hz"]
    settings = {**found["settings"], "engine": "train"}
    assert network.simulate(**{**settings, "rate": rate, "seed": 1}).drops == 0
    assert any(network.simulate(**{**settings, "rate": rate * 1.03, "seed": seed}).drops for seed in range(1, 6))


QUICK = [
    word
    for one in ("simulation.duration=5ms", "size.seeds=10", "size.proof_engine=train")
    for word in ("--set", f"network.{one}")
]


def test_a_network_in_which_nothing_queues_needs_room_for_one_packet(size):
    found = size(
        "rack.toml",
        *QUICK,
        *(
            word
            for one in ("topology.uplink=10Gbps", "topology.nodes=1", "traffic.rate=1kHz", "size.assumptions=false")
            for word in ("--set", f"network.{one}")
        ),
    )
    assert 1514 <= found["buffer_bytes"] < 1.1 * 1514
    assert found["proof"]["proved"] and found["proof"]["tight"] and found["proof"]["one_packet"]


def test_what_the_network_cannot_carry_dominates_nothing(size):
    """At this rate the headers of 600 readouts exceed the uplink."""
    found = size("rack.toml", *QUICK, "--set", "network.traffic.rate=31.5kHz")
    assert ("readouts", "600") in [
        (row["assumption"], row["variant"]) for row in found["assumptions"] if row["ratio"] is None
    ]
    assert found["dominant"] == found["assumptions"][0]["assumption"] and found["assumptions"][0]["ratio"]


def test_nobody_is_sold_more_than_the_bound_and_the_closed_forms_count_as_the_switch(size):
    quick = [
        *QUICK,
        "--set",
        "network.size.assumptions=false",
        "--set",
        "network.traffic.arrivals=poisson",
        "--set",
        "network.simulation.duration=50ms",
    ]
    found = size("rack.toml", *quick, "--set", "network.size.proof_engine=packet")
    bound = found["formula"]["bound_bytes"]
    assert (
        found["at_the_bound"] and found["buffer_bytes"] == pytest.approx(bound, rel=1e-4) and found["proof"]["proved"]
    )
    assert found["seconds_between_runs_with_drops"] is None
    cells = size("rack.toml", *quick, "--set", "network.switch.cell=256", "--set", "network.switch.cell_metadata=64")[
        "formula"
    ]
    # A full frame of 1514 B needs seven cells.
    assert (
        1.15 < cells["exact_bytes"] / found["formula"]["exact_bytes"] < 1.19
        and 1.18 < cells["bound_bytes"] / bound < 1.21
    )
    random = size("rack.toml", *quick, "--set", "network.traffic.assignment=random")
    assert random["formula"]["bound_bytes"] is None and random["formula"]["why_no_bound"] == "none for nodes at random"
    assert 0 < random["seconds_between_runs_with_drops"] <= 0.05 / 0.01 * 1.001
    assert [row["once_a"] for row in random["for_drops"]] == ["hour", "day", "year"]
    sizes = [row["buffer_bytes"] for row in random["for_drops"]]
    assert random["buffer_bytes"] <= sizes[0] <= sizes[1] <= sizes[2]


@pytest.mark.slow
def test_limits_of_a_port_are_part_of_the_answer(size):
    """With a dynamic threshold a port drops while memory is free: the switch needs more memory than it ever holds."""
    quick = [
        word
        for one in ("simulation.duration=5ms", "size.assumptions=false", "size.seeds=10", "size.proof_engine=train")
        for word in ("--set", f"network.{one}")
    ]
    plain = size("rack.toml", *quick)
    limited = size("rack.toml", *quick, "--set", "network.switch.dynamic_threshold=0.5")
    assert (
        limited["buffer_bytes"] > 1.2 * plain["buffer_bytes"]
        and limited["proof"]["proved"]
        and limited["proof"]["tight"]
    )


def test_quantiles_are_those_of_the_distribution_that_made_the_maxima():
    import numpy as np
    from scipy import stats

    gumbel = stats.gumbel_r(100, 5)
    few = gumbel.rvs(400, random_state=1)
    quantile, _ = sizing.distribution(few)
    assert quantile(0.9999) == pytest.approx(gumbel.ppf(0.9999), rel=0.15)
    assert quantile(0.6) == few.max()  # a quantile is never below the largest maximum
    bounded = stats.genextreme(0.6, 100, 5)  # occupancies are bounded, too
    maxima = bounded.rvs(400, random_state=2)
    quantile, how = sizing.distribution(maxima)
    assert "extreme value" in how and maxima.max() <= quantile(0.9999) <= bounded.support()[1] * 1.02
    assert sizing.distribution(np.full(20, 7.0))[0](0.99) == 7.0
    assert sizing.distribution(np.zeros(20))[0](0.99) == 0.0
    assert (
        type(sizing.distribution(few)[0](0.6)) is type(sizing.distribution(few)[0](0.9999)) is float
    )  # the result is written as JSON, which has no other types


@pytest.mark.slow
def test_a_laboratory_of_the_papers_scale_is_sized_and_proved(size):
    found = size("lab-2023.toml", timeout=800)
    assert found["proof"]["proved"] and found["proof"]["tight"]
    proves_itself(found, given(found), "packet")
    # Arrivals with jitter need more than even ones, and at most the bound for any arrivals.
    assert found["formula"]["exact_bytes"] < found["quantile_bytes"] <= found["formula"]["bound_bytes"] * 1.01


def test_how_often_it_drops_begins_with_the_buffer_that_is_bought():
    found = {
        "seconds_between_runs_with_drops": 2.0,
        "at_the_bound": False,
        "margin": 0.1,
        "quantile_bytes": 20_000_000,
        "confidence": 0.99,
        "settings": {"duration": "0.02"},
        "for_drops": [{"once_a": "hour", "buffer_bytes": 30_000_000}, {"once_a": "day", "buffer_bytes": 31_000_000}],
    }
    said = report.how_often(found)
    assert (
        said.startswith("The answer has a margin of 10%. Without it, 20.0 MB") and "about every 2 s of running" in said
    ), said
    assert "30.0 MB" in said and "once an hour" in said and "once a day" in said and "times a day" not in said, said
    assert "never" in report.how_often({**found, "at_the_bound": True})


def test_progress_names_its_phase_and_only_grows_in_it(tmp_path):
    scenario = {
        "readouts": 4,
        "nodes": 4,
        "readout_link": "25Gbps",
        "uplink": "40Gbps",
        "node_link": "10Gbps",
        "event_size": "100kB",
        "rate": "20kHz",
        "duration": "1ms",
    }
    job = {
        "scenario": scenario,
        "size": {
            "seeds": 4,
            "confidence": 0.9,
            "margin": 0.03,
            "proof_seeds": 2,
            "proof_engine": "train",
            "assumptions": False,
        },
    }
    told = []

    def heard(ran, known, ended, all, phase):
        if not told or told[-1][0] != phase:
            told.append((phase, []))
        told[-1][1].append(ended)
        assert ended <= all

    executor = executors.make("local", workers=1)
    try:
        sizing.size(job, tmp_path, executor, heard)
    finally:
        executor.close()
    phases = [phase for phase, _ in told]
    assert len(set(phases)) == len(phases), "no phase comes again"
    assert phases[0] == "need of each seed" and phases[-2:] == [
        "rate that the switch reaches",
        "need at other rates",
    ], phases
    assert all(
        "runs with a buffer of " in phase or phase.startswith("need of the seeds that drop") for phase in phases[1:-2]
    ), phases
    assert all(ended == sorted(ended) for _, ended in told), told
