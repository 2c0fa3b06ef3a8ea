#!/usr/bin/env python3
"""Draws performance figures of papers and slides from the results of `rodeo bench figures`, together with the published values.

usage: figures.py FIGURES.JSON | --check
"""

import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import published  # noqa: E402

try:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt
except ImportError as missing:
    print(f"{sys.executable}: {missing}", file=sys.stderr)
    sys.exit(1)

OURS = ["#0072b2", "#009e73", "#56b4e9"]  # filled circles, lines
PUBLISHED = "#d55e00"  # open diamonds, and lines for formulas of the paper
QUIET_SHARE = 0.9  # below this share of the CPU, other programs distort a point

plt.rcParams.update(
    {
        "figure.dpi": 130,
        "font.size": 9.5,
        "axes.grid": True,
        "grid.color": "#dddddd",
        "grid.linewidth": 0.6,
        "axes.axisbelow": True,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "legend.frameon": False,
        "legend.fontsize": 8.5,
        "svg.hashsalt": "rodeo",
        "savefig.bbox": "tight",
    }
)


class Page:
    """One picture: its axes, the text about machine and conditions, and the output file."""

    def __init__(self, data, figure, rows=1, columns=1, size=(6.6, 4.4)):
        self.data, self.figure = data, figure
        self.canvas, axes = plt.subplots(rows, columns, figsize=size, squeeze=False)
        self.axes = list(axes.flat)
        self.canvas.suptitle(figure["title"], fontsize=11.5, fontweight="bold")

    def write(self, name):
        machine = self.data["machine"]
        lines = [
            f"{self.figure['setup']}. {self.data['seconds_per_point']:g} s a point.",
            f"{machine['cpu']}, {machine['cores']} cores ({machine['cpu_level']} kernels), Rodeo {machine['rodeo_revision']}.",
        ]
        if "note" in self.figure:
            lines.append(self.figure["note"] + ".")
        shares = [point["cpu_share"] for point in self.figure["points"] if "cpu_share" in point]
        if machine["load_average_at_start"] > machine["cores"] / 4:
            lines.append(
                f"Others were at work: load average {machine['load_average_at_start']:.1f} before the first point."
            )
        if shares and min(shares) < QUIET_SHARE:
            lines.append(
                f"The workers got {min(shares):.0%} to {max(shares):.0%} of the CPU they wanted: rates are too low by about as much."
            )
        self.canvas.text(0.01, -0.01, "\n".join(lines), fontsize=7.5, color="#555555", va="top", wrap=False)
        self.canvas.tight_layout()
        for kind, options in (("png", {}), ("svg", {"metadata": {"Date": None}})):
            self.canvas.savefig(self.data["directory"] / f"{name}.{kind}", **options)
        plt.close(self.canvas)


def of(points, x, **wanted):
    """Coordinates of the points that have these values: x as stored, rate in kHz."""
    chosen = [point for point in points if all(point.get(key) == value for key, value in wanted.items())]
    return [point[x] for point in chosen], [point["rate_hz"] / 1e3 for point in chosen]


def line(ax, x, y, colour, label, **style):
    ax.plot(x, y, "o-", color=colour, label=label, markersize=5, linewidth=1.6, **style)


def run3(ax, at):
    """Draws the rate that Run 3 requires. Its label begins at this share of the width, where it hides no curve."""
    ax.axhline(published.RUN3_RATE_HZ / 1e3, color="#888888", linewidth=0.8)
    ax.text(
        at,
        published.RUN3_RATE_HZ / 1e3,
        "Run 3: 100 kHz",
        fontsize=7.5,
        color="#666666",
        va="bottom",
        transform=ax.get_yaxis_transform(),
    )


def logarithmic(ax, ticks):
    ax.set_yscale("log")
    low, high = ax.get_ylim()
    ax.set_yticks([tick for tick in ticks if low <= tick <= high])
    ax.get_yaxis().set_major_formatter(matplotlib.ticker.FuncFormatter(lambda value, _: f"{value:g}"))
    ax.get_yaxis().set_minor_formatter(matplotlib.ticker.NullFormatter())


