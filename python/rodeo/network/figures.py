"""`rodeo net figures`: remakes Figures 3 to 6 of the network paper with three methods, and a table that compares them with the paper's values.

The paper's text does not list the sizes and rates of its pictures. This module chooses them within the stated ranges of 1 to 8 MB and 1 to
20 kHz. It simulates three assumptions on traffic, because the paper does not give its distributions.
"""

import json
import os
import platform
import sys
import time
from pathlib import Path

import numpy as np

from rodeo.saying import say

from . import executors, fit, plots, published, search
from .closed_forms import formula, highest_rate
from .journal import Journal, write_parquet
from .methods import METHODS, Task
from .runner import Progress, Runner

# The paper's switches count 256-byte cells; 64 bytes of a packet's first cell are metadata (Juniper, "QFX5K-Series Switches Packet
# Buffer Architecture", 2025). One run counts both frames and cells.
LABORATORY = {"preset": "lab-2023", "mtu": 1500, "cell": 256, "cell_metadata": 64, "engine": "train"}
TRAFFIC = {
    "even": {"arrivals": "periodic"},
    "scatter": {"arrivals": "jittered", "jitter_periods": 0.5, "size_spread": "normal", "size_sigma": 0.1},
    "Poisson": {"arrivals": "poisson"},
}
PANEL_RATES, PANEL_SIZES = (1.8, 6.0, 12.0), (1.0, 2.5, 5.0)


class Plan:
    """The runs to do. --quick gives a first look, not a measurement."""

    def __init__(self, quick):
        self.sizes = [1, 2.5, 5] if quick else [1, 1.5, 2, 2.5, 3, 4, 5, 6, 8]
        self.rates = [1.8, 6, 12] if quick else [1, 1.8, 3, 4, 6, 8, 10, 12, 14.2, 16, 18]
        self.seeds = range(1, 3 if quick else 9)
        self.duration = 0.01 if quick else 0.1
        self.target_duration = 0.02 if quick else 1.0
        self.target_seeds = self.seeds if quick else range(1, 6)
        self.reach_sizes = [2.5, 5] if quick else [2, 2.5, 3, 4, 5, 6, 8]
        self.reach_seeds = range(1, 3 if quick else 5)
        self.tolerance = 0.05 if quick else 0.02
        self.laboratory_sizes = [1, 5] if quick else [1, 2.5, 5]
        self.laboratory_rates = [1.8, 6] if quick else [1.8, 4, 6, 12]
        self.laboratory_traffic = ["even"] if quick else ["even", "scatter"]
        self.laboratory_reach = [] if quick else [5]
        self.laboratory_reach_seeds = range(1, 4)
        self.laboratory_seeds = range(1, 2 if quick else 4)
        self.laboratory_duration = 1 if quick else 2


def point(size_mb, rate_khz, **more):
    return {**LABORATORY, "event_size": round(size_mb * 1e6), "rate": round(rate_khz * 1e3), **more}


def carries(size_mb, rate_khz):
    """Whether the 800 Gb/s carry this load, headers included."""
    return size_mb * 1e6 * rate_khz * 1e3 * 8 * 1514 / 1448 < 0.995 * 800e9


def simulate_grid(runner, plan):
    grid = [
        (size, rate, traffic, seed)
        for size in plan.sizes
        for rate in plan.rates
        if carries(size, rate)
        for traffic in TRAFFIC
        for seed in (plan.seeds if traffic != "even" else plan.seeds[:1])
    ]
    found = runner.all(
        [
            Task("simulation", point(size, rate, **TRAFFIC[traffic], seed=seed, duration=plan.duration))
            for size, rate, traffic, seed in grid
        ]
    )
    return [
        {
            "size_mb": size,
            "rate_khz": rate,
            "traffic": traffic,
            "seed": seed,
            "frames_mb": one["max_buffer_bytes"] * 1e-6,
            "cells_mb": one["max_buffer_cell_bytes"] * 1e-6,
        }
        for (size, rate, traffic, seed), one in zip(grid, found)
    ]


