"""`rodeo bench`: its reports are consistent. No test checks times: a measurement of a tenth of a second says nothing about speed."""

import json
import re
import shutil
import subprocess

import pytest
from conftest import BUILD, scaled

# Every input of the builders. Add new ones of the command here: their checks prove that the builder works.
BUILDS = {
    "gbt, runs": [],
    "gbt, single chunks": ["--run-length", 1],
    "gbt, raw blocks": ["--source", "blocks"],
    "gbt, six cards in one fragment": ["--links", 1152],
    "gbt, two workers": ["--workers", 2],
    "gbt, two ROBs": ["--robs", 2],
    "gbt, plain function per chunk": ["--extractor", "rodeo_per_chunk"],
    "gbt, checked": ["--checker", "crc32"],
    "gbt, fragments kept": ["--retain", "10ms"],
    "gbt, fragments kept, two workers": ["--retain", "5ms", "--retain-rate", "200kHz", "--workers", 2],
    "full, a stream of each link": ["--mode", "full", "--chunk-bytes", 1000],
    "full, one stream": ["--mode", "full", "--groups", 1],
    "full, turns of five": ["--mode", "full", "--links", 15, "--groups", 3, "--workers", 2, "--chunk-bytes", 1000],
    "full, turns of 23": ["--mode", "full", "--links", 23, "--groups", 1, "--chunk-bytes", 200],
    "full, raw blocks in turn": ["--mode", "full", "--source", "blocks", "--groups", 2, "--chunk-bytes", 500],
}


def bench(rodeo, *arguments):
    return json.loads(rodeo("bench", *arguments, "--seconds", 0.01, "--json", "-").stdout)


def verbs_of(rodeo, *command):
    listed = rodeo(*command, "--help").stdout.split("Verbs\n")[1].split("\n\n")[0]
    return set(re.findall(r"^  (\S+)", listed, re.MULTILINE))  # continued texts have a deeper indentation


def test_every_benchmark_has_its_proof_tested(rodeo):
    """Other benchmarks are in test_figures.py, and those of cards in test_card_bench.py."""
    assert verbs_of(rodeo, "bench") == {
        "build",
        "latency",
        "scaling",
        "transport",
        "route",
        "serve",
        "farm",
        "events",
        "statistics",
        "data",
        "figures",
    }
    assert verbs_of(rodeo, "card", "bench") == {"dma", "bar"}
    assert "bench" not in verbs_of(rodeo, "net")
    said = rodeo("bench", "build", "--help").stdout
    words = {str(word) for options in BUILDS.values() for word in options} | {"gbt", "runs"}
    for option in ("--mode", "--source"):
        assert set(re.search(rf"{option} ([a-z|]+)", said).group(1).split("|")) <= words


@pytest.mark.parametrize("options", BUILDS.values(), ids=BUILDS.keys())
def test_a_build_bench_builds_whole_fragments_of_the_right_bytes(rodeo, options):
    result = bench(rodeo, "build", *([] if "--links" in options else ["--links", 24]), *options)
    assert [result[proof] for proof in ("mismatches", "incomplete", "lost", "unaccounted")] == [0, 0, 0, 0], result
    assert (
        result["verified_fragments"] > 0
    )  # each fragment has chunks of all its links; a busy machine may build none in the measured time
    assert result["payload_bytes_per_second"] == pytest.approx(result["chunk_bytes"] * result["chunks_per_second"])
    assert result["input_bytes"] >= 96 << 20


def test_a_bench_whose_fragments_are_not_whole_is_no_measurement(rodeo):
    """Links are up to a run apart: a shorter window closes events before all links have come."""
    done = rodeo(
        "bench",
        "build",
        "--links",
        24,
        "--run-length",
        2000,
        "--window",
        8,
        "--seconds",
        0.01,
        "--json",
        "-",
        exit_code=7,
    )
    assert json.loads(done.stdout)["incomplete"] > 0 and "error[readout.bench_mismatch]" in done.stderr