def figure4(data, figure):
    page = Page(data, figure)
    ax = page.axes[0]
    cores = data["machine"]["cores"]
    for colour, workers in zip(OURS, sorted({point["workers"] for point in figure["points"]})):
        x, y = of(figure["points"], "cards", workers=workers)
        name = f"Rodeo, {workers} worker{'s' * (workers > 1)} a card"
        line(ax, x, y, colour, f"{name} (all cards share {cores} cores)")
    cards = [n / 20 for n in range(20, 121)]
    ax.plot(
        cards,
        [published.network_limit_hz(n) / 1e3 for n in cards],
        ":",
        color=PUBLISHED,
        label="Paper, eq. (5): its 91.3 Gb/s network",
    )
    ax.plot(
        cards,
        [published.network_limit_hz(n, 0) / 1e3 for n in cards],
        "--",
        color=PUBLISHED,
        linewidth=1,
        label="Paper: the same without NetIO's 12 B a chunk",
    )
    ax.plot(
        [6],
        [published.SIX_CARDS_RATE_HZ / 1e3],
        "D",
        color=PUBLISHED,
        markerfacecolor="white",
        markersize=7,
        label="Slides: ~150 kHz from 1152 E-links, on 32 cores",
    )
    run3(ax, 0.04)
    ax.set_xlabel("FELIX cards (192 E-links each)")
    ax.set_ylabel("Trigger rate of every card [kHz]")
    ax.set_xlim(0.8, 6.2)
    logarithmic(ax, (20, 50, 100, 150, 200, 500, 1000, 2000, 5000))
    ax.legend()
    page.write("figure4")


def figure5(data, figure):
    page = Page(data, figure)
    ax = page.axes[0]
    x, y = of(figure["points"], "streams")
    line(ax, x, y, OURS[0], "Rodeo, every byte read")
    streams = [n / 10 for n in range(10, 241)]
    ax.plot(
        streams,
        [published.full_mode_network_limit_hz(n) / 1e3 for n in streams],
        ":",
        color=PUBLISHED,
        label="Paper's 91.3 Gb/s network filled with 5000 B chunks",
    )
    ax.plot(
        [1],
        [published.ONE_STREAM_RATE_HZ / 1e3],
        "D",
        color=PUBLISHED,
        markerfacecolor="white",
        markersize=7,
        label="Paper: 1.76 MHz, one stream over 24 links",
    )
    run3(ax, 0.04)
    ax.set_xlabel("Independent streams over 24 links")
    ax.set_ylabel("Fragment rate of each stream [kHz]")
    ax.set_xticks([1, 2, 3, 4, 6, 8, 12, 24])
    logarithmic(ax, (20, 50, 100, 200, 500, 1000, 2000, 5000, 10000))
    ax.legend()
    page.write("figure5")


def chain4(data, figure):
    page = Page(data, figure)
    ax = page.axes[0]
    network = figure["network"]
    cards = [n / 20 for n in range(20, 121)]
    line(
        ax,
        *of(figure["points"], "cards"),
        OURS[0],
        f"Rodeo, {network['provider']}, all processes on {data['machine']['cores']} cores",
    )
    bits, wire = 8 * network["bare_bytes_per_second"], network["wire_bytes_per_chunk"]
    ax.plot(
        cards,
        [published.link_limit_hz(bits, n, wire) / 1e3 for n in cards],
        ":",
        color=OURS[1],
        label=f"Eq. (5) for {bits / 1e9:.1f} Gb/s of bare pages here, {wire:.1f} B a chunk",
    )
    ax.plot(
        cards,
        [published.network_limit_hz(n) / 1e3 for n in cards],
        ":",
        color=PUBLISHED,
        label="Paper, eq. (5): its 91.3 Gb/s network, 52 B a chunk",
    )
    ax.plot(
        cards,
        [published.network_limit_hz(n, 0) / 1e3 for n in cards],
        "--",
        color=PUBLISHED,
        linewidth=1,
        label="Paper: the same without NetIO's 12 B a chunk",
    )
    run3(ax, 0.62)
    ax.set_xlabel("FELIX cards (192 E-links each)")
    ax.set_ylabel("Trigger rate of every card [kHz]")
    ax.set_xlim(0.8, 6.2)
    logarithmic(ax, (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000))
    ax.legend()
    page.write("chain4")


