"""A picture of event files: sizes, rate over time, missing links, BCID structure. usage: plot.py OUT.png|OUT.svg|OUT.pdf < NAMES"""

import os
import re
import sys
from collections import Counter

import numpy as np

from rodeo.data_tools.hdf5 import holds_chunk_records, told
from rodeo.data_tools.pieces import open_files, piece_of
from rodeo.data_tools.running import Progress, Refused, end, names, needed, new_file, run

BCIDS = 3564  # BCIDs in an LHC orbit
TIME_BINS = 200
SIZE_BINS = 80
MOST_LINKS = 16
FEW_BCIDS = 400
BLUE, GREEN, ORANGE, GREY = "#0072b2", "#009e73", "#d55e00", "#555555"
KINDS = (".png", ".svg", ".pdf")
MOST_HEADERS = 100
LINKS = re.compile(r"Rodeo-Links=(0x[0-9a-f]{8}):((?: 0x[0-9a-f]{8}(?:\+\d{1,5})?)*)")
LINK = re.compile(r" (0x[0-9a-f]{8})(?:\+(\d+))?")


class Totals:
    """Sums over all events for the picture. Memory does not grow with the events, except by a number for every millisecond with events."""

    def __init__(self):
        self.events = self.flagged = self.bytes = 0
        self.sizes, self.times, self.incomplete_times = Counter(), Counter(), Counter()
        self.bcids = np.zeros(4096, np.int64)
        self.fragments, self.missing = Counter(), Counter()
        self.links, self.known_links = Counter(), set()  # keys are (ROB, link id): links of two ROBs may share an id

    def add(self, columns, chunks):
        self.events += columns.events
        self.flagged += int(np.count_nonzero(columns["status"]))
        self.bytes += int(columns["size"].sum(dtype=np.int64))
        _count(self.sizes, columns["size"])
        _count(self.times, columns["time_ns"] // 1_000_000)
        _count(self.incomplete_times, columns["time_ns"][columns["status"] != 0] // 1_000_000)
        self.bcids += np.bincount(columns["bcid"] & 0xFFF, minlength=4096)
        _count(self.fragments, columns["fragment.source_id"])
        for rob in np.unique(columns["fragment.source_id"]).tolist():
            of_rob = columns["fragment.source_id"] == rob
            self.missing[rob] += int(columns["fragment.missing_links"][of_rob].sum(dtype=np.int64))
            if chunks:
                counts = np.diff(columns["fragment.chunk_offsets"])
                of_chunk = np.repeat(of_rob, counts)
                # A link counts once in a fragment, even with several chunks.
                fragment = np.repeat(np.arange(len(counts), dtype=np.uint64), counts)[of_chunk]
                pairs = np.unique(fragment << np.uint64(32) | columns["chunk.link"][of_chunk].astype(np.uint64))
                links, counts = np.unique((pairs & np.uint64(0xFFFFFFFF)).astype(np.uint32), return_counts=True)
                for link, count in zip(links.tolist(), counts.tolist(), strict=True):
                    self.links[rob, link] += count
                    self.known_links.add((rob, link))

    def missing_by_link(self):
        """The number of fragments in which each link is missing: ((ROB, link), count), largest first."""
        lacking = {(rob, link): self.fragments[rob] - self.links[rob, link] for rob, link in self.known_links}
        return sorted(
            ((link, count) for link, count in lacking.items() if count > 0), key=lambda one: (-one[1], one[0])
        )


def _count(counter, values):
    found, counts = np.unique(values, return_counts=True)
    for value, count in zip(found.tolist(), counts.tolist()):
        counter[value] += count


def _arrays(counter):
    keys = np.array(sorted(counter), np.int64)
    return keys, np.array([counter[key] for key in keys.tolist()], np.int64)


def named_links(events, files):
    """Links that the files list, each with its ROB; a link that is silent for the whole run has no chunk."""
    links = set()
    for number in range(min(files, MOST_HEADERS)):
        try:
            strings = events.info(number).get("free_strings", [])
        except ValueError:
            continue  # the error is reported when the file's events are read
        for text in strings:
            match = LINKS.fullmatch(text)
            for first, count in LINK.findall(match[2]) if match else ():
                links.update((int(match[1], 16), int(first, 16) + i) for i in range(int(count or 1)))
    return links


def read(paths):
    events = open_files(paths)
    chunks = holds_chunk_records(events)
    fields = [
        "status",
        "size",
        "time_ns",
        "bcid",
        "fragment.source_id",
        "fragment.missing_links",
        *(["chunk.link"] if chunks else []),
    ]
    totals, progress = Totals(), Progress("reading", len(events))
    if chunks:
        totals.known_links.update(named_links(events, len(paths)))
    for columns in events.iterate(fields, events=piece_of(events, paths)):
        totals.add(columns, chunks)
        progress(totals.events)
    progress.finish()
    return events, totals


def plot(output, paths):
    kind = os.path.splitext(output)[1].lower()
    if kind not in KINDS:
        raise Refused(
            "cli.bad_value",
            f"--output ends with {', '.join(KINDS[:-1])} or {KINDS[-1]}",
            output,
            "for example --output run.png",
        )
    matplotlib = needed("matplotlib", "a picture")
    matplotlib.use("Agg")
    if os.path.lexists(output):
        raise Refused("file.exists", "is there already", output, "remove it, or name another file")
    events, totals = read(paths)
    if totals.events == 0:
        raise Refused(
            "data.no_event", "there is no event in the files", paths[0], "`rodeo data info` shows their contents"
        )
    figure = draw(matplotlib, events, totals, paths)
    with new_file(output) as part:
        figure.savefig(part, format=kind[1:], **({"metadata": {"Date": None}} if kind == ".svg" else {}))
    print(f"{totals.events} events, {totals.bytes} bytes, {totals.flagged} flagged: {output}")
    return told(events)


def draw(matplotlib, events, totals, paths):
    import matplotlib.pyplot as plt

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
        }
    )
    figure, ((sizes, rate), (missing, bcids)) = plt.subplots(2, 2, figsize=(11, 7.2), layout="constrained")
    name = os.fsencode(os.path.basename(paths[0])).decode("utf-8", "backslashreplace")
    others = f" and {len(paths) - 1} more" if len(paths) > 1 else ""
    run_number = events.info(0).get("run_number")
    figure.suptitle(
        f"{'Run ' + str(run_number) + ': ' if run_number is not None else ''}{totals.events:,} events\n",
        fontweight="bold",
        fontsize=11.5,
    )
    figure.text(0.5, 0.955, f"{name}{others}", ha="center", fontsize=8, color=GREY)
    draw_sizes(sizes, totals)
    draw_rate(rate, totals)
    draw_missing(missing, totals)
    draw_bcids(bcids, totals)
    return figure


