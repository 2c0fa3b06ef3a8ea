"""The page of `rodeo net size`: one self-contained HTML file."""

import html

from . import plots, scenario

STYLE = """
body { font: 14px/1.45 system-ui, sans-serif; max-width: 60em; margin: 2em auto; padding: 0 1em; color: #222 }
h1 { font-size: 1.5em; margin-bottom: 0 } h2 { font-size: 1.1em; margin: 1.6em 0 .4em } .answer { font-size: 1.9em; margin: .3em 0 }
table { border-collapse: collapse } td, th { padding: .15em .8em .15em 0; text-align: left; vertical-align: top; border-bottom: 1px solid #e4e4e4 }
td.n { text-align: right; font-variant-numeric: tabular-nums } .faint { color: #666 } .bad { color: #b00020 } svg { width: 100%; height: auto }
.two { display: grid; grid-template-columns: 1fr 1fr; gap: 1em }
"""


def both(bytes):
    return "-" if bytes is None else f"{bytes * 1e-6:.1f} MB ({bytes / 2**20:.1f} MiB)"


def table(rows, head=()):
    text = "<table>" + ("<tr>" + "".join(f"<th>{html.escape(cell)}</th>" for cell in head) + "</tr>" if head else "")
    for row in rows:
        text += "<tr>" + "".join(f"<td>{html.escape(str(cell))}</td>" for cell in row) + "</tr>"
    return text + "</table>"


def pictures(found, occupancy):
    levels = [
        (found["buffer_bytes"], "answer", plots.COLOURS["laboratory"]),
        (found["formula"]["exact_bytes"], "exact formula", plots.COLOURS["formula"]),
    ]
    drawn = []
    figure, (ax,) = plots.canvas()
    plots.occupancy(ax, occupancy["time_s"], occupancy["max_bytes"], levels=levels)
    drawn.append(plots.inline_svg(figure))
    figure, (ax,) = plots.canvas()
    plots.maxima(ax, found["maxima_bytes"], found["buffer_bytes"], found["quantile_bytes"])
    drawn.append(plots.inline_svg(figure))
    if found["assumptions"]:
        figure, (ax,) = plots.canvas()
        plots.tornado(ax, found["assumptions"])
        drawn.append(plots.inline_svg(figure))
    figure, (ax,) = plots.canvas()
    ax.plot(
        [row["rate_hz"] * 1e-3 for row in found["need_by_rate"]],
        [row["buffer_bytes"] * 1e-6 for row in found["need_by_rate"]],
        "o-",
        color=plots.COLOURS["simulation"],
    )
    ax.set_xlabel("event rate [kHz]")
    ax.set_ylabel("buffer needed [MB], one seed")
    ax.set_ylim(bottom=0)
    drawn.append(plots.inline_svg(figure))
    return drawn


def proof_text(proof):
    with_answer = (
        f"No drop in {proof['seeds'][1] - proof['seeds'][0] + 1} runs of the {proof['engine']} engine"
        if proof["proved"]
        else f"<span class=bad>{proof['drops']} packets were dropped: the answer is not proved</span>"
    )
    with_less = (
        "it is one packet, and no switch has less"
        if proof["one_packet"]
        else f"nine tenths of it drops packets in {proof['nine_tenths_seeds_that_drop']} of {proof['nine_tenths_seeds']} runs"
        if proof["tight"]
        else f"<span class=bad>nine tenths of it did not drop in {proof['nine_tenths_seeds']} runs either: the answer may be larger than needed</span>"
    )
    return f"{with_answer}, with seeds that the fit has not seen; {with_less}."