def simulate_target(runner, plan):
    """The operating point with 48 and 600 readouts."""
    rows = []
    cases = [
        (readouts, traffic, seed)
        for readouts in (48, 600)
        for traffic in TRAFFIC
        for seed in (plan.target_seeds if traffic != "even" else plan.target_seeds[:1])
    ]
    found = runner.all(
        [
            Task(
                "simulation",
                point(
                    published.EVENT_SIZE_MB,
                    published.RATE_KHZ,
                    **TRAFFIC[traffic],
                    seed=seed,
                    duration=plan.target_duration,
                    **({"preset": "hl-lhc"} if readouts == 600 else {}),
                ),
            )
            for readouts, traffic, seed in cases
        ]
    )
    for (readouts, traffic, seed), one in zip(cases, found):
        rows.append(
            {
                "readouts": readouts,
                "traffic": traffic,
                "seed": seed,
                "frames_mb": one["max_buffer_bytes"] * 1e-6,
                "cells_mb": one["max_buffer_cell_bytes"] * 1e-6,
                "payload_mb": one["max_buffer_payload_bytes"] * 1e-6,
            }
        )
    return rows


def simulate_reach(runner, plan):
    """Figure 3: the highest rate without drops, by seed."""
    sequences = {}
    for size in plan.reach_sizes:
        # The upper limit is the rate with even intervals and without cells.
        ideal = highest_rate(
            (published.SHALLOW_SHARED_MB + published.SHALLOW_DEDICATED_MB) * 1e6, size * 1e6, mtu=1500, readouts=48
        )
        limit = min(800e9 / 8 / (size * 1e6) * 1448 / 1514 * 0.995, ideal)
        for traffic in TRAFFIC:
            for seed in plan.reach_seeds if traffic != "even" else plan.reach_seeds[:1]:
                task = Task(
                    "simulation",
                    {**point(size, 1, **TRAFFIC[traffic], seed=seed, duration=plan.duration), "switch": "qfx5120"},
                )
                sequences[size, traffic, seed] = search.bisect(task, "rate", 100, limit, plan.tolerance)
    return [
        {"size_mb": size, "traffic": traffic, "seed": seed, "rate_khz": None if one.good is None else one.good * 1e-3}
        for (size, traffic, seed), one in runner.drive(sequences).items()
    ]


def measure_grid(runner, plan):
    """The laboratory with an infinite buffer: its largest occupancy in frames and in cells. Runs with even intervals are repeated, too, because
    runs of real TCP differ."""
    cases = [
        (size, rate, traffic, seed)
        for size in plan.laboratory_sizes
        for rate in plan.laboratory_rates
        if carries(size, rate)
        for traffic in plan.laboratory_traffic
        for seed in plan.laboratory_seeds
    ]
    found = runner.all(
        [
            Task("laboratory", laboratory_settings(size, rate, traffic, seed, plan))
            for size, rate, traffic, seed in cases
        ]
    )
    return [
        {
            "size_mb": size,
            "rate_khz": rate,
            "traffic": traffic,
            "seed": seed,
            "failed": one.get("failed"),
            "vetoes": one.get("vetoes"),
            "frames_mb": one["max_buffer_bytes"] * 1e-6 if "max_buffer_bytes" in one else None,
            "cells_mb": one["max_buffer_cell_bytes"] * 1e-6 if "max_buffer_cell_bytes" in one else None,
        }
        for (size, rate, traffic, seed), one in zip(cases, found)
    ]


def laboratory_settings(size, rate, traffic, seed, plan):
    return {
        "preset": "lab-2023",
        "event_size": round(size * 1e6),
        "rate": round(rate * 1e3),
        "cell": LABORATORY["cell"],
        "cell_metadata": LABORATORY["cell_metadata"],
        **TRAFFIC[traffic],
        "seed": seed,
        "duration": plan.laboratory_duration,
    }


def measure_reach(runner, plan):
    """Figure 3 by bisection: the laboratory's switch has the settings of the simulated QFX5120, scaled down like the events."""
    rows = []
    for size in plan.laboratory_reach:
        limit = min(800e9 / 8 / (size * 1e6) * 0.85, 2 * highest_rate(published.SHALLOW_SHARED_MB * 1e6, size * 1e6))
        for seed in plan.laboratory_reach_seeds:
            task = Task("laboratory", {**laboratory_settings(size, 1, "even", seed, plan), "switch": "qfx5120"})
            try:
                one = runner.drive({size: search.bisect(task, "rate", 1000, limit, 0.05)})[size]
                rows.append({"size_mb": size, "seed": seed, "rate_khz": None if one.good is None else one.good * 1e-3})
            except RuntimeError as failed:
                say(f"laboratory, {size} MB: {failed}")
    return rows


