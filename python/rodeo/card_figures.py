"""Draws the results of bench/measure-cards like Figures 10 and 11 of the ReadoutCard paper, with the values that the paper's text states.

    python3 -m rodeo.card_figures cards.json        writes figure10.png, figure11.png and cards.md (the same as tables) beside it

Published (K. Alexopoulos and F. Costa, "The ReadoutCard Userspace Driver for the New Alice O2 Computing System", IEEE TNS 68, 2021, section VI): 53 Gb/s for one
endpoint and 212 Gb/s for four at every superpage size, 13 % CPU for four endpoints from 512 KiB to 2 MiB; about 2 million operations a second on BAR 2.
"""

import json
import sys
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402

ENDPOINT_GBPS = 53
FOUR_ENDPOINTS_GBPS = 212
CPU_OF_FOUR = 0.13
BAR_2_OPERATIONS = 2e6
COLOURS = {("cru", 1): "#0072b2", ("cru", 2): "#56b4e9", ("cru", 4): "#009e73", ("felix", 1): "#cc79a7"}


def figure10(data, folder):
    canvas, (rate, cpu) = plt.subplots(1, 2, figsize=(10.4, 4.4))
    for (card, endpoints), colour in COLOURS.items():
        points = [one for one in data["figure10"] if one["card"] == card and one["endpoints"] == endpoints]
        sizes = [one["superpage_bytes"] / 1024 for one in points]
        name = f"{card.upper()}, {endpoints} endpoint{'s' * (endpoints > 1)}"
        rate.plot(sizes, [one["bytes_per_second"] * 8e-9 for one in points], "o-", color=colour, label=name)
        cpu.plot(sizes, [100 * one["driver_cpu_fraction"] for one in points], "o-", color=colour, label=name)
    sizes = sorted({one["superpage_bytes"] / 1024 for one in data["figure10"]})
    ceiling = [one["store_ceiling_bytes_per_second"] * 8e-9 for one in data["figure10"]]
    rate.axhline(
        sorted(ceiling)[len(ceiling) // 2],
        color="#888888",
        linestyle="--",
        label="streaming stores of one thread, here",
    )
    rate.axhline(ENDPOINT_GBPS, color="#d55e00", linestyle=":", label="paper: 53 Gb/s an endpoint")
    cpu.plot(
        [512, 2048],
        [100 * CPU_OF_FOUR] * 2,
        "D-",
        color="#d55e00",
        markerfacecolor="white",
        label="paper: 13 % for four endpoints",
    )
    for axes, title in ((rate, "DMA throughput, cumulative [Gb/s]"), (cpu, "CPU of the drivers [% of a core]")):
        axes.set_xscale("log", base=2)
        axes.set_xticks(sizes, [f"{size:g}" for size in sizes])
        axes.set_xlabel("Superpage size [KiB]")
        axes.set_ylabel(title)
        axes.set_ylim(bottom=0)
        axes.legend(fontsize=8, frameon=False, ncols=2, loc="upper center", bbox_to_anchor=(0.5, -0.14))
    finish(canvas, data, folder / "figure10.png")


def figure11(data, folder):
    canvas, axes = plt.subplots(figsize=(6.6, 4.4))
    for point in data["figure11"]:
        bottom = 0
        for index, share in enumerate(point["per_process"]):
            axes.bar(str(point["processes"]), share / 1e3, bottom=bottom / 1e3, color=plt.cm.viridis(index / 8))
            bottom += share
    axes.plot(
        [str(point["processes"]) for point in data["figure11"]],
        [point["ceiling_per_second"] / 1e3 for point in data["figure11"]],
        "k--",
        label="bare ping-pong over a socket, one process",
    )
    axes.set_xlabel(
        f"Processes on BAR 2 of an emulated CRU (trapped; the paper's card: {BAR_2_OPERATIONS / 1e6:g} million a second)"
    )
    axes.set_ylabel("Thousand operations a second")
    axes.legend(fontsize=8, frameon=False, loc="upper center", bbox_to_anchor=(0.5, -0.14))
    finish(canvas, data, folder / "figure11.png")


def finish(canvas, data, path):
    machine = data["machine"]
    canvas.text(
        0.01,
        -0.1,
        f"{machine['cores']} cores, load average {machine['load_average_at_start']:.1f} before the first point; "
        f"medians of {data['repeats']} runs of {data['seconds_per_point']:g} s. Cards and drivers share the cores.",
        fontsize=7.5,
        color="#555555",
        va="top",
    )
    canvas.tight_layout()
    canvas.savefig(path, bbox_inches="tight", dpi=130)
    plt.close(canvas)
    print(path)


def published(point):
    """The rate that the paper's text states for this point, and the CPU if it states one."""
    if point["card"] != "cru":
        return "-"
    rate = {1: f"{ENDPOINT_GBPS} Gb/s", 4: f"{FOUR_ENDPOINTS_GBPS} Gb/s"}.get(point["endpoints"], "-")
    cpu = point["endpoints"] == 4 and 512 << 10 <= point["superpage_bytes"] <= 2048 << 10
    return rate + (f", {CPU_OF_FOUR:.0%} CPU" if cpu else "")


def tables(data, path):
    """The points of both figures as Markdown."""
    machine = data["machine"]
    lines = [
        f"{machine['cores']} cores, load average {machine['load_average_at_start']:.1f} before the first point; medians of {data['repeats']} runs of "
        f"{data['seconds_per_point']:g} s; smallest and largest run in brackets. Cards and drivers share the cores.",
        "",
        "| card | endpoints | superpage [KiB] | rate [Gb/s] | of one thread's streaming stores | smallest share | driver CPU [% of a core] | latency p50 [us] | errors | paper |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for one in data["figure10"]:
        low, high = (value * 8e-9 for value in one["bytes_per_second_range"])
        lines.append(
            f"| {one['card']} | {one['endpoints']} | {one['superpage_bytes'] >> 10} | {one['bytes_per_second'] * 8e-9:.1f} [{low:.1f}, {high:.1f}] "
            f"| {one['bytes_per_second'] / one['store_ceiling_bytes_per_second']:.2f} | {one['share_min']:.2f} | {100 * one['driver_cpu_fraction']:.1f} "
            f"| {one['superpage_latency_p50_us']:.0f} | {one['errors']} | {published(one)} |"
        )
    lines += [
        "",
        "| processes on BAR 2 (trapped) | operations/s | of a bare ping-pong | furthest from the mean | paper |",
        "|---|---|---|---|---|",
    ]
    for one in data["figure11"]:
        lines.append(
            f"| {one['processes']} | {one['operations_per_second']:,.0f} | {one['operations_per_second'] / one['ceiling_per_second']:.2f} "
            f"| {one['unfairness']:.1%} | about {BAR_2_OPERATIONS / 1e6:g} million/s |"
        )
    mapped = data["mapped"]
    lines += [
        "",
        f"Mapped reads (FELIX, BAR 0): {mapped['operations_per_second'] * 1e-6:.0f} million/s, {mapped['operations_per_second'] / mapped['ceiling_per_second']:.2f} of plain loads.",
        "",
        "| check, CRU internal generator, 1 MiB | rate [Gb/s] | driver CPU [% of a core] | GB/s per core |",
        "|---|---|---|---|",
    ]
    for level, one in data["checks"].items():
        lines.append(
            f"| {level} | {one['bytes_per_second'] * 8e-9:.1f} | {100 * one['driver_cpu_fraction']:.1f} | {one['bytes_per_second'] * 1e-9 / max(one['driver_cpu_fraction'], 1e-9):.1f} |"
        )
    path.write_text("\n".join(lines) + "\n")
    print(path)


def main(arguments):
    if len(arguments) != 1:
        print(__doc__, file=sys.stderr)
        return 2
    path = Path(arguments[0])
    data = json.loads(path.read_text())
    figure10(data, path.parent)
    figure11(data, path.parent)
    tables(data, path.parent / "cards.md")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
