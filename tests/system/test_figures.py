"""`rodeo bench figures`: files and numbers that agree with each other. No test checks times."""

import json
import subprocess
import sys

import pytest

from conftest import BUILD, ROOT

sys.path.insert(0, str(ROOT / "python" / "rodeo"))
import published  # noqa: E402

SPARSE = ["--sparse", "--seconds", 0.02, "--repeat", 1]


@pytest.fixture
def figures(rodeo, tmp_path):
    """Measures and draws some figures; returns the written files."""
    # The tests run in the interpreter of .venv, which has the packages that the script needs.
    rodeo.environment["RODEO_PYTHON"] = sys.executable

    def build(*names):
        only = [word for name in names for word in ("--only", name)]
        done = rodeo("bench", "figures", "build", "--out", tmp_path / "out", *SPARSE, *only, timeout=150)
        for name in names:
            assert (tmp_path / "out" / f"{name}.png").read_bytes().startswith(b"\x89PNG")
            assert "</svg>" in (tmp_path / "out" / f"{name}.svg").read_text()
            assert f"{name}.png" in done.stdout
        data = json.loads((tmp_path / "out" / "figures.json").read_text())
        assert data["machine"]["cores"] >= 1 and set(names) == set(data) - {"machine", "seconds_per_point"}
        return data

    return build


@pytest.fixture(autouse=True)
def with_matplotlib():
    pytest.importorskip("matplotlib")


def test_a_sweep_has_its_ends_and_consistent_rates(figures):
    points = figures("figure6a")["figure6a"]["points"]
    assert [point["chunk_bytes"] for point in points] == [40, 240]
    for point in points:
        assert point["chunks_per_second"] == pytest.approx(point["rate_hz"] * 48, rel=0.5)
        assert point["payload_bytes_per_second"] == pytest.approx(point["chunks_per_second"] * point["chunk_bytes"])


@pytest.mark.slow
def test_rates_and_chunks_of_every_point_agree(figures):
    data = figures("figure4", "figure5", "figure6b")
    for point in data["figure4"]["points"]:
        assert point["chunks_per_second"] == pytest.approx(point["rate_hz"] * 192 * point["cards"], rel=0.5)
    assert {point["cards"] for point in data["figure4"]["points"]} == {1, 6}
    for point in data["figure5"]["points"]:
        assert point["chunks_per_second"] == pytest.approx(point["rate_hz"] * point["streams"], rel=0.5)
    assert {point["streams"] for point in data["figure5"]["points"]} == {1, 24}
    assert {(point["chunk_bytes"], point["links"]) for point in data["figure6b"]["points"]} == {
        (40, 24),
        (40, 192),
        (80, 24),
        (80, 192),
    }
    if data["machine"]["cores"] < 3:
        assert "S(3) needs 3 cores" in data["figure4"]["note"]


def test_table_two_follows_from_its_speed_ups(figures, tmp_path):
    data = figures("table2")
    first, *others = data["table2"]["points"]
    assert first["workers"] == 1 and first["speedup"] == 1
    for point in others:
        n = point["workers"]
        assert point["assembly_cost"] == pytest.approx((n / point["speedup"] - 1) / (0.01 * (n - 1)))
        assert point["parallel_fraction"] == pytest.approx(1 - 0.01 * point["assembly_cost"])
    assert "1.86" in (tmp_path / "out" / "table2.txt").read_text()


@pytest.mark.skipif(not (BUILD / "bench" / "bench_ablations").exists(), reason="this tree has no benchmarks")
def test_every_ablation_is_measured_with_its_ceiling(figures):
    data = figures("ablations")
    variants = {}
    for point in data["ablations"]["points"]:
        assert point["per_core_second"] > 0
        variants.setdefault(point["experiment"], set()).add(point["variant"])
    assert variants.keys() == {"ring_index", "next_consumer", "slice_memory", "assembly"}
    assert all({"ours", "ceiling"} < names for names in variants.values())


def test_every_design_of_statistics_is_drawn_beside_the_slides(rodeo, tmp_path):
    rodeo.environment["RODEO_PYTHON"] = sys.executable
    done = rodeo("bench", "figures", "statistics", "--out", tmp_path, "--sparse", "--seconds", 0.01)
    assert (tmp_path / "statistics.png").read_bytes().startswith(b"\x89PNG") and "statistics.png" in done.stdout
    points = json.loads((tmp_path / "figures.json").read_text())["statistics"]["points"]
    assert {(point["count"], point["threads"], point["design"]) for point in points} == {
        (count, 1, design) for count in ("chunk", "run") for design in published.STATISTICS_TO_QUEUE
    }
    assert all(point["relative"] > 0 and point["chunks_per_second"] > 0 for point in points)


def test_the_published_numbers_agree_with_the_papers_formulas():
    for n, (speedup, cost, fraction) in published.TABLE2.items():
        assert (n / speedup - 1) / (0.01 * (n - 1)) == pytest.approx(cost, abs=0.1)
        assert 1 - 0.01 * cost == pytest.approx(fraction, abs=0.001)
        by_cards = published.SPEEDUP_BY_CARDS[n].values()
        assert sum(by_cards) / len(by_cards) == pytest.approx(speedup, abs=0.01)
    assert (
        max(published.STATISTICS_TO_QUEUE.values()) * published.STATISTICS_OF_NONE < 1
    )  # even the best design is slower than no statistics
    assert published.SIX_CARDS_RATE_HZ < published.network_limit_hz(6) < published.network_limit_hz(6, 0)
    assert published.ONE_STREAM_RATE_HZ < published.full_mode_network_limit_hz(1)


def test_a_python_that_cannot_draw_is_named_before_anything_is_measured(rodeo, tmp_path):
    rodeo.environment["RODEO_PYTHON"] = "/bin/false"
    done = rodeo("bench", "figures", "build", "--out", tmp_path / "out", exit_code=1)
    assert "cli.figures" in done.stderr and "RODEO_PYTHON" in done.stderr
    assert not (tmp_path / "out").exists()


def test_an_unknown_figure_is_a_usage_error(rodeo, tmp_path):
    rodeo.environment["RODEO_PYTHON"] = sys.executable
    assert (
        "figure7"
        in rodeo("bench", "figures", "build", "--only", "figure7", "--out", tmp_path / "out", exit_code=2).stderr
    )


def test_the_chain_over_the_network_is_drawn_with_the_lines_of_equation_five(rodeo, tmp_path):
    rodeo.environment["RODEO_PYTHON"] = sys.executable
    done = rodeo("bench", "figures", "chain", "--out", tmp_path / "out", "--sparse", "--seconds", 0.3, timeout=150)
    data = json.loads((tmp_path / "out" / "figures.json").read_text())
    for name, what, ends in (("chain4", "cards", [1, 6]), ("chain5", "streams", [1, 24])):
        assert (tmp_path / "out" / f"{name}.png").read_bytes().startswith(b"\x89PNG") and f"{name}.png" in done.stdout
        assert [point[what] for point in data[name]["points"]] == ends
        assert all(
            point["rate_hz"] > 0 and point["fragments"] > 0 and point["cpu_seconds"]["router"] > 0
            for point in data[name]["points"]
        )
        assert data[name]["network"]["bare_bytes_per_second"] > 0
    assert 40 < data["chain4"]["network"]["wire_bytes_per_chunk"] <= 41
    for point in data["chain4"]["points"]:
        assert point["chunks_per_second"] == pytest.approx(192 * point["cards"] * point["rate_hz"], rel=0.2)
    assert published.link_limit_hz(91.3e9, 6, 52) == published.network_limit_hz(6)