def forms(size, rate):
    """The paper's formula with headers for MTU 1500, as in LABORATORY."""
    return formula(size * 1e6, rate * 1e3, mtu=1500, readouts=48)


def statistics(rows, value, **wanted):
    """Returns (mean, standard deviation, number) of a column over the rows that have these values."""
    values = [
        row[value] for row in rows if row.get(value) is not None and all(row[key] == one for key, one in wanted.items())
    ]
    return (
        (float(np.mean(values)), float(np.std(values, ddof=1)) if len(values) > 1 else 0.0, len(values))
        if values
        else None
    )


def fit_reachable(grid, column, traffic):
    """The paper's method for 71 MB: a surface through points that fit the shallow switch, extrapolated to the operating point."""
    chosen = {}
    for row in grid:
        if row["traffic"] == traffic:
            chosen.setdefault((row["size_mb"], row["rate_khz"]), []).append(row[column])
    points = [
        (
            size,
            rate,
            np.mean(values),
            max(np.std(values, ddof=1) / len(values) ** 0.5 if len(values) > 1 else 0, 0.01 * np.mean(values)),
        )
        for (size, rate), values in chosen.items()
        if np.mean(values) <= published.SHALLOW_SHARED_MB
    ]
    try:
        return fit.extrapolate(
            tuple(np.array(column_) for column_ in zip(*points)), published.EVENT_SIZE_MB, published.RATE_KHZ
        ), len(points)
    except ValueError as refused:
        say(f"fit: {refused}")
        return None, len(points)


# Pictures

TRAFFIC_COLOURS = {"even": "#0072b2", "scatter": "#e69f00", "Poisson": "#cc79a7"}


def draw_figure3(data, path):
    figure, (ax,) = plots.canvas(size=(6.2, 4))
    sizes = np.linspace(0.7, 8.5, 150)
    ax.plot(
        sizes,
        [800e9 / 8 / (size * 1e6) * 1448 / 1514 * 1e-3 for size in sizes],
        ":",
        color="#888888",
        label="uplink full: 800 Gb/s with headers",
    )
    held = [
        (size, highest_rate(published.SHALLOW_SHARED_MB * 1e6, size * 1e6, mtu=1500, readouts=48)) for size in sizes
    ]
    ax.plot(
        [size for size, rate in held if rate],
        [rate * 1e-3 for _, rate in held if rate],
        color=plots.COLOURS["formula"],
        label="exact formula, 27 MB",
    )
    for traffic, marker in zip(TRAFFIC, "o^s"):
        _bars(
            ax,
            data.get("reach", []),
            "rate_khz",
            TRAFFIC_COLOURS[traffic],
            f"simulation, QFX5120, {traffic}",
            marker,
            traffic=traffic,
        )
    _bars(
        ax,
        data.get("laboratory_reach", []),
        "rate_khz",
        plots.COLOURS["laboratory"],
        "laboratory, scaled down,\nQFX5120, even",
        "D",
    )
    ax.plot(
        [5],
        [published.DEEP_RATE_KHZ],
        "D",
        mfc="white",
        color=plots.COLOURS["paper"],
        label="paper: ACX at 5 MB\n(applications are the limit)",
    )
    ax.plot(
        [5], [published.SHALLOW_RATE_KHZ], "v", mfc="white", color=plots.COLOURS["paper"], label="paper: QFX at 5 MB"
    )
    ax.plot(
        [published.SHALLOW_SIZE_AT_TARGET_MB],
        [12],
        "<",
        mfc="white",
        color=plots.COLOURS["paper"],
        label="paper: QFX below 2.5 MB at 12 kHz",
    )
    ax.axhline(12, color="#cccccc", linestyle="--", linewidth=0.8)
    ax.axvline(5, color="#cccccc", linestyle="--", linewidth=0.8)
    ax.set_xlabel("event size [MB]")
    ax.set_ylabel("highest rate without drops [kHz]")
    ax.set_ylim(0, 25)
    ax.set_xlim(0.5, 8.6)
    ax.set_title("Figure 3: what a shallow and a deep buffer carry", fontsize=10)
    plots.legend_beside(ax, fontsize=7.5)
    plots.save(figure, path)


