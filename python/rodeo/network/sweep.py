"""`rodeo net sweep`: every combination of the axes, with repeats, as single runs or searches. Results go to a journal, Parquet, and a table."""

import itertools
from pathlib import Path

from . import search
from .journal import Journal, write_parquet
from .methods import Task
from .runner import Runner


def points(axes):
    """All combinations of the axes' values, as dicts; the first axis varies slowest."""
    names = [axis["key"] for axis in axes]
    if len(set(names)) != len(names):
        raise ValueError("an axis stands twice in the sweep")
    return [dict(zip(names, values)) for values in itertools.product(*(axis["values"] for axis in axes))]


def sequences(job):
    """Returns ({(number of the point, repeat): generator of its runs}, points)."""
    sweep = job["sweep"]
    all_points = points(sweep["axes"])
    made = {}
    for number, point in enumerate(all_points):
        for repeat in range(sweep["repeats"]):
            task = Task(sweep["method"], {**job["scenario"], **point, "seed": sweep["seed"] + repeat})
            made[number, repeat] = (
                one_run(task)
                if sweep["search"] == "none"
                else search.bisect(
                    task, sweep["search"], sweep["low"], sweep["high"], sweep["tolerance"], sweep["drops_allowed"]
                )
            )
    return all_points, made


def one_run(task):
    return (yield task)


def rows_of(job, all_points, found):
    """One row a run or a search."""
    sweep = job["sweep"]
    rows = []
    for (number, repeat), result in sorted(found.items()):
        row = {"method": sweep["method"], **all_points[number], "seed": sweep["seed"] + repeat}
        if sweep["search"] == "none":
            row |= result
        else:
            name = "rate_hz" if sweep["search"] == "rate" else "buffer_bytes"
            row |= {name: result.good, f"{name}_with_drops": result.bad, "probes": result.probes}
        rows.append(row)
    return rows


def run(job, directory, executor, progress=None, revision=""):
    """Does the runs that the journal in `directory` lacks, writes results.parquet and runs.parquet there, and returns rows and runner."""
    directory = Path(directory)
    all_points, made = sequences(job)
    with Journal(directory / "journal.sqlite", revision) as journal:
        runner = Runner(journal, executor, progress)
        rows = rows_of(job, all_points, runner.drive(made))
        write_parquet(rows, directory / "results.parquet")
        write_parquet(list(journal.rows()), directory / "runs.parquet")
    return rows, runner
