"""Pictures, one function each. The functions draw on given axes; only save() writes files."""

import io
import re

from rodeo.missing import remedy

try:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt
except ImportError as missing:
    raise ImportError(f"pictures need matplotlib ({missing}): {remedy()}") from missing

COLOURS = {"simulation": "#0072b2", "formula": "#009e73", "laboratory": "#d55e00", "paper": "#555555"}
OTHERS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9")

plt.rcParams.update(
    {
        "figure.dpi": 110,
        "font.size": 9,
        "axes.grid": True,
        "grid.color": "#dddddd",
        "grid.linewidth": 0.6,
        "axes.axisbelow": True,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "legend.frameon": False,
        "legend.fontsize": 8,
        "svg.hashsalt": "rodeo",
        "savefig.bbox": "tight",
    }
)


def canvas(rows=1, columns=1, size=(6.4, 3.6)):
    figure, axes = plt.subplots(rows, columns, figsize=size, squeeze=False)
    return figure, list(axes.flat)


def save(figure, path):
    """Saves in the format of the path's ending. The same picture gives the same bytes."""
    if str(path).rpartition(".")[2].lower() not in ("png", "svg", "pdf"):
        raise ValueError(f"{path}: a picture ends in .png, .svg or .pdf")
    figure.savefig(path, **({"metadata": {"Date": None}} if str(path).endswith(".svg") else {}))
    plt.close(figure)


def legend_beside(ax, handles=None, **options):
    """A legend to the right of the axes, where it hides no data."""
    ax.legend(handles=handles, loc="upper left", bbox_to_anchor=(1.01, 1.0), borderaxespad=0, **options)


def legend_under(ax, columns):
    """A legend below the label of the horizontal axis."""
    ax.legend(loc="upper center", bbox_to_anchor=(0.5, -0.16), ncols=columns)


def legend_below(figure, ax, columns, **options):
    """One legend for all panels, below them."""
    figure.legend(
        *ax.get_legend_handles_labels(), loc="upper center", bbox_to_anchor=(0.5, 0.02), ncols=columns, **options
    )


def inline_svg(figure):
    """The picture as an <svg> element for a page."""
    text = io.StringIO()
    figure.savefig(text, format="svg", metadata={"Date": None})
    plt.close(figure)
    return re.sub(r"^.*?(?=<svg)", "", text.getvalue(), flags=re.DOTALL)


def occupancy(ax, time_s, bytes, label=None, colour=COLOURS["simulation"], levels=()):
    """Draws buffer against time; levels: (bytes, name, colour)."""
    ax.plot([t * 1e3 for t in time_s], [b * 1e-6 for b in bytes], color=colour, linewidth=0.9, label=label)
    for value, name, line in levels:
        if value is not None:
            ax.axhline(value * 1e-6, color=line, linewidth=1, linestyle="--", label=f"{name}: {value * 1e-6:.1f} MB")
    ax.set_xlabel("time [ms]")
    ax.set_ylabel("buffer [MB]")
    ax.set_ylim(bottom=0, auto=None)  # later data may still extend the axis
    if label or levels:
        legend_under(ax, 3)


def maxima(ax, values, answer, quantile):
    ax.hist(
        [v * 1e-6 for v in values],
        bins=min(20, max(5, len(values) // 3)),
        color=COLOURS["simulation"],
        alpha=0.75,
        label=f"{len(values)} runs",
    )
    ax.axvline(quantile * 1e-6, color=COLOURS["formula"], linestyle="--", label=f"quantile: {quantile * 1e-6:.1f} MB")
    ax.axvline(answer * 1e-6, color=COLOURS["laboratory"], label=f"answer: {answer * 1e-6:.1f} MB")
    ax.axvline(answer * 0.9e-6, color=COLOURS["laboratory"], linestyle=":", label="nine tenths of it")
    ax.set_xlabel("largest occupancy of a run [MB]")
    ax.set_ylabel("runs")
    legend_under(ax, 2)


def tornado(ax, rows):
    shown = [row for row in rows if row["ratio"]][::-1]
    ax.barh(range(len(shown)), [row["ratio"] - 1 for row in shown], left=1, color=COLOURS["simulation"], height=0.6)
    ax.set_yticks(range(len(shown)), [f"{row['assumption']}: {row['variant']}" for row in shown])
    ax.axvline(1, color="#555555", linewidth=0.8)
    ax.set_xlabel("buffer needed, relative to the network as given")


def lines(
    ax,
    rows,
    x,
    y,
    by=(),
    scale=(1.0, 1.0),
    order=lambda column, text: text,
    show=lambda column, text: f"{column} = {text}",
):
    """Draws mean and standard deviation of y against x, one line for each value of `by`. order(column, text) sorts these values, and
    show(column, text) names them in the legend."""
    groups = {}
    for row in rows:
        if row.get(y) is not None:
            groups.setdefault(tuple(str(row.get(name)) for name in by), {}).setdefault(row[x], []).append(row[y])
    for colour, (name, points) in zip(
        OTHERS * (1 + len(groups) // len(OTHERS)),
        sorted(groups.items(), key=lambda group: [order(*one) for one in zip(by, group[0])]),
    ):
        xs = sorted(points)
        means = [sum(points[one]) / len(points[one]) for one in xs]
        errors = [
            (sum((v - m) ** 2 for v in points[one]) / max(1, len(points[one]) - 1)) ** 0.5 for one, m in zip(xs, means)
        ]
        ax.errorbar(
            [v * scale[0] for v in xs],
            [v * scale[1] for v in means],
            [v * scale[1] for v in errors],
            fmt="o-",
            markersize=3.5,
            linewidth=1.2,
            capsize=2,
            color=colour,
            label=", ".join(show(*one) for one in zip(by, name)) or None,
        )
    if by and groups:
        legend_beside(ax)