def _bars(ax, rows, value, colour, label, marker="o", x="size_mb", scale=1.0, face=None, **wanted):
    """Draws means with standard deviations."""
    xs = sorted({row[x] for row in rows if all(row[key] == one for key, one in wanted.items())})
    found = [(one, statistics(rows, value, **{x: one}, **wanted)) for one in xs]
    found = [(one, s) for one, s in found if s]
    if found:
        ax.errorbar(
            [one for one, _ in found],
            [s[0] * scale for _, s in found],
            [s[1] * scale for _, s in found],
            fmt=marker,
            markersize=4,
            capsize=2,
            color=colour,
            label=label,
            mfc=face,
            linestyle="none",
        )


def _panel(ax, data, fixed, value, other):
    """Draws one panel of Figures 4 and 5: buffer against event size or rate."""
    xs = np.linspace(0.8, 8 if other == "size_mb" else 20, 160)
    pairs = [(x, value) if other == "size_mb" else (value, x) for x in xs]
    pairs = [(pair, x) for pair, x in zip(pairs, xs) if carries(*pair)]
    ax.plot(
        [x for _, x in pairs],
        [forms(*pair).exact_bytes * 1e-6 for pair, _ in pairs],
        color=plots.COLOURS["formula"],
        label="exact formula, frames",
    )
    ax.plot(
        [x for _, x in pairs],
        [max(0, formula(pair[0] * 1e6, pair[1] * 1e3).k_bytes) * 1e-6 for pair, _ in pairs],
        color=plots.COLOURS["formula"],
        linestyle="--",
        label="paper's formula x 1.5",
    )
    grid = data.get("grid", [])
    for traffic, marker in zip(TRAFFIC, "o^s"):
        _bars(
            ax,
            grid,
            "cells_mb",
            TRAFFIC_COLOURS[traffic],
            f"simulation, {traffic}, in cells",
            marker,
            x=other,
            traffic=traffic,
            **{fixed: value},
        )
    for traffic, face in zip(TRAFFIC, (None, "white")):
        _bars(
            ax,
            data.get("laboratory", []),
            "cells_mb",
            plots.COLOURS["laboratory"],
            f"laboratory, {traffic}, in cells",
            "D",
            x=other,
            face=face,
            traffic=traffic,
            **{fixed: value},
        )
    ax.axhline(published.SHALLOW_SHARED_MB, color="#999999", linewidth=0.8, linestyle=":")
    ax.set_ylim(bottom=0)
    ax.set_ylabel("buffer without drops [MB]")


def draw_figure4(data, path):
    figure, axes = plots.canvas(1, 3, (12, 3.8))
    for ax, rate in zip(axes, PANEL_RATES):
        _panel(ax, data, "rate_khz", rate, "size_mb")
        ax.set_title(f"{rate:g} kHz", fontsize=10)
        ax.set_xlabel("event size [MB]")
    figure.suptitle("Figure 4: smallest buffer against event size (dotted: the 27 MB of the QFX)", fontsize=10)
    figure.tight_layout()
    plots.legend_below(figure, axes[0], 3)
    plots.save(figure, path)


def draw_figure5(data, path):
    figure, axes = plots.canvas(1, 3, (12, 3.8))
    for ax, size in zip(axes, PANEL_SIZES):
        _panel(ax, data, "size_mb", size, "rate_khz")
        ax.set_title(f"{size:g} MB", fontsize=10)
        ax.set_xlabel("event rate [kHz]")
    figure.suptitle("Figure 5: smallest buffer against event rate (dotted: the 27 MB of the QFX)", fontsize=10)
    figure.tight_layout()
    plots.legend_below(figure, axes[0], 3)
    plots.save(figure, path)


