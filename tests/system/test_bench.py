"""`rodeo bench`: what it reports is consistent. Nothing here is timed: a measurement of a tenth of a second says nothing about speed."""

import json

import pytest


def bench(rodeo, *arguments):
    return json.loads(rodeo("bench", *arguments, "--seconds", 0.1, "--json", "-").stdout)


@pytest.mark.parametrize("options", [
    ["--links", 24],
    ["--links", 24, "--run-length", 1],
    ["--links", 24, "--source", "blocks"],
    ["--links", 24, "--workers", 2],
    ["--links", 24, "--robs", 2],
    ["--links", 24, "--extractor", "rodeo_per_chunk"],
    ["--links", 24, "--checker", "crc32"],
], ids=lambda options: "_".join(str(word).lstrip("-") for word in options[2:]) or "plain")
def test_a_build_bench_counts_whole_fragments_and_verifies_them(rodeo, options):
    result = bench(rodeo, "build", *options)
    assert result["mismatches"] == 0 and result["incomplete"] == 0 and result["lost"] == 0
    assert result["fragments_per_second"] > 0
    assert result["chunks_per_second"] == pytest.approx(24 * result["fragments_per_second"], rel=0.5)  # two counters, read one after the other while the builder runs
    assert result["payload_bytes_per_second"] == pytest.approx(40 * result["chunks_per_second"])
    assert result["input_bytes"] >= 96 << 20


@pytest.mark.parametrize("verb, option, value", [
    ("build", "--robs", 0), ("build", "--links", 0), ("build", "--chunk-bytes", 0), ("build", "--chunk-bytes", 7), ("build", "--run-length", 0),
    ("build", "--workers", 0), ("build", "--seconds", "nan"), ("build", "--seconds", 0), ("latency", "--links", 0), ("latency", "--seconds", "inf"),
    ("scaling", "--repeat", 0), ("scaling", "--seconds", "nan"), ("scaling", "--links", 0)])
def test_numbers_that_cannot_be_measured_are_refused_by_their_option(rodeo, verb, option, value):
    done = rodeo("bench", verb, option, value, exit_code=2)
    assert "error[cli." in done.stderr and "cli.unexpected" not in done.stderr and option in done.stderr and not done.stdout


def test_the_latency_bench_has_every_fragment_in_its_percentiles(rodeo):
    result = bench(rodeo, "latency", "--rate", "2kHz", "--links", 24)
    assert result["offered_rate_hz"] == 2000 and result["fragments"] > 0
    assert result["incomplete"] == 0 and result["lost"] == 0
    assert 0 < result["latency_p50_us"] <= result["latency_p99_us"] <= result["latency_max_us"]


def test_scaling_compares_neighbouring_runs(rodeo):
    result = json.loads(rodeo("bench", "scaling", "--links", 24, "--repeat", 1, "--seconds", 0.1, "--json", "-").stdout)
    first, *others = result["rows"]
    assert first["workers"] == 1 and first["speedup"] == 1
    for row in others:
        assert row["speedup"] == pytest.approx(row["chunks_per_second"] / first["chunks_per_second"])
        assert row["parallel_fraction"] == pytest.approx(1 - 0.01 * row["assembly_cost"])


def test_scaling_says_when_there_are_too_few_cores(rodeo):
    done = rodeo("bench", "scaling", "--links", 24, "--repeat", 1, "--seconds", 0.1, "--workers", 4096, "--json", "-", exit_code=None)
    if done.returncode == 0:  # there are at most as many workers as links
        assert "S(4096) needs 4096 cores" in json.loads(done.stdout)["note"]
    else:
        assert "workers for 24 links" in done.stderr