def draw_sizes(ax, totals):
    values, counts = _arrays(totals.sizes)
    unit, factor = ("B", 1) if values[-1] < 20_000 else ("kB", 1e3) if values[-1] < 20_000_000 else ("MB", 1e6)
    low, high = values[0] / factor, values[-1] / factor
    if low == high:
        low, high = low - 0.5, high + 0.5
    ax.hist(
        values / factor,
        bins=min(SIZE_BINS, max(1, int(values[-1] - values[0] + 1))),
        range=(low, high),
        weights=counts,
        color=BLUE,
    )
    ax.axvline(
        totals.bytes / totals.events / factor,
        color=ORANGE,
        linewidth=1.2,
        label=f"mean {totals.bytes / totals.events / factor:,.1f} {unit}",
    )
    ax.set(
        title=f"Size of events: {values[0]:,} to {values[-1]:,} bytes",
        xlabel=f"size [{unit}]",
        ylabel="events",
        yscale="log" if counts.max() > 100 * max(1, counts.min()) else "linear",
    )
    ax.legend(loc="best")


def draw_rate(ax, totals):
    times, counts = _arrays(totals.times)
    seconds = (times - times[0]) / 1e3  # times are in milliseconds
    span = max(seconds[-1], 1e-3)
    bins = min(TIME_BINS, max(1, int(span * 1e3)))
    scaled = {
        "rate": (seconds, counts),
        "flagged": ((_arrays(totals.incomplete_times)[0] - times[0]) / 1e3, _arrays(totals.incomplete_times)[1]),
    }
    edges = np.linspace(0, span, bins + 1)
    unit, factor = ("kHz", 1e3) if totals.events / span >= 2000 else ("Hz", 1)
    for label, (at, weights) in scaled.items():
        if len(at) == 0:
            continue
        per_bin, _ = np.histogram(at, edges, weights=weights)
        ax.stairs(
            per_bin / np.diff(edges) / factor,
            edges,
            color=BLUE if label == "rate" else ORANGE,
            linewidth=1.4,
            label="all events" if label == "rate" else "flagged events",
        )
    ax.set(title="Rate of events, by their times", xlabel="time since the first event [s]", ylabel=f"rate [{unit}]")
    ax.set_ylim(bottom=0)
    ax.legend()


def draw_missing(ax, totals):
    worst = totals.missing_by_link()
    fragments = sum(totals.fragments.values())
    ax.set_title("Missing links")
    if not worst:
        unknown = sum(totals.missing.values())
        ax.text(
            0.5,
            0.5,
            f"{unknown:,} links missing; which ones is not known"
            if unknown
            else f"no link is missing in {fragments:,} fragments",
            ha="center",
            va="center",
            transform=ax.transAxes,
            color=GREY,
        )
        ax.set(xticks=[], yticks=[])
        ax.grid(visible=False)
        return
    shown = worst[:MOST_LINKS][::-1]
    several = len(totals.fragments) > 1
    names = [f"{rob:#x} / {link:#x}" if several else f"{link:#010x}" for (rob, link), _ in shown]
    ax.barh(names, [100 * count / max(1, totals.fragments[rob]) for (rob, _), count in shown], color=ORANGE)
    ax.tick_params(axis="y", labelsize=7.5)
    ax.set(xlabel="fragments without the link [%]", ylabel="ROB / link id" if several else "link id")
    if len(worst) > MOST_LINKS:
        ax.set_title(f"Missing links: the {MOST_LINKS} worst of {len(worst)}")


def draw_bcids(ax, totals):
    counts = totals.bcids[:BCIDS]
    used = np.flatnonzero(counts)
    if len(used) < FEW_BCIDS:  # more bars would be thinner than a pixel
        ax.vlines(used, 0, counts[used], color=GREEN, linewidth=1.4)
    else:
        ax.fill_between(np.arange(BCIDS), counts, step="mid", color=GREEN, linewidth=0)
    beyond = int(totals.bcids[BCIDS:].sum())
    ax.set(
        title=f"Bunch crossings: {len(used):,} of {BCIDS:,} used" + (f", {beyond:,} events beyond" if beyond else ""),
        xlabel="BCID",
        ylabel="events",
        xlim=(0, BCIDS),
    )
    ax.set_ylim(bottom=0)
    ax.yaxis.get_major_locator().set_params(integer=True)


if __name__ == "__main__":
    end(run(lambda: plot(sys.argv[1], names())))