def draw_figure6(data, path):
    figure, (ax,) = plots.canvas(size=(7.4, 4.8))
    grid = data.get("grid", [])
    shown = [size for size in (1, 2.5, 4, 5, 6, 8) if any(row["size_mb"] == size for row in grid)] or list(PANEL_SIZES)
    surface = data.get("surface")
    for colour, size in zip(plots.OTHERS, shown):
        rates = [rate for rate in np.linspace(0.5, 20, 100) if carries(size, rate)]
        ax.plot(rates, [forms(size, rate).exact_bytes * 1e-6 for rate in rates], color=colour, linewidth=1)
        if surface is not None:
            ax.plot(
                rates, surface(np.full(len(rates), size), np.array(rates)), color=colour, linewidth=0.9, linestyle="--"
            )
        _bars(ax, grid, "cells_mb", colour, None, "o", x="rate_khz", size_mb=size, traffic="scatter")
        _bars(
            ax,
            data.get("laboratory", []),
            "cells_mb",
            colour,
            None,
            "D",
            x="rate_khz",
            size_mb=size,
            traffic="scatter",
            face="white",
        )
    for (value, error), name, marker, shift in (
        (published.FIT_MB, "paper: fit", "v", -0.15),
        (published.SIMULATION_48_MB, "paper: simulation, 48 readouts", "s", 0),
        (published.SIMULATION_600_MB, "paper: simulation, 600 readouts", "^", 0.15),
    ):
        ax.errorbar(
            [published.RATE_KHZ + shift],
            [value],
            [error],
            fmt=marker,
            mfc="white",
            color="black",
            capsize=2,
            markersize=6,
            zorder=5,
            label=f"{name}: {value:g} ± {error:g} MB",
        )
    ax.set_xlabel("event rate [kHz]")
    ax.set_ylabel("buffer without drops [MB]")
    ax.set_ylim(0, 200)
    ax.set_title("Figure 6: the operating point, 5 MB at 12 kHz, by extrapolation and directly", fontsize=10)
    grey = "#555555"
    kinds = [
        ax.plot([], [], color=grey, linewidth=1, label="exact formula, frames")[0],
        ax.plot(
            [], [], color=grey, linewidth=0.9, linestyle="--", label="surface through simulated\npoints that 27 MB hold"
        )[0],
        ax.plot([], [], "o", color=grey, markersize=4, label="simulation, scatter, in cells")[0],
        ax.plot([], [], "D", color=grey, mfc="white", markersize=4, label="laboratory, scaled down, scatter, in cells")[
            0
        ],
    ]
    sizes = [
        ax.plot([], [], color=colour, linewidth=3, label=f"{size:g} MB")[0] for colour, size in zip(plots.OTHERS, shown)
    ][::-1]
    published_points = [one for one in ax.get_legend_handles_labels()[0] if one not in kinds + sizes]
    plots.legend_beside(ax, handles=[*sizes, *kinds, *published_points], fontsize=7.5)
    plots.save(figure, path)


# Table


def _text(s):
    return "-" if s is None else f"{s[0]:.1f} ± {s[1]:.1f}" if s[2] > 1 else f"{s[0]:.1f}"


def _difference(ours, theirs):
    return "-" if ours is None else f"{(ours / theirs - 1):+.0%}"


