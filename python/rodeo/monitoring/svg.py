"""Draws histograms as SVG for the page. This must be cheap, because it runs on a machine that takes data."""

import html
import math

import numpy as np

from rodeo.monitoring.drawing import category_text, edge_text, flat, is_category, number, order, rebinned, summary

_WIDTH, _HEIGHT, _LEFT, _RIGHT, _TOP, _BOTTOM = 460, 250, 56, 12, 12, 42
_MOST_STEPS = 400
_MOST_BARS = 60
_CHARACTER = 6.5


def svg(name, histogram):
    """A figure with title, axes and numbers. If drawing fails, the figure shows the error."""
    try:
        return _figure(name, histogram)
    except Exception as error:
        return f"<figure><figcaption><b>{html.escape(name)}</b></figcaption><p>cannot be drawn: {html.escape(f'{type(error).__name__}: {error}')}</p></figure>"


def _figure(name, histogram):
    title = f"<figcaption><b>{html.escape(name)}</b> <span>{html.escape(summary(histogram))}</span></figcaption>"
    axes = histogram.axes
    if len(axes) == 0 or 0 in histogram.shape:
        return f"<figure>{title}<p>nothing yet</p></figure>"
    shown = _cells(histogram) if len(axes) == 2 else _steps(histogram)
    if len(axes) > 2:
        title = title.replace("</figcaption>", f" <span>{len(axes)} axes: the first is drawn</span></figcaption>")
    return f'<figure>{title}<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" aria-label="{html.escape(name)}">{shown}</svg></figure>'


def _steps(histogram):
    values = np.clip(flat(histogram), 0, None)
    if len(values) > _MOST_STEPS:
        values = np.add.reduceat(values, np.arange(0, len(values), math.ceil(len(values) / _MOST_STEPS)))
    ticks = nice_ticks(0, float(values.max()) or 1, 4)
    top = max(ticks[-1], float(values.max()))
    wide, high = _WIDTH - _LEFT - _RIGHT, _HEIGHT - _TOP - _BOTTOM
    gap = 0.1 if is_category(histogram.axes[0]) and len(values) <= _MOST_BARS else 0.0
    path = [f"M{_LEFT} {_TOP + high}"]
    for i, value in enumerate(values):
        left, right = (_LEFT + wide * (i + one) / len(values) for one in (gap, 1 - gap))
        down = f"V{_TOP + high}" if gap else ""
        path.append(f"H{left:.1f}V{_TOP + high * (1 - value / top):.1f}H{right:.1f}{down}")
    path.append(f"V{_TOP + high}Z")
    return (
        _vertical([(tick / top, number(tick)) for tick in ticks])
        + f'<path class="fill" d="{"".join(path)}"/>'
        + _horizontal(histogram.axes[0])
    )


def _cells(histogram):
    cells = rebinned(histogram, 60, 40)
    top = float(cells.max()) or 1.0
    wide, high = (_WIDTH - _LEFT - _RIGHT) / cells.shape[0], (_HEIGHT - _TOP - _BOTTOM) / cells.shape[1]
    out = []
    for x, y in np.argwhere(cells > 0).tolist():
        strength = 0.08 + 0.92 * cells[x, y] / top
        out.append(
            f'<rect class="cell" x="{_LEFT + x * wide:.1f}" y="{_HEIGHT - _BOTTOM - (y + 1) * high:.1f}" width="{wide:.2f}" height="{high:.2f}" opacity="{strength:.2f}"/>'
        )
    axis = histogram.axes[1]
    label = f'<text class="label" transform="translate(10 {(_HEIGHT - _BOTTOM + _TOP) / 2}) rotate(-90)" text-anchor="middle">{html.escape(axis.label or axis.name)}</text>'
    return _vertical([(at, text) for at, text in places(axis)]) + "".join(out) + _horizontal(histogram.axes[0]) + label


def _vertical(ticks):
    high = _HEIGHT - _TOP - _BOTTOM
    out = []
    for at, text in ticks:
        y = _TOP + high * (1 - at)
        out.append(f'<line class="grid" x1="{_LEFT}" x2="{_WIDTH - _RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>')
        out.append(f'<text x="{_LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{html.escape(text)}</text>')
    return "".join(out)


def _horizontal(axis):
    wide, base = _WIDTH - _LEFT - _RIGHT, _HEIGHT - _BOTTOM
    out = [f'<line class="axis" x1="{_LEFT}" x2="{_WIDTH - _RIGHT}" y1="{base}" y2="{base}"/>']
    for at, text in places(axis):
        out.append(f'<text x="{_LEFT + wide * at:.1f}" y="{base + 15}" text-anchor="middle">{html.escape(text)}</text>')
    out.append(
        f'<text class="label" x="{_LEFT + wide / 2}" y="{_HEIGHT - 8}" text-anchor="middle">{html.escape(axis.label or axis.name)}</text>'
    )
    return "".join(out)


def places(axis):
    """Positions along an axis (0 to 1) and their texts."""
    if is_category(axis):
        texts = [category_text(axis.value(i)) for i in order(axis)]
        fit = max(1, int((_WIDTH - _LEFT - _RIGHT) / (_CHARACTER * (max(map(len, texts)) + 2))))
        return [((i + 0.5) / len(axis), texts[i]) for i in range(0, len(axis), math.ceil(len(axis) / fit))]
    edges = np.asarray(axis.edges, float)
    low, high = float(edges[0]), float(edges[-1])
    if not np.allclose(np.diff(edges), (high - low) / len(axis)):  # unequal bins are drawn equally wide
        return [(0.0, edge_text(axis, top=False)), (1.0, edge_text(axis, top=True))]
    return [((tick - low) / (high - low), number(tick)) for tick in nice_ticks(low, high, 6) if low <= tick <= high]


def nice_ticks(low, high, about):
    """Round numbers from `low` to `high`: the first is at most `low`, the last at least `high`."""
    step = 10.0 ** math.floor(math.log10((high - low) / about))
    step *= next(factor for factor in (1, 2, 5, 10) if (high - low) / (step * factor) <= about)
    first = math.floor(low / step)
    return [round((first + i) * step, 12) for i in range(math.ceil(high / step - first) + 1)]
