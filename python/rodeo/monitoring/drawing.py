"""Histograms as text, for a terminal."""

import math

import numpy as np

_COLUMN = " ▁▂▃▄▅▆▇█"
_SHADE = " ░▒▓█"
_LABEL = 9  # columns for the labels of the vertical axis


def draw(name, histogram, width, height):
    """Lines of at most `width` columns: a title, `height` rows, an axis, its numbers. If drawing fails, a line with the error: the run continues."""
    width = max(width, 1)
    try:
        lines = _drawn(name, histogram, width, height)
    except Exception as error:
        lines = [f"{name}   cannot be drawn: {type(error).__name__}: {error}"]
    return [line[:width] for line in lines]


def _drawn(name, histogram, width, height):
    title = f"{name}   {summary(histogram)}"
    wide = max(width - _LABEL - 1, 1)
    axes = histogram.axes
    if len(axes) == 0 or 0 in histogram.shape:
        return [title, " " * _LABEL + " nothing yet"]
    if len(axes) == 2:
        rows = _map(histogram, wide, height)
        labels = (
            [edge_text(axes[1], top=True), *[""] * (height - 2), edge_text(axes[1], top=False)] if height > 1 else [""]
        )
    else:
        values = column_heights(flat(histogram), wide)
        top = float(values.max()) if len(values) else 0.0
        rows = _columns(values, top, height)
        labels = [number(top), *[""] * (height - 2), "0"] if height > 1 else [number(top)]
    lines = [f"{label:>{_LABEL}} {row}" for label, row in zip(labels, rows)]
    used = len(rows[0])
    return [title, *lines, " " * _LABEL + "└" + "─" * used, " " * (_LABEL + 1) + _below(axes[0], used)]


def summary(histogram):
    """Entries, mean, and the entries outside the axes."""
    everything = np.asarray(histogram.values(flow=True), float)
    inside = np.asarray(histogram.values(), float)
    parts = [f"{number(inside.sum())} inside"]
    if everything.sum() > inside.sum():
        parts.append(f"{number(everything.sum() - inside.sum())} outside")
    axis = histogram.axes[0] if len(histogram.axes) else None
    if len(histogram.axes) == 1 and 0 < inside.sum() < np.inf and not is_category(axis):
        filled = inside > 0  # an empty bin may reach to infinity and have no centre
        parts.append(f"mean {number(float(np.average(np.asarray(axis.centers)[filled], weights=inside[filled])))}")
    return ", ".join(parts)


def flat(histogram):
    """Values along the first axis, summed over the other axes. NaN and infinite values become 0."""
    values = finite(histogram)
    values = values.sum(axis=tuple(range(1, values.ndim)))
    return values[order(histogram.axes[0])]


def finite(histogram):
    return np.nan_to_num(np.asarray(histogram.values(), float), nan=0.0, posinf=0.0, neginf=0.0)


def order(axis):
    """Bins in the order shown: categories that were added as they came are sorted."""
    return (
        sorted(range(len(axis)), key=axis.value) if is_category(axis) and axis.traits.growth else list(range(len(axis)))
    )


def column_heights(values, columns):
    """A value for each column: the value of its bin, or the mean of its bins."""
    if len(values) == 0:
        return values
    places = np.arange(columns) * len(values) // columns
    if len(values) <= columns:
        return values[places]
    return np.add.reduceat(values, places) / np.diff([*places, len(values)])


def _columns(values, top, height):
    eighths = (
        np.zeros(len(values), int) if top <= 0 else np.ceil(np.clip(values, 0, None) / top * height * 8).astype(int)
    )
    return ["".join(_COLUMN[min(max(one - 8 * row, 0), 8)] for one in eighths) for row in reversed(range(height))]


def _map(histogram, width, height):
    cells = rebinned(histogram, width, height)
    top = cells.max()
    level = (
        np.zeros(cells.shape, int)
        if top <= 0
        else np.ceil(np.clip(cells, 0, None) / top * (len(_SHADE) - 1)).astype(int)
    )
    stretch = max(1, width // max(cells.shape[0], 1))
    rows = ["".join(_SHADE[one] * stretch for one in level[:, y]) for y in reversed(range(cells.shape[1]))]
    return (rows + [" " * len(rows[0])] * height)[:height]


def rebinned(histogram, wide, high):
    """A histogram with two axes, reduced to at most this many cells."""
    out = finite(histogram)[np.ix_(order(histogram.axes[0]), order(histogram.axes[1]))]
    for axis, most in ((0, wide), (1, high)):
        together = math.ceil(out.shape[axis] / most)
        out = np.add.reduceat(out, np.arange(0, out.shape[axis], together), axis=axis)
    return out


def _below(axis, width):
    left, right, label = edge_text(axis, top=False), edge_text(axis, top=True), axis.label or axis.name
    room = width - len(left) - len(right)
    return left + (f"{label[: room - 2]:^{room}}" if room > 4 else " " * max(room, 1)) + right


def is_category(axis):
    return not axis.traits.continuous and not hasattr(axis, "edges") or type(axis).__name__.endswith("Category")


def edge_text(axis, top):
    if len(axis) == 0:
        return ""
    if is_category(axis):
        return category_text(axis.value(order(axis)[-1 if top else 0]))
    return number(float(axis.edges[-1 if top else 0]))


def category_text(value):
    """Large whole numbers are ids and are shown in hexadecimal."""
    return f"{value:#x}" if isinstance(value, int) and value > 0xFFFF else str(value)[:20]


def number(value):
    """A number as text: whole numbers below 10^7 with separators of thousands, others with four digits."""
    value = float(value)
    if math.isfinite(value) and value == int(value) and abs(value) < 1e7:
        return f"{int(value):,}"
    return f"{value:.4g}"


def screen(blocks, columns, rows, height=6):
    """Blocks in rows and columns, as many as fit, and the number of those that do not."""
    across = max(1, columns // 66)
    width = max(columns // across - 2, 1)
    each = height + 4
    most = max(1, rows // each) * across
    drawn = [draw(name, one, width, height) for name, one in blocks[:most]]
    lines = []
    for first in range(0, len(drawn), across):
        row = drawn[first : first + across]
        for at in range(max(len(block) for block in row)):
            lines.append("  ".join(f"{block[at] if at < len(block) else '':<{width}}" for block in row).rstrip())
        lines.append("")
    return lines, max(0, len(blocks) - most)
