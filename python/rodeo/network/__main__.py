"""The program of `rodeo net sweep`, `plot`, `size` and `figures`: python -m rodeo.network VERB --job JOB.JSON --out DIRECTORY."""

import argparse
import json
import os
import signal
import sys
from pathlib import Path

from rodeo.missing import remedy
from rodeo.saying import say

# Exit codes of the command.
DONE, FAILED, USAGE, INVALID, NOT_VERIFIED, INTERRUPTED = 0, 1, 2, 3, 7, 6


def complain(code, what, where="", next=""):
    say(f"error[{code}]: {where + ': ' if where else ''}{what}")
    if next:
        say(f"  {next}")


def revision():
    return os.environ.get("RODEO_REVISION", "")


def executor_of(job):
    from . import executors

    wanted = dict(job["executor"])
    return executors.make(
        wanted.pop("kind"), **{name: value or None if name == "interface" else value for name, value in wanted.items()}
    )


def write_table(rows, kind, stream=None):
    """Writes rows as a table, CSV or JSON."""
    stream = stream or sys.stdout
    if kind == "json":
        print(json.dumps(rows, indent=2), file=stream)
        return
    columns = list(dict.fromkeys(name for row in rows for name in row))
    texts = [[_cell(row.get(name)) for name in columns] for row in rows]
    if kind == "csv":
        import csv

        writer = csv.writer(stream)
        writer.writerows([columns, *texts])
        return
    widths = [max(len(name), *(len(row[i]) for row in texts)) for i, name in enumerate(columns)]
    for row in [columns, *texts]:
        print("  ".join(text.rjust(width) for text, width in zip(row, widths)).rstrip(), file=stream)


def _cell(value):
    if value is None:
        return "-"
    if isinstance(value, float):
        return str(int(value)) if value.is_integer() and abs(value) < 1e15 else f"{value:.6g}"
    return str(value)


def write_json(value, file):
    text = json.dumps(value, indent=2) + "\n"
    if file == "-":
        sys.stdout.write(text)
    else:
        Path(file).write_text(text)


SHOWN = (
    "rate_hz",
    "rate_hz_with_drops",
    "buffer_bytes",
    "buffer_bytes_with_drops",
    "probes",
    "max_buffer_bytes",
    "drops",
    "events_completed",
    "overload",
)


def sweep(arguments):
    from . import fit, scenario, sweep as sweeping, units
    from .runner import Progress

    job = json.loads(Path(arguments.job).read_text())
    if job["sweep"] is None:
        complain(
            "config.missing_key", "there is no [network.sweep] in it", arguments.source, "rodeo explain network.sweep"
        )
        return INVALID
    whole = scenario.complete(job["scenario"])
    try:
        at_size, at_rate = (
            arguments.at.split(",") if arguments.at else (float(whole["event_size"]), float(whole["rate"]))
        )
        at = (units.size(at_size), units.rate(at_rate))
    except ValueError:
        complain(
            "cli.bad_value", f"--at: `{arguments.at}` is not an event size and a rate", "", "write it like 5MB,12kHz"
        )
        return USAGE
    executor = executor_of(job)
    try:
        rows, runner = sweeping.run(job, arguments.out, executor, Progress(), revision())
    finally:
        executor.close()
    axes = [axis["key"] for axis in job["sweep"]["axes"]]
    shown = [{name: value for name, value in row.items() if name in ("method", "seed", *axes, *SHOWN)} for row in rows]
    result = {
        "rows": rows,
        "runs": {"done": runner.ran, "known": runner.known},
        "files": [str(Path(arguments.out) / name) for name in ("journal.sqlite", "results.parquet", "runs.parquet")],
    }
    column = "buffer_bytes" if job["sweep"]["search"] == "buffer" else "max_buffer_bytes"
    if {"event_size", "rate"} <= set(axes) and any(row.get(column) for row in rows):
        try:
            scenario.check({**job["scenario"], "event_size": at[0], "rate": at[1]})
            result["fit"] = fit_of(rows, column, at, fit, units)
        except ValueError as refused:
            result["fit"] = {"refused": str(refused)}
            say(f"no fit at {at[0] * 1e-6:g} MB and {at[1] * 1e-3:g} kHz: {refused}")
    if arguments.json != "-":
        write_table(shown, arguments.output)
    say(f"{runner.ran} runs, {runner.known} known before; {', '.join(result['files'])}")
    if result.get("fit", {}).get("models"):
        found = result["fit"]
        say(
            f"fit: {found['value_mb']:.1f} +- {found['statistical_mb']:.1f} (statistical) +- {found['model_mb']:.1f} (model) MB at "
            f"{found['at_size_mb']:g} MB, {found['at_rate_khz']:g} kHz"
        )
    if arguments.json:
        write_json(result, arguments.json)
    return DONE