def chain5(data, figure):
    page = Page(data, figure)
    ax = page.axes[0]
    network = figure["network"]
    streams = [n / 10 for n in range(10, 241)]
    line(
        ax,
        *of(figure["points"], "streams"),
        OURS[0],
        f"Rodeo, {network['provider']}, every byte read, all processes on {data['machine']['cores']} cores",
    )
    bits, wire = 8 * network["bare_bytes_per_second"], network["wire_bytes_per_chunk"]
    ax.plot(
        streams,
        [bits / (n * wire * 8) / 1e3 for n in streams],
        ":",
        color=OURS[1],
        label=f"{bits / 1e9:.1f} Gb/s of bare pages here, filled",
    )
    ax.plot(
        streams,
        [published.full_mode_network_limit_hz(n) / 1e3 for n in streams],
        ":",
        color=PUBLISHED,
        label="Paper's 91.3 Gb/s network filled with 5000 B chunks",
    )
    ax.plot(
        [1],
        [published.ONE_STREAM_RATE_HZ / 1e3],
        "D",
        color=PUBLISHED,
        markerfacecolor="white",
        markersize=7,
        label="Paper: 1.76 MHz, one stream over 24 links",
    )
    run3(ax, 0.62)
    ax.set_xlabel("Independent streams over 24 links")
    ax.set_ylabel("Fragment rate of each stream [kHz]")
    ax.set_xticks([1, 2, 3, 4, 6, 8, 12, 24])
    logarithmic(ax, (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000))
    ax.legend()
    page.write("chain5")


def run4_line(ax, x):
    ax.axhline(published.RUN4_RATE_HZ / 1e3, color="#888888", linewidth=0.8)
    ax.text(x, published.RUN4_RATE_HZ / 1e3, "Run 4: 1 MHz", fontsize=7.5, color="#666666", va="bottom", ha="right")
    ax.set_ylim(bottom=0)
    ax.set_ylabel("Trigger rate [kHz]")


def figure6a(data, figure):
    memory = [point for point in data.get("ablations", {}).get("points", []) if point["experiment"] == "slice_memory"]
    memory.sort(key=lambda point: point["chunk_bytes"])  # points are stored in their random order of measurement
    page = Page(data, figure, columns=2 if memory else 1, size=(10.4, 4.4) if memory else (6.6, 4.4))
    x, y = of(figure["points"], "chunk_bytes")
    line(page.axes[0], x, y, OURS[0], "Rodeo: the whole builder")
    page.axes[0].set_xlabel("Chunk size [B], 48 E-links")
    page.axes[0].set_xticks(x)
    run4_line(page.axes[0], max(x))
    page.axes[0].legend(loc="lower left")
    if memory:
        ax = page.axes[1]
        names = {
            "ceiling": "the same buffers over and over (ceiling)",
            "ours": "Rodeo's pool",
            "tbb_queue": "tbb::concurrent_queue of blocks",
            "new_delete": "new and delete",
        }
        styles = {
            "ceiling": ("#888888", "--"),
            "ours": (OURS[0], "-"),
            "tbb_queue": (OURS[1], "-"),
            "new_delete": (PUBLISHED, "-"),
        }
        threads = max(point["threads"] for point in memory)
        for variant, name in names.items():
            chosen = [point for point in memory if point["variant"] == variant and point["threads"] == threads]
            if chosen:
                ax.plot(
                    [point["chunk_bytes"] for point in chosen],
                    [point["per_core_second"] / 1e3 for point in chosen],
                    "o",
                    color=styles[variant][0],
                    linestyle=styles[variant][1],
                    markersize=4.5,
                    linewidth=1.5,
                    label=name,
                )
        ax.set_title(f"Slice building alone, {threads} threads, by source of memory", fontsize=9.5)
        ax.set_xlabel("Chunk size [B], 48 E-links")
        ax.set_ylabel("Slices per millisecond of CPU")
        ax.set_xticks(x)
        ax.set_ylim(0, 1.45 * max(point["per_core_second"] / 1e3 for point in memory if point["threads"] == threads))
        ax.legend(
            loc="upper right",
            title=f"Paper: queue instead of new/delete gained {published.POOL_GAIN}",
            title_fontsize=8,
        )
    page.write("figure6a")