def how_often(found):
    """The confidence, converted to running time between drops."""
    between = found["seconds_between_runs_with_drops"]
    if found["at_the_bound"]:
        return "Packets are never dropped: the answer is the bound, which is independent of running time."
    if between is None:
        return "All runs need the same buffer: no random effect could need more."
    rare = ", ".join(
        f"once {'an' if row['once_a'] == 'hour' else 'a'} {row['once_a']} {both(row['buffer_bytes'])}"
        for row in found["for_drops"]
    )
    return (
        f"The answer has a margin of {found['margin']:.0%}. Without it, {both(found['quantile_bytes'])} would drop packets about every {between:.2g} s of "
        f"running: this follows from {found['confidence']:.3%} of runs of {float(found['settings']['duration']):g} s. Drops at most {rare}, margin included:"
        " estimates far beyond the runs made; longer runs improve them."
    )


def page(found, occupancy, source):
    settings = found["settings"]
    switch = found["switch"]
    what = "an example, 27 MB shared (QFX5120)" if switch["is_example"] else both(float(switch["buffer"])) + " shared"
    reached = (
        "drops at a hundredth of the rate asked for"
        if switch["rate_hz"] is None
        else f"{switch['rate_hz'] * 1e-3:.2f} kHz without drops"
    )
    forms = found["formula"]
    parts = [
        f"<!doctype html><html lang=en><meta charset=utf-8><title>Buffer for {html.escape(source)}</title><style>{STYLE}</style>",
        f"<h1>Buffer of the rack's switch</h1><p class=faint>{html.escape(source)}; Rodeo {html.escape(found['revision'])}</p>",
        f"<p class=answer><b>{both(found['buffer_bytes'])}</b></p>",
        f"<p>for {float(settings['event_size']) * 1e-6:g} MB events at {float(settings['rate']) * 1e-3:g} kHz: in {found['confidence']:.3%} of runs of "
        f"{float(settings['duration']):g} s nothing is dropped ({html.escape(found['how'])}: {both(found['quantile_bytes'])}), "
        f"{'up to the bound that no run exceeds' if found['at_the_bound'] else 'plus a margin of ' + format(found['margin'], '.0%')}. "
        f"Counted in {found['counted_in']}. {proof_text(found['proof'])}</p>",
        f"<p>{how_often(found)}</p>",
    ]
    if found["dominant"]:
        strongest = found["assumptions"][0]
        parts.append(
            f"<p><b>What matters most: {found['dominant']}.</b> With “{html.escape(strongest['variant'])}” it would be {strongest['ratio']:.2f} times the buffer.</p>"
        )
    parts.append(f"<p>The switch given ({what}) carries {reached}.</p>")
    drawn = pictures(found, occupancy)
    parts.append("<div class=two>" + "".join(f"<div>{picture}</div>" for picture in drawn) + "</div>")
    parts.append(
        f"<h2>Closed forms for the same network, in {found['counted_in']}</h2>"
        + table(
            [
                ("exact, even intervals and nodes in turn", both(forms["exact_bytes"])),
                ("as published, with headers", both(forms["paper_bytes"])),
                (
                    "bound for any arrivals",
                    both(forms["bound_bytes"]) if forms["bound_bytes"] is not None else forms["why_no_bound"],
                ),
                ("valid" if forms["valid"] else "not valid", forms["why"]),
            ]
        )
    )
    if found["assumptions"]:
        parts.append(
            "<h2>One assumption at a time</h2>"
            + table(
                [
                    (
                        row["assumption"],
                        row["variant"],
                        *(
                            ("more than the network carries", "-")
                            if row["ratio"] is None
                            else (both(row["buffer_bytes"]), f"{row['ratio']:.2f}")
                        ),
                    )
                    for row in found["assumptions"]
                ],
                ("assumption", "instead", "buffer needed (median of 5 runs)", "ratio"),
            )
        )
    parts.append("<h2>The network</h2>" + table(sorted(scenario.readable(settings).items()), ("setting", "value")))
    parts.append(
        f"<p class=faint>Seeds {found['seeds'][0]} to {found['seeds'][1]} for the fit, {found['proof']['seeds'][0]} to {found['proof']['seeds'][1]} for the proof. "
        "The same settings and seeds give the same numbers on every machine. MB are 10<sup>6</sup> bytes, MiB 2<sup>20</sup>.</p></html>"
    )
    return "\n".join(parts)