def fit_of(rows, column, at, fit, units):
    """The surface through all points of a sweep, extrapolated to `at` (bytes, hertz)."""
    import numpy as np

    grouped = {}
    for row in rows:
        if row.get(column) is not None:
            grouped.setdefault((units.size(row["event_size"]) * 1e-6, units.rate(row["rate"]) * 1e-3), []).append(
                row[column] * 1e-6
            )
    sizes, rates = (np.array([point[i] for point in grouped]) for i in (0, 1))
    means = np.array([np.mean(values) for values in grouped.values()])
    # A single value has no scatter: its error is half a percent, the difference of the engines.
    errors = np.array(
        [
            max(np.std(values, ddof=1) / len(values) ** 0.5 if len(values) > 1 else 0, 0.005 * mean)
            for values, mean in zip(grouped.values(), means)
        ]
    )
    size_mb, rate_khz = at[0] * 1e-6, at[1] * 1e-3
    found, fits = fit.extrapolate((sizes, rates, means, errors), size_mb, rate_khz)
    return {
        "at_size_mb": size_mb,
        "at_rate_khz": rate_khz,
        "value_mb": found.value,
        "statistical_mb": found.statistical,
        "model_mb": found.model,
        "models": {
            name: {
                "value_mb": prediction.value,
                "statistical_mb": prediction.statistical,
                "chi2": fits[name].chi2,
                "degrees": fits[name].degrees,
                "r2": fits[name].r2,
                "errors_scaled": fits[name].scaled,
                "terms": [f"S^{p} f^{q}" for p, q in fits[name].terms],
                "parameters": list(fits[name].parameters),
                "errors": list(np.sqrt(np.diag(fits[name].covariance))),
                "minos": [list(pair) for pair in fits[name].minos],
            }
            for name, prediction in found.by_model.items()
        },
    }


def plot(arguments):
    from . import plots, scenario, units
    from .journal import read_parquet

    rows = []
    for results in (arguments.results, *arguments.beside):
        path = Path(results)
        path = path / "results.parquet" if path.is_dir() else path
        if not path.is_file():
            complain(
                "cli.bad_value", "there are no results", str(path), "name the folder of a sweep, or its results.parquet"
            )
            return USAGE
        rows += read_parquet(path)
    columns = set().union(*rows) if rows else set()
    y = arguments.y or next((name for name in ("buffer_bytes", "rate_hz", "max_buffer_bytes") if name in columns), None)
    x = arguments.x or next((name for name in ("event_size", "rate", "mtu", "readouts") if name in columns), None)
    for name in (x, y, *arguments.by):
        if name not in columns:
            complain(
                "cli.bad_value",
                f"the results have no column {name}",
                str(path),
                "there are: " + ", ".join(sorted(columns)),
            )
            return USAGE
    readers = {
        "event_size": units.size,
        "buffer": units.size,
        "rate": units.rate,
        "node_link": units.bit_rate,
        "uplink": units.bit_rate,
    }
    for row in rows:
        if isinstance(row[x], str):
            row[x] = readers.get(x, float)(row[x])
    names = {
        "event_size": ("event size [MB]", 1e-6),
        "rate": ("event rate [kHz]", 1e-3),
        "rate_hz": ("highest rate without drops [kHz]", 1e-3),
        "buffer_bytes": ("smallest buffer without drops [MB]", 1e-6),
        "max_buffer_bytes": ("largest occupancy [MB]", 1e-6),
    }
    by = arguments.by or [
        name
        for name in (
            *(("method",) if arguments.beside else ()),
            "event_size",
            "rate",
            "arrivals",
            "assignment",
            "mtu",
            "readouts",
        )
        if name in columns and name != x
    ]
    figure, (ax,) = plots.canvas()
    (x_name, x_scale), (y_name, y_scale) = names.get(x, (x, 1)), names.get(y, (y, 1))

    def order(column, text):
        """Sorts quantities by value; words come after them, in alphabetical order."""
        try:
            return (0, readers.get(column, float)(text), text)
        except ValueError:
            return (1, 0.0, text)

    def show(column, text):
        try:
            return f"{column.replace('_', ' ')} {scenario.readable({column: text})[column]}"
        except (ValueError, KeyError):  # the name is that of a result, not of a setting
            return f"{column} = {text}"

    plots.lines(ax, rows, x, y, by, (x_scale, y_scale), order, show)
    ax.set_xlabel(x_name)
    ax.set_ylabel(y_name)
    ax.set_ylim(bottom=0)
    out = arguments.out or str(path.with_suffix(".png"))
    plots.save(figure, out)
    if arguments.beside:
        write_table(beside_each_other(rows, x, y, by), "table")
    print(out)
    return DONE