def figure6b(data, figure):
    page = Page(data, figure)
    ax = page.axes[0]
    for colour, size in zip(OURS, sorted({point["chunk_bytes"] for point in figure["points"]})):
        line(ax, *of(figure["points"], "links", chunk_bytes=size), colour, f"Rodeo, {size} B chunks")
    ax.set_xlabel("E-links in one fragment")
    ax.set_xticks(sorted({point["links"] for point in figure["points"]}))
    run4_line(ax, 192)
    ax.legend()
    page.write("figure6b")


def table2(data, figure):
    rows = [("", "workers", "S(n)", "C_FA", "P")]
    rows += [
        (
            "Rodeo",
            str(point["workers"]),
            f"{point['speedup']:.2f}",
            f"{point['assembly_cost']:.1f}",
            f"{point['parallel_fraction']:.3f}",
        )
        for point in figure["points"]
        if point["workers"] > 1
    ]
    rows += [("Paper", str(n), f"{s:.2f}", f"{c:.1f}", f"{p:.3f}") for n, (s, c, p) in published.TABLE2.items()]
    text = [figure["setup"]] + ["  ".join(cell.rjust(8) for cell in row) for row in rows]
    for n, by_cards in published.SPEEDUP_BY_CARDS.items():
        text.append(f"Slides, S({n}) by cards: " + ", ".join(f"{cards}: {s:.2f}" for cards, s in by_cards.items()))
    text.append(
        "C_FA = (n/S - 1)/(0.01 (n - 1)): eq. (3) solved for it; eq. (4) of the paper is printed with S/n instead of n/S. P = 1 - 0.01 C_FA."
    )
    shares = [point["cpu_share"] for point in figure["points"]]
    if min(shares) < QUIET_SHARE:
        text.append(
            f"Not a quiet machine: the workers got {min(shares):.0%} to {max(shares):.0%} of the CPU they wanted; S(n) means little."
        )
    if "note" in figure:
        text.append(figure["note"] + ".")
    (data["directory"] / "table2.txt").write_text("\n".join(text) + "\n")

    page = Page(data, figure)
    ax = page.axes[0]
    most = 4
    threads = [n / 10 for n in range(10, 10 * most + 1)]
    ax.plot(threads, threads, color="#888888", linewidth=0.8, label="S(n) = n")
    for n, (speedup, cost, _) in published.TABLE2.items():
        ax.plot(
            [n],
            [speedup],
            "D",
            color=PUBLISHED,
            markerfacecolor="white",
            markersize=7,
            label="Paper, Table II" if n == 2 else None,
        )
    fraction = published.TABLE2[3][2]
    ax.plot(
        threads,
        [1 / (1 - fraction + fraction / n) for n in threads],
        ":",
        color=PUBLISHED,
        label=f"Paper, eq. (1) with P = {fraction}",
    )
    line(
        ax,
        [point["workers"] for point in figure["points"]],
        [point["speedup"] for point in figure["points"]],
        OURS[0],
        "Rodeo",
    )
    for point in figure["points"]:
        if point["workers"] > 1:
            ax.annotate(
                f"S = {point['speedup']:.2f}\n$C_{{FA}}$ = {point['assembly_cost']:.1f}\nP = {point['parallel_fraction']:.3f}",
                (point["workers"], point["speedup"]),
                xytext=(8, -30),
                textcoords="offset points",
                fontsize=8,
                color=OURS[0],
            )
    ax.set_xlabel("Workers n")
    ax.set_ylabel("Speed-up S(n)")
    ax.set_xticks(range(1, most + 1))
    ax.set_ylim(bottom=0)
    ax.legend(loc="upper left")
    page.write("table2")