@pytest.mark.parametrize(
    "verb, option, value",
    [
        ("build", "--robs", 0),
        ("build", "--links", 0),
        ("build", "--chunk-bytes", 0),
        ("build", "--chunk-bytes", 7),
        ("build", "--run-length", 0),
        ("build", "--workers", 0),
        ("build", "--seconds", "nan"),
        ("build", "--seconds", 0),
        ("latency", "--links", 0),
        ("latency", "--seconds", "inf"),
        ("transport", "--links", 0),
        ("transport", "--chunk-bytes", 7),
        ("transport", "--run-length", 0),
        ("transport", "--page-bytes", 100),
        ("transport", "--seconds", "nan"),
        ("route", "--links", 4000),
        ("route", "--subscribed", 193),
        ("route", "--chunk-bytes", 4096),
        ("statistics", "--threads", 0),
        ("statistics", "--links", 2049),
        ("statistics", "--rounds", 0),
        ("statistics", "--seconds", "nan"),
        ("serve", "--fragment-bytes", 7701),
        ("serve", "--fragment-bytes", 8),
        ("serve", "--readouts", 0),
        ("serve", "--nodes", 0),
        ("serve", "--kept", 100),
        ("farm", "--nodes", 0),
        ("farm", "--readouts", 2000),
        ("farm", "--slots", 0),
        ("farm", "--at-once", 0),
        ("farm", "--seconds", "nan"),
        ("serve", "--seconds", "nan"),
        ("build", "--retain", "1000s"),
        ("events", "--readouts", 0),
        ("events", "--nodes", 65),
        ("events", "--fragment-bytes", 7701),
        ("events", "--events", 0),
        ("events", "--workers", 0),
        ("events", "--kept", 100),
        ("events", "--pages", 1),
        ("events", "--credit-bytes", -1),
        ("events", "--seconds", "nan"),
        ("scaling", "--repeat", 0),
        ("scaling", "--seconds", "nan"),
        ("scaling", "--links", 0),
    ],
)
def test_numbers_that_cannot_be_measured_are_refused_by_their_option(rodeo, verb, option, value):
    done = rodeo("bench", verb, option, value, exit_code=2)
    assert (
        "error[cli." in done.stderr
        and "cli.unexpected" not in done.stderr
        and option in done.stderr
        and not done.stdout
    )


@pytest.mark.parametrize(
    "options",
    [
        ["--provider", "tcp"],
        ["--provider", "shm"],
        ["--provider", "tcp", "--links", 1],
        [
            "--provider",
            "tcp",
            "--links",
            3,
            "--chunk-bytes",
            10000,
            "--run-length",
            2,
            "--page-bytes",
            8192,
        ],  # the chunks are larger than a page, so they come in parts
        ["--provider", "shm", "--links", 5, "--chunk-bytes", 61, "--run-length", 7],
    ],
    ids=lambda options: " ".join(map(str, options)),
)
def test_what_the_transport_bench_sends_arrives(rodeo, options):
    result = bench(rodeo, "transport", *options)
    assert [result[proof] for proof in ("mismatches", "lost")] == [0, 0] and result["verified_chunks"] > 0, result
    assert (
        result["payload_efficiency"] == pytest.approx(result["chunk_bytes"] / result["wire_bytes_per_chunk"])
        and result["payload_efficiency"] < 1
    )
    for speed in ("payload", "bare", "socket"):
        assert result[f"{speed}_bytes_per_second"] > 0
    assert 0 < result["latency_p50_us"] <= result["latency_p99_us"] and result["bare_latency_p50_us"] > 0


def test_pages_carry_little_beside_small_chunks(rodeo):
    """192 links take turns with runs of 24 chunks of 40 bytes. A run costs 16 bytes, a page 32. Time does not influence how full pages are here."""
    assert bench(rodeo, "transport")["payload_efficiency"] >= 0.96