def beside_each_other(rows, x, y, by):
    """The picture as a table: a row for each x, a column for each line, with means over the repeats."""
    points = {}
    for row in rows:
        if row.get(y) is not None:
            points.setdefault(row[x], {}).setdefault(" ".join(str(row.get(name)) for name in by), []).append(row[y])
    names = list(dict.fromkeys(name for point in points.values() for name in point))
    return [
        {x: value, **{name: sum(found[name]) / len(found[name]) if name in found else None for name in names}}
        for value, found in sorted(points.items())
    ]


def occupancy(arguments):
    """Draws the picture of `rodeo net formula --plot`."""
    import numpy as np

    from . import plots
    from .closed_forms import superposition

    job = json.loads(Path(arguments.job).read_text())
    forms = job["formula"]
    arguments_of = {"input": forms["input_bps"], "output": forms["output_bps"], "ports": forms["ports"]}
    drawn = max(40, 4 * forms["paper_events"])
    figure, (ax,) = plots.canvas(size=(7, 4))
    period = 1 / forms["event_rate_hz"]
    end = drawn * period
    if job["points"]:
        end = min(max(time for time, _ in job["points"]), 3 * end)
        drawn = max(drawn, int(end / period) + 1)
    even = superposition(np.arange(drawn) * period, forms["event_wire_bytes"], forms["event_rate_hz"], **arguments_of)
    levels = [
        (forms["exact_bytes"], "exact", plots.COLOURS["simulation"]),
        (forms["paper_bytes"], "paper's formula", plots.COLOURS["paper"]),
        (forms["bound_bytes"], "bound, any arrivals", plots.COLOURS["laboratory"]),
    ]
    if job["points"]:
        times, held = zip(*job["points"])
        plots.occupancy(ax, times, held, label=forms["superposition"]["arrivals"], colour=plots.OTHERS[3])
    plots.occupancy(ax, even["time_s"], even["occupancy_bytes"], label="even intervals", levels=levels)
    ax.set_xlim(0, 1e3 * end)
    ax.set_title(f"{forms['event_wire_bytes'] * 1e-6:.4g} MB at {forms['event_rate_hz'] * 1e-3:g} kHz", fontsize=10)
    plots.save(figure, arguments.out)
    say(f"{arguments.out}")
    return DONE