def table(data):
    """Rows (quantity, our value, the paper's value, difference, explanation)."""
    size, rate = published.EVENT_SIZE_MB, published.RATE_KHZ
    rows = []

    def add(what, ours, theirs, error, explanation):
        value = ours if isinstance(ours, (int, float)) or ours is None else ours[0]
        text = "-" if ours is None else f"{ours:.1f}" if isinstance(ours, (int, float)) else _text(ours)
        rows.append(
            (what, text, f"{theirs:g}" + (f" ± {error:g}" if error else ""), _difference(value, theirs), explanation)
        )

    bare = formula(size * 1e6, rate * 1e3)
    add(
        "71 MB: published formula × k = 1.5, 5 MB without headers [MB]",
        bare.k_bytes * 1e-6,
        *published.FIT_MB,
        "the paper quotes its fit; its own formula with its own k gives the same value",
    )
    extrapolated, count = data.get("fit", (None, 0))
    if extrapolated is not None:
        add(
            "71 MB: surface through simulated points that 27 MB hold (scatter, cells), extrapolated [MB]",
            (extrapolated.value, float(np.hypot(extrapolated.statistical, extrapolated.model)), 2),
            *published.FIT_MB,
            f"the paper's way, {count} points; ± {extrapolated.statistical:.1f} statistical, ± {extrapolated.model:.1f} by the choice of surface; the paper's ± 1 omits the second",
        )
    if data.get("laboratory_fit"):
        one, points = data["laboratory_fit"]
        add(
            "71 MB: the same through laboratory points (scatter, cells) [MB]",
            (one.value, float(np.hypot(one.statistical, one.model)), 2),
            *published.FIT_MB,
            f"{points} points of real TCP, scaled down, three runs each; our scatter, not the paper's",
        )
    target = data.get("target", [])
    explanations = {
        "even": "no scatter: the formula with headers",
        "scatter": "jitter of half a period, sizes ± 10 %: an assumption, because the paper does not give its distributions",
        "Poisson": "random arrivals reach the bound for any arrivals of one size (81.0 MB in frames, 95.9 MB in cells); traffic of one size needs more only with another factor",
    }
    for readouts, theirs in ((48, published.SIMULATION_48_MB), (600, published.SIMULATION_600_MB)):
        for traffic in TRAFFIC:
            found = statistics(target, "cells_mb", readouts=readouts, traffic=traffic)
            if found:
                frames = statistics(target, "frames_mb", readouts=readouts, traffic=traffic)
                add(
                    f"{theirs[0]:g} MB: simulation, {readouts} readouts, {traffic}, in cells [MB]",
                    found,
                    *theirs,
                    f"{explanations[traffic]}; this result in frames: {frames[0]:.1f} MB",
                )
        found = statistics(target, "payload_mb", readouts=readouts, traffic="Poisson")
        if found:
            add(
                f"{theirs[0]:g} MB: simulation, {readouts} readouts, Poisson, payload × k = 1.5 [MB]",
                (found[0] * published.K, found[1] * published.K, found[2]),
                *theirs,
                "assumes that the paper's values include k and that its traffic is as random; the text does not say so",
            )
    add(
        "115 MB: bound for any arrivals × 1.5 [MB]",
        bare.bound_bytes * 1.5e-6,
        *published.SIMULATION_600_MB,
        "S(I/O - 1)/2 × k: the published simulation is this bound with k applied, within its error (our inference, not the paper's)",
    )
    for traffic, explanation in (
        ("even", "even intervals, real TCP; the exact formula with headers gives 51.8 MB in frames"),
        ("scatter", "the same scatter as simulated, real TCP"),
    ):
        found = statistics(data.get("laboratory", []), "cells_mb", size_mb=size, rate_khz=rate, traffic=traffic)
        if found:
            frames = statistics(data["laboratory"], "frames_mb", size_mb=size, rate_khz=rate, traffic=traffic)
            add(
                f"71 to 115 MB: laboratory at the operating point itself, scaled down, {traffic}, in cells [MB]",
                found,
                *published.FIT_MB,
                f"{explanation}; this result in frames: {frames[0]:.1f} MB",
            )
    reach = data.get("reach", [])
    for traffic in TRAFFIC:
        found = statistics(reach, "rate_khz", size_mb=5, traffic=traffic)
        if found:
            add(
                f"Figure 3: QFX at 5 MB, simulation, {traffic} [kHz]",
                found,
                published.SHALLOW_RATE_KHZ,
                0,
                "27 MB shared and 0.1 MB of each port, in cells; any port may use all free memory",
            )
    add(
        "Figure 3: QFX at 5 MB, exact formula, 27 MB, with headers [kHz]",
        highest_rate(27e6, 5e6, mtu=1500, readouts=48) * 1e-3,
        published.SHALLOW_RATE_KHZ,
        0,
        "even intervals, frames, no limit of a port. At the paper's 1.8 kHz the formula gives 9 MB, and 13 MB with k = 1.5: less than the 27 MB of the switch. So a port limit or random arrivals must contribute",
    )
    found = statistics(data.get("laboratory_reach", []), "rate_khz", size_mb=5)
    if found:
        add(
            "Figure 3: QFX at 5 MB, laboratory, even [kHz]",
            found,
            published.SHALLOW_RATE_KHZ,
            0,
            "real TCP through the same switch as simulated, scaled down",
        )
    add(
        "Figure 3: deep buffer at 5 MB: uplink full, with headers [kHz]",
        800e9 / 8 / 5e6 * 1448 / 1514 * 1e-3,
        published.DEEP_RATE_KHZ,
        0,
        "the paper's applications and servers limit its rate; they are not modelled",
    )
    grid = data.get("grid", [])
    for traffic in ("scatter", "Poisson"):
        found = statistics(grid, "cells_mb", size_mb=2.5, rate_khz=12, traffic=traffic)
        if found:
            add(
                f"QFX at 12 kHz carries up to 2.5 MB: buffer needed there, {traffic}, in cells [MB]",
                found,
                published.SHALLOW_SHARED_MB,
                0,
                "should be the QFX's memory",
            )
    ratios = []
    for row in grid:
        if row["traffic"] == "scatter":
            paper = formula(row["size_mb"] * 1e6, row["rate_khz"] * 1e3)
            if paper.paper_events > 6:
                ratios.append(row["cells_mb"] / (paper.paper_bytes * 1e-6))
    if ratios:
        add(
            "k: simulation (scatter, cells) / formula without headers, N > 6",
            (float(np.mean(ratios)), float(np.std(ratios)), len(ratios)),
            published.K,
            0,
            "headers 1.05, cells 1.18, and scatter of arrivals and sizes: no unknown property of the switch is needed (the MTU of 1500 is our assumption)",
        )
    if extrapolated is not None:
        rows.append(
            (
                "R² of the surface",
                f"{data['surface'].r2:.4f}",
                f"{published.FIT_R2:g}",
                "-",
                "the shape fits: linear in rate, quadratic in size",
            )
        )
    return rows


