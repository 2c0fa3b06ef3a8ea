"""`rodeo readout --database`: a readout without a control room takes its number from the run database, and its report becomes a run there."""

import json
import os

from running_readout import CONFIGURATION, running, write_configuration

UNNUMBERED = CONFIGURATION.replace("number = 7\n", "")


def runs(rodeo, database):
    return json.loads(rodeo("runs", "list", "--database", database, "-o", "json").stdout)


def short_run(rodeo, database, *more, exit_code=0):
    return rodeo(
        "readout",
        write_configuration(rodeo, UNNUMBERED),
        "--events",
        200,
        "--database",
        database,
        "--json",
        "report.json",
        *more,
        exit_code=exit_code,
    )


def test_each_run_has_its_number_and_its_row(rodeo):
    database = rodeo.directory / "runs.db"
    first = short_run(rodeo, database)
    assert "run 1 of " in first.stderr and f"run 1 is in {database}" in first.stderr
    short_run(rodeo, database)
    report = json.loads((rodeo.directory / "report.json").read_text())
    newest, oldest = runs(rodeo, database)
    assert (report["run"]["number"], newest["number"], oldest["number"]) == (2, 2, 1)
    assert (
        newest["condition"] == "GOOD"
        and newest["system"] == report["run"]["name"]
        and newest["events"] == report["fragments"]["built"]
    )
    whole = json.loads(rodeo("runs", "show", 2, "--database", database, "-o", "json").stdout)
    assert {each["path"] for each in whole["files"]} == {
        os.path.join(rodeo.directory, name) for name in report["files"]
    } and all(each["bytes"] for each in whole["files"])


def test_a_number_that_a_file_has_is_not_given_again(rodeo):
    """The file belongs to a run that the database does not know."""
    short = rodeo("readout", write_configuration(rodeo, UNNUMBERED), "--events", 200)
    assert "run 1 of " in short.stderr
    assert "run 2 of " in short_run(rodeo, rodeo.directory / "new.db").stderr


def test_a_run_that_is_interrupted_has_its_row(rodeo):
    database = rodeo.directory / "runs.db"
    with running(rodeo, text=UNNUMBERED, options=("--database", database)) as run:
        report, _ = run.finish()
    assert [(row["number"], row["condition"]) for row in runs(rodeo, database)] == [(report["run"]["number"], "GOOD")]


def test_what_cannot_give_a_number_starts_no_run(rodeo):
    (rodeo.directory / "none.db").write_text("no database")
    refused = short_run(rodeo, rodeo.directory / "none.db", exit_code=5)
    assert "error[control.database]" in refused.stderr and "getting ready" not in refused.stderr
    both = short_run(rodeo, rodeo.directory / "runs.db", "--set", "run.number=7", exit_code=2)
    assert "run.number = 7" in both.stderr
    held = short_run(rodeo, rodeo.directory / "runs.db", "--hold", exit_code=2)
    assert "--hold" in held.stderr and not (rodeo.directory / "runs.db").exists()


def test_a_report_that_the_database_does_not_take_is_kept(rodeo):
    """The directory of the database is gone at the end of the run."""
    lab = rodeo.directory / "lab"
    lab.mkdir()
    with running(rodeo, text=UNNUMBERED, options=("--database", lab / "runs.db")) as run:
        lab.rename(rodeo.directory / "moved")
        report, talk = run.finish(exit_code=1)
    kept = rodeo.directory / f"run-{report['run']['number']:06d}-report.json"
    assert f"is not in {lab / 'runs.db'}" in talk and json.loads(kept.read_text())["run"] == report["run"]
    rodeo("runs", "import", kept, "--of", report["run"]["name"], "--database", rodeo.directory / "moved" / "runs.db")
    assert len(runs(rodeo, rodeo.directory / "moved" / "runs.db")) == 1