def size(arguments):
    from . import report, size as sizing
    from .runner import Progress
    from .simulation import simulate

    job = json.loads(Path(arguments.job).read_text())
    executor = executor_of(job)
    try:
        found = sizing.size(job, arguments.out, executor, Progress(), revision())
    finally:
        executor.close()
    one = simulate(
        **{
            **sizing.plain(job["scenario"]),
            "duration": min(0.02, float(found["settings"]["duration"])),
            "occupancy": "20us",
        }
    )
    page = Path(arguments.out) / "report.html"
    # The series is in frames, the answer in the units that the switch counts.
    as_counted = one.numbers[sizing.counted(job["scenario"])] / max(one.max_buffer_bytes, 1)
    page.write_text(
        report.page(found, {**one.occupancy, "max_bytes": one.occupancy["max_bytes"] * as_counted}, arguments.source)
    )
    found["report"] = str(page)
    write_json(found, Path(arguments.out) / "size.json")
    if arguments.json:
        write_json(found, arguments.json)
    if arguments.json != "-":
        proof = found["proof"]
        print(
            f"buffer             {report.both(found['buffer_bytes'])}, {found['confidence']:.2%} of runs of {float(found['settings']['duration']):g} s, "
            f"{'the bound' if found['at_the_bound'] else format(found['margin'], '.0%') + ' margin'}, counted in {found['counted_in']}"
        )
        print(f"drops              {report.how_often(found)}")
        with_less = (
            "it is one packet, and no switch has less"
            if proof["one_packet"]
            else (
                f"with nine tenths of it {proof['nine_tenths_seeds_that_drop']} of {proof['nine_tenths_seeds']} runs drop"
            )
        )
        print(f"proof              {proof['drops']} drops with it; {with_less}")
        if found["dominant"]:
            print(
                f"dominates          {found['dominant']} ({found['assumptions'][0]['variant']}: {found['assumptions'][0]['ratio']:.2f} times)"
            )
        rate = found["switch"]["rate_hz"]
        print(
            f"the switch reaches {'less than a hundredth of the rate' if rate is None else f'{rate * 1e-3:.2f} kHz' + (' in each rack' if int(found['settings'].get('racks', 1)) > 1 else '')}"
            f"{' (an example: QFX5120, 27 MB)' if found['switch']['is_example'] else ''}"
        )
        print(f"report             {page}")
    if not (found["proof"]["proved"] and found["proof"]["tight"]):
        complain(
            "network.not_proved",
            "the answer is not proved: "
            + (
                "packets were dropped with it"
                if not found["proof"]["proved"]
                else "nine tenths of it drops nothing either, it may be larger than needed"
            ),
            next="more seeds, a longer duration, or another confidence",
        )
        return NOT_VERIFIED
    return DONE


def figures(arguments):
    from . import figures as making

    return making.main(arguments)


def parser():
    top = argparse.ArgumentParser(prog="python -m rodeo.network", description=__doc__)
    verbs = top.add_subparsers(dest="verb", required=True)
    for name, action in (
        ("sweep", sweep),
        ("size", size),
        ("occupancy", occupancy),
        ("plot", plot),
        ("figures", figures),
    ):
        verb = verbs.add_parser(name)
        verb.set_defaults(action=action)
        verb.add_argument("--out", default="")
        verb.add_argument("--json", default="")
        if name in ("sweep", "size", "occupancy"):
            verb.add_argument("--job", required=True)
            verb.add_argument("--source", default="")
        if name == "sweep":
            verb.add_argument("--output", default="table", choices=("table", "json", "csv"))
            verb.add_argument("--at", default="")
        if name == "plot":
            verb.add_argument("results")
            verb.add_argument("--x", default="")
            verb.add_argument("--y", default="")
            verb.add_argument("--by", action="append", default=[])
            verb.add_argument("--beside", action="append", default=[])
        if name == "figures":
            verb.add_argument("--methods", default="formula,simulation,laboratory")
            verb.add_argument("--quick", action="store_true")
            verb.add_argument("--workers", type=int, default=0)
    return top


def main():
    arguments = parser().parse_args()
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # a batch system ends jobs so; handle it like Ctrl-C
    if "RODEO" in os.environ:
        from .executors import end_with_parent

        end_with_parent(signal.SIGTERM)  # the process ends with the command, even if the command is killed
    try:
        return arguments.action(arguments)
    except KeyboardInterrupt:
        say("interrupted; completed runs are in the journal: the same command continues from there")
        return INTERRUPTED
    except ImportError as missing:
        complain(
            "cli.python",
            f"{sys.executable}: {missing}",
            next=f"{remedy()}, or name an interpreter that has it: RODEO_PYTHON=/path/to/python3",
        )
        return FAILED
    except ValueError as refused:
        text = str(refused)
        say(text if text.startswith("error[") else f"error[network.refused]: {text}")
        return INVALID
    except (RuntimeError, OSError) as failed:
        complain("network.failed", str(failed))
        return FAILED


if __name__ == "__main__":
    sys.exit(main())