def markdown(rows):
    head = "| quantity | Rodeo | paper | difference | explanation |\n|---|---|---|---|---|\n"
    return head + "".join("| " + " | ".join(row) + " |\n" for row in rows)


def main(arguments):
    methods = [one for one in arguments.methods.split(",") if one]
    for one in methods:
        if one not in METHODS:
            say(f"error[cli.bad_value]: --methods: there is no method {one}\n  use some of {', '.join(METHODS)}")
            return 2
    plan, out = Plan(arguments.quick), Path(arguments.out)
    out.mkdir(parents=True, exist_ok=True)
    left_out = []
    if "laboratory" in methods and os.geteuid() != 0:
        left_out.append("laboratory: it needs root")
        say("the laboratory is left out: it needs root")
    started = time.time()
    data = {}
    executor = executors.make("local", workers=arguments.workers)
    try:
        with Journal(out / "journal.sqlite", os.environ.get("RODEO_REVISION", "")) as journal:
            runner = Runner(journal, executor, Progress())
            if "simulation" in methods:
                data |= {
                    "grid": simulate_grid(runner, plan),
                    "target": simulate_target(runner, plan),
                    "reach": simulate_reach(runner, plan),
                }
            if "laboratory" in methods and not left_out:
                data |= {"laboratory": measure_grid(runner, plan), "laboratory_reach": measure_reach(runner, plan)}
            write_parquet(list(journal.rows()), out / "runs.parquet")
    finally:
        executor.close()
    if "simulation" in methods:
        found, count = fit_reachable(data["grid"], "cells_mb", "scatter")
        if found is not None:
            data["fit"], data["surface"] = (found[0], count), found[1]["surface"]
    if data.get("laboratory"):
        rows = [row for row in data["laboratory"] if row["cells_mb"] is not None]
        found, count = fit_reachable(rows, "cells_mb", "scatter")
        if found is not None:
            data["laboratory_fit"] = (found[0], count)
    for draw in (draw_figure3, draw_figure4, draw_figure5, draw_figure6):
        draw(data, out / f"{draw.__name__[5:]}.png")
    rows = table(data)
    (out / "table.md").write_text(markdown(rows))
    result = {
        "table": [dict(zip(("what", "ours", "paper", "difference", "explanation"), row)) for row in rows],
        "methods": methods,
        "left_out": left_out,
        "quick": arguments.quick,
        "seconds": time.time() - started,
        "runs": {"done": runner.ran, "known": runner.known},
        "machine": platform.platform(),
        "revision": os.environ.get("RODEO_REVISION", ""),
        **{name: data[name] for name in ("grid", "target", "reach", "laboratory", "laboratory_reach") if name in data},
    }
    (out / "figures.json").write_text(json.dumps(result, indent=1) + "\n")
    if arguments.json:
        text = (
            json.dumps(
                {
                    name: result[name]
                    for name in ("table", "methods", "left_out", "quick", "seconds", "runs", "revision")
                },
                indent=2,
            )
            + "\n"
        )
        sys.stdout.write(text) if arguments.json == "-" else Path(arguments.json).write_text(text)
    if arguments.json != "-":
        print(markdown(rows))
        print(
            "\n".join(
                str(out / name)
                for name in (
                    "figure3.png",
                    "figure4.png",
                    "figure5.png",
                    "figure6.png",
                    "table.md",
                    "figures.json",
                    "runs.parquet",
                )
            )
        )
    return 6 if left_out or any(row.get("failed") for row in data.get("laboratory", [])) else 0