@pytest.mark.parametrize(
    "options",
    [["--provider", "tcp"], ["--provider", "shm"], ["--provider", "tcp", "--subscribed", 3]],
    ids=lambda options: " ".join(map(str, options)),
)
def test_what_the_route_bench_publishes_arrives(rodeo, options):
    result = bench(rodeo, "route", "--links", 24, *options)
    assert [result[proof] for proof in ("mismatches", "lost")] == [0, 0] and result["verified_chunks"] > 0, result
    assert (
        result["input_bytes"] >= 96 << 20
        and result["copy_ceiling_bytes_per_second"] > 0
        and result["chunks_per_second"] > 0
    )
    assert ("unwanted_link_cost" in result) == ("--subscribed" in options)


def test_the_farm_bench_assigns_decides_and_clears_each_event_once(rodeo):
    result = bench(rodeo, "farm", "--nodes", 12, "--readouts", 3)
    assert result["mismatches"] == 0, result
    assert result["events"] > 0 and result["assignments_per_core_second"] > 0


@pytest.mark.parametrize(
    "options",
    [
        [],
        ["--readouts", 3, "--nodes", 2, "--kept", 2000],
        ["--fragment-bytes", 16],
        ["--fragment-bytes", 200000, "--page-bytes", 8192, "--kept", 300, "--events", 3],
        ["--provider", "shm", "--readouts", 2],
    ],
    ids=lambda options: " ".join(map(str, options)) or "as by default",
)
def test_what_the_serve_bench_fetches_is_what_was_kept(rodeo, options):
    result = bench(rodeo, "serve", *options)
    assert [result[proof] for proof in ("mismatches", "lost")] == [0, 0] and result["verified_fragments"] > 0, result
    assert result["bytes_per_second"] == pytest.approx(result["fragment_bytes"] * result["fragments_per_second"])
    assert result["events_per_second"] == pytest.approx(result["fragments_per_second"] / result["readouts"])
    assert result["bare_bytes_per_second"] > 0 and result["fragments_per_core_second"] > 0
    assert 0 < result["latency_p50_us"] <= result["latency_p99_us"]


@pytest.mark.parametrize(
    "options",
    [
        ["--readouts", 3, "--nodes", 2, "--events", 4, "--fragment-bytes", 5000],
        [
            "--readouts",
            2,
            "--nodes",
            1,
            "--events",
            2,
            "--fragment-bytes",
            150000,
            "--credit-fragments",
            0,
            "--credit-bytes",
            300000,
        ],  # the fragments are larger than the credit, so they come in pieces
        ["--readouts", 1, "--nodes", 2, "--events", 2, "--fragment-bytes", 16, "--credit-fragments", 0],
    ],
    ids=lambda options: " ".join(map(str, options)),
)
def test_the_events_bench_builds_whole_events_of_the_right_bytes(rodeo, options):
    result = bench(rodeo, "events", "--kept", 64, "--pages", 8, *options)
    assert [result[proof] for proof in ("mismatches", "lost")] == [0, 0], result
    assert result["events"] > 0 and result["verified_fragments"] == result["events"] * result["readouts"]
    assert result["connections"] == result["readouts"] * result["nodes"]
    assert result["bytes_per_second"] == pytest.approx(result["event_bytes"] * result["events_per_second"])
    for speed in ("transport", "bare"):
        assert result[f"{speed}_bytes_per_second"] > 0
    measured = [result] if options[-2:] == ["--credit-fragments", 0] else [result, result["shaped"]]
    assert (result["shaped"] is None) == (len(measured) == 1)
    for rates in measured:
        assert (
            0 < rates["latency_p50_us"] <= rates["latency_p99_us"]
            and rates["latency_p50_us"] <= 1.05 * rates["building_p99_us"]
        )


def test_what_keeping_fragments_costs_stands_beside_a_run_without(rodeo):
    result = bench(rodeo, "build", "--links", 24, "--retain", "10ms")
    assert result["retain_s"] == 0.01 and result["retained_fragments"] == 1000
    assert result["of_without_retain"] == pytest.approx(
        result["chunks_per_core_second"] / result["chunks_per_core_second_without_retain"]
    )