def ablations(data, figure):
    wanted = [
        ("ring_index", "Ring index", "chunks", f"slides: mask gains {published.MASK_GAIN} of the whole"),
        ("next_consumer", "Next consumer", "fragments", f"slides: branch loses {published.BRANCH_LOSS} of the whole"),
        (
            "slice_memory",
            "Slice memory, 40 B, two threads",
            "slices of 48 links",
            f"paper: queue gains {published.POOL_GAIN}",
        ),
        ("assembly", "Assembly, two workers", "events", "slides: tbb::concurrent_hash_map"),
    ]
    order = [
        "modulo32",
        "modulo64",
        "mask",
        "branch",
        "bound",
        "new_delete",
        "tbb_queue",
        "tbb_hash_map",
        "ours",
        "ceiling",
    ]
    page = Page(data, figure, rows=2, columns=2, size=(9.6, 6.2))
    for ax, (experiment, title, unit, said) in zip(page.axes, wanted):
        points = [point for point in figure["points"] if point["experiment"] == experiment]
        if experiment == "slice_memory":
            points = [point for point in points if point["chunk_bytes"] == 40 and point["threads"] == 2]
        points = sorted(points, key=lambda point: order.index(point["variant"]))
        values = [point["per_core_second"] / 1e6 for point in points]
        colours = [{"ours": OURS[0], "ceiling": "#bbbbbb"}.get(point["variant"], "#e6a582") for point in points]
        bars = ax.barh([point["variant"].replace("_", " ") for point in points], values, color=colours)
        ax.bar_label(
            bars, labels=[f"{value:.0f}" if value >= 100 else f"{value:.3g}" for value in values], padding=3, fontsize=8
        )
        ax.set_xlim(0, max(values, default=1) * 1.18)
        ax.invert_yaxis()
        ax.grid(axis="y", visible=False)
        ax.set_title(f"{title} ({said})", fontsize=9)
        ax.set_xlabel(f"Million {unit} per second of CPU")
    page.write("ablations")


def statistics(data, figure):
    designs = list(published.STATISTICS_TO_QUEUE)
    page = Page(data, figure, columns=2, size=(10.4, 4.4))
    threads = sorted({point["threads"] for point in figure["points"]})
    places = range(len(designs))
    values = {(point["count"], point["threads"], point["design"]): point["relative"] for point in figure["points"]}
    width = 0.8 / len(threads)
    panels = [
        (
            "chunk",
            "Counted chunk by chunk, as FelixCore did",
            lambda n, design: values["chunk", n, design] / values["chunk", n, "queue"],
            "Rate, against the queue's",
            published.STATISTICS_TO_QUEUE.values(),
        ),
        (
            "run",
            "Counted run by run, as Rodeo does",
            lambda n, design: values["run", n, design],
            "Rate, against none",
            None,
        ),
    ]
    for ax, (_, title, value, label, said) in zip(page.axes, panels):
        for i, (n, colour) in enumerate(zip(threads, OURS)):
            ax.bar(
                [place + (i - (len(threads) - 1) / 2) * width for place in places],
                [value(n, design) for design in designs],
                width * 0.92,
                color=colour,
                label=f"Rodeo, {n} thread{'s' * (n > 1)}",
            )
        if said:
            ax.plot(
                places,
                list(said),
                "D",
                color=PUBLISHED,
                markerfacecolor="white",
                markersize=7,
                label="Slides (central: at most)",
            )
        else:
            ax.plot(
                [0],
                [published.STATISTICS_OF_NONE],
                "D",
                color=PUBLISHED,
                markerfacecolor="white",
                markersize=7,
                label="Slides: the queue, by the packet",
            )
            ax.axhline(1, color="#888888", linewidth=0.8)
        ax.set_xticks(list(places), designs)
        ax.grid(axis="x", visible=False)
        ax.set_ylim(0, ax.get_ylim()[1] * (1.1 if said else 1.3))
        ax.set_title(title, fontsize=9.5)
        ax.set_ylabel(label)
        ax.legend(loc="upper left", ncols=2)
    page.write("statistics")


def main(arguments):
    if arguments == ["--check"]:
        return 0
    if len(arguments) != 1:
        print(__doc__, file=sys.stderr)
        return 2
    path = Path(arguments[0])
    data = json.loads(path.read_text())
    data["directory"] = path.parent
    drawn = []
    for draw in (figure4, figure5, figure6a, figure6b, table2, ablations, statistics, chain4, chain5):
        figure = data.get(draw.__name__)
        if figure and figure["points"]:
            draw(data, figure)
            drawn.append(str(path.parent / f"{draw.__name__}.png"))
    print("\n".join(drawn))
    if (path.parent / "table2.txt").exists() and "table2" in data:
        print((path.parent / "table2.txt").read_text(), end="")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