@pytest.mark.parametrize("count", ["run", "chunk"])
def test_every_design_of_statistics_comes_to_what_the_threads_handled(rodeo, count):
    result = bench(rodeo, "statistics", "--links", 24, "--rounds", 2, "--threads", 4, "--count", count)
    designs = {"pull", "push", "central", "queue"}
    assert [row["threads"] for row in result["rows"]] == [1, 2, 4]
    for row in result["rows"]:
        assert row["mismatches"] == 0 and row["verified_chunks"] > 0, (
            row
        )  # each link's chunks, bytes and errors are compared, and their sums
        assert set(row["relative"]) == set(row["cost_upper_limit"]) == set(row["statistics_cpu_share"]) == designs
        assert all(row[design] > 0 for design in designs | {"none"}) and row["central_to_pull"] > 0
    assert {design: result[design] for design in designs | {"none"}} == {
        design: result["rows"][-1][design] for design in designs | {"none"}
    }


def test_both_readers_of_the_data_bench_find_the_same(rodeo):
    if not list((BUILD / "python" / "rodeo").glob("_data*.so")):
        pytest.skip("this build has no Python modules (sanitizers, or python3-dev or nanobind is missing)")
    result = json.loads(
        rodeo("bench", "data", "--events", 30, "--links", 7, "--chunk-bytes", 61, "--rounds", 1, "--json", "-").stdout
    )
    assert result["mismatches"] == 0 and result["verified_chunks"] == 30 * 7 and result["file_bytes"] > 30 * 7 * 61
    for way in ("columns", "columns_and_sums", "checked", "data"):
        assert all(value > 0 for value in result[way].values()) and len(result[way]) == 3
    assert result["event_loop_events_per_core_second"] > 0
    assert not [entry for entry in rodeo.directory.iterdir() if entry.name.startswith("rodeo-bench")]


def test_a_network_that_is_not_there_ends_the_bench_with_its_reason(rodeo):
    done = rodeo("bench", "transport", "--provider", "verbs", "--seconds", 0.01, exit_code=None)
    if done.returncode != 0:  # a machine with such a network passes
        assert "error[transport.provider]" in done.stderr and not done.stdout


def test_the_latency_bench_has_every_fragment_in_its_percentiles(rodeo):
    result = json.loads(
        rodeo("bench", "latency", "--rate", "2kHz", "--links", 24, "--seconds", 0.1, "--json", "-").stdout
    )
    assert result["offered_rate_hz"] == 2000 and result["fragments"] > 0
    assert [result[proof] for proof in ("incomplete", "lost", "unaccounted")] == [0, 0, 0]
    assert 0 < result["latency_p50_us"] <= result["latency_p99_us"] <= result["latency_max_us"]


def test_scaling_compares_neighbouring_runs(rodeo):
    result = json.loads(
        rodeo("bench", "scaling", "--links", 24, "--repeat", 1, "--seconds", 0.01, "--json", "-").stdout
    )
    first, *others = result["rows"]
    assert first["workers"] == 1 and first["speedup"] == 1
    for row in others:
        assert row["speedup"] == pytest.approx(row["chunks_per_second"] / first["chunks_per_second"])
        assert row["parallel_fraction"] == pytest.approx(1 - 0.01 * row["assembly_cost"])


def test_scaling_says_when_there_are_too_few_cores(rodeo):
    done = rodeo(
        "bench",
        "scaling",
        "--links",
        24,
        "--repeat",
        1,
        "--seconds",
        0.01,
        "--workers",
        4096,
        "--json",
        "-",
        exit_code=None,
    )
    if done.returncode == 0:  # a bench has at most as many workers as links
        assert "S(4096) needs 4096 cores" in json.loads(done.stdout)["note"]
    else:
        assert "workers for 24 links" in done.stderr


def test_a_missing_program_is_named_with_the_command_that_builds_it(tmp_path):
    """`./run` builds the command without the measurements."""
    alone = shutil.copy2(BUILD / "rodeo", tmp_path / "rodeo")
    ended = subprocess.run([alone, "bench", "build"], capture_output=True, text=True, timeout=scaled(30))
    assert ended.returncode == 1
    assert "error[cli.program]" in ended.stderr and f"{tmp_path}/rodeo-bench" in ended.stderr
    assert f"ninja -C {tmp_path} rodeo_bench_program" in ended.stderr
