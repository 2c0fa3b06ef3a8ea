"""`rodeo runs`: lists, one run, comparison of two runs, the exact configuration as files, copies of runs between databases, and the audit."""

import asyncio
import csv
import io
import json
import os
import sqlite3
from types import SimpleNamespace

import pytest
from databases import CONFIGURATION, begin, end, good, opened, whole_run
from rodeo.control import paths
from rodeo.control.cli import runs, runs_verbs
from rodeo.control.database import configuration_files, queries, run_json
from rodeo.control.printed import Cell, folded, number, properties, table
from rodeo.control.refused import Refused
from rodeo.control.state import system


@pytest.fixture(scope="module")
def lab(tmp_path_factory):
    """A database with three runs: 1 is complete, 2 is complete with another setting and comment, 3 is open."""
    directory = tmp_path_factory.mktemp("lab")

    async def fill():
        async with opened(directory) as database:
            await whole_run(database)
            classes = {
                "reader": {
                    **CONFIGURATION["classes"]["reader"],
                    "values": {"readout.threads": "3", "readout.name": '"reader"'},
                }
            }
            await whole_run(
                database, configuration={**CONFIGURATION, "classes": classes}, comment="", run_type="cosmics"
            )
            await begin(database, holder="bob, jun.")
            await good(database)

    asyncio.run(fill())
    return directory


@pytest.fixture
def verb(lab, capsys, monkeypatch):
    """verb("list", "-o", "json"): (exit status, stdout, stderr) in the laboratory's directory."""

    def run(*argv, at=lab):
        monkeypatch.chdir(at)
        monkeypatch.delenv("RODEO_DATABASE", raising=False)
        status = runs_verbs.main([str(each) for each in argv])
        said = capsys.readouterr()
        return status, said.out, said.err

    return run


def test_list_has_units_in_titles_and_numbers_to_the_right(verb):
    status, out, _ = verb("list")
    lines = out.splitlines()
    assert (
        status == 0
        and lines[0].startswith("run  started (UTC)")
        and "size [MB]" in lines[0]
        and "length [s]" in lines[0]
    )
    assert (
        [line.split()[0] for line in lines[1:]] == ["3", "2", "1"]
        and "OPEN" in lines[1]
        and "GOOD" in lines[3]
        and lines[3].endswith("first light")
    )
    end_of_size = lines[0].index("size [MB]") + len("size [MB]")
    assert lines[3][:end_of_size].endswith(" 0.0") and lines[1][:end_of_size].endswith(" 0.0")


def test_all_runs_are_told_however_many_there_are(verb, tmp_path, monkeypatch):
    monkeypatch.setattr(queries, "MOST_RUNS", 2)
    assert [row["number"] for row in json.loads(verb("list", "--limit", "0", "-o", "json")[1])] == [3, 2, 1]
    assert "older ones" in verb("list", "--limit", "2")[1] and "older ones" not in verb("list", "--limit", "3")[1]
    assert len(json.loads(verb("export", "--to", tmp_path, "-o", "json")[1])["files"]) == 3


def test_events_are_what_the_books_say_where_a_run_has_them(tmp_path):
    async def main():
        async with opened(tmp_path) as database:
            number = await begin(database)
            await database.writer.counters(number, "reader", {"fragments_built": 8}, 77)
            await database.writer.counters(number, "", {"events": 3}, 77)
            await end(database, number)
            await good(database)
            return (await database.reads.runs())[0]["events"], (await database.reads.run(number))["events"]

    assert asyncio.run(main()) == (3, 3)


def test_list_as_json_and_csv_has_base_units_and_all_of_the_text(verb):
    rows = json.loads(verb("list", "-o", "json")[1])
    assert [row["number"] for row in rows] == [3, 2, 1] and (
        rows[2]["bytes"],
        rows[2]["seconds"],
        rows[2]["files"],
        rows[2]["flags"],
    ) == (4096, 2.0, 1, [])
    table_ = list(csv.DictReader(io.StringIO(verb("list", "-o", "csv")[1])))
    assert table_[0]["holder"] == "bob, jun." and table_[0]["closed_ns"] == "" and table_[2]["bytes"] == "4096"


@pytest.mark.parametrize(
    "choice, numbers",
    [
        (["--limit", "1"], [3]),
        (["--before", "3"], [2, 1]),
        (["--condition", "good"], [2, 1]),
        (["--state", "open"], [3]),
        (["--type", "cosmics"], [2]),
        (["--holder", "ana"], [2, 1]),
        (["--since", "1h"], [3, 2, 1]),
        (["--until", "2020-01-01"], []),
        (["--flag", "DEGRADED"], []),
        (["--limit", "0"], [3, 2, 1]),
    ],
)
def test_list_shows_what_was_chosen(verb, choice, numbers):
    assert [row["number"] for row in json.loads(verb("list", "-o", "json", *choice)[1])] == numbers


def test_a_list_that_is_cut_says_how_to_go_on_and_an_empty_one_what_to_do(verb, tmp_path):
    assert verb("list", "--limit", "2")[1].splitlines()[-1] == "older ones: rodeo runs list --before 2"
    assert "rodeo runs list without" in verb("list", "--type", "none")[1]

    async def empty():
        async with opened(tmp_path):
            pass

    asyncio.run(empty())
    assert "rodeo control start" in verb("list", at=tmp_path)[1]


def test_show_has_all_of_a_run_and_without_a_number_the_last(verb):
    status, out, _ = verb("show", 1)
    for part in (
        "GOOD",
        "first light",
        "READY",
        "reader",
        "/data/run.data",
        "a" * 16,
        "fragments_built",
        "stall",
        "beam was off",
        "muons",
        "size [MB]",
    ):
        assert part in out, part
    assert status == 0 and "bob, jun." in verb("show")[1]
    assert json.loads(verb("show", "1", "-o", "json")[1])["processes"][0]["report"]["chunks"] == {"sent": 8}


def test_diff_shows_what_is_not_equal_and_no_more(verb):
    found = json.loads(verb("diff", 1, 2, "-o", "json")[1])
    assert (
        found["configuration"] == [{"class": "reader", "key": "readout.threads", "a": "2", "b": "3"}]
        and found["counters"] == []
    )
    assert found["run"] == {"type": ["physics", "cosmics"], "comment": ["first light", ""]}
    out = verb("diff", 1, 2)[1]
    assert "readout.threads" in out and "run 1" in out and "readout.name" not in out
    assert "differ only in" in verb("diff", 1, 1)[1]
    assert json.loads(verb("diff", 1, 3, "-o", "json")[1])["run"]["files"] == ["1 closed", None], (
        "not their names and checksums, which always differ"
    )


def test_acceptance_25_config_writes_the_exact_files_of_a_run_and_overwrites_nothing(verb, tmp_path):
    status, out, _ = verb("config", 1, "--directory", tmp_path / "c")
    assert status == 0 and str(tmp_path / "c" / "lab.toml") in out.splitlines()
    assert (tmp_path / "c" / "lab.toml").read_bytes() == CONFIGURATION["system"].encode()
    assert (tmp_path / "c" / "readers" / "reader.toml").read_bytes() == b"[readout]\r\n# exact\n"
    assert "readout.threads = 2" in (tmp_path / "c" / "effective" / "reader.txt").read_text()
    summary = json.loads((tmp_path / "c" / "configuration.json").read_text())
    assert (
        summary["processes"]["reader"]["settings"] == ["readout.name=lab-reader"]
        and summary["processes"]["reader"]["file"] == "readers/reader.toml"
    )
    status, _, err = verb("config", 2, "--directory", tmp_path / "c")
    assert status == 5 and "control.exists" in err


@pytest.mark.parametrize(
    "file, path",
    [
        ("/there/a.toml", "a.toml"),
        ("/there/x/../b.toml", "b.toml"),
        ("/elsewhere/c.toml", "elsewhere/c.toml"),
        ("/there/../../etc/passwd", "elsewhere/passwd"),
        ("../../d.toml", "elsewhere/d.toml"),
        ("/there/..", "elsewhere/.."[:9] + "/file"),
    ],
)
def test_no_row_of_a_database_writes_outside_of_the_directory(file, path):
    one = {"file": file, "text": "x", "values": {}, "origins": {}}
    written = configuration_files.files_of({"system": "", "file": "/there/lab.toml", "classes": {"c": one}})
    assert all(".." not in each.split("/") and not each.startswith("/") for each in written) and (
        path in written or file.endswith("..")
    )


def test_what_is_exported_is_imported_equal_and_only_once(verb, tmp_path):
    assert verb("export", 1, 2, "--to", tmp_path / "out")[0] == 0
    database = tmp_path / "other" / "runs.db"
    database.parent.mkdir()
    status, out, err = verb(
        "import", tmp_path / "out" / "run-000001.json", tmp_path / "out" / "run-000002.json", "--database", database
    )
    assert (status, err) == (0, "") and out.count("imported") == 2
    assert verb("import", tmp_path / "out" / "run-000001.json", "--database", database)[1].count("there already") == 1
    before, after = (json.loads(verb("show", 1, "-o", "json", *where)[1]) for where in ([], ["--database", database]))
    for each in (before, after):
        for note in each["notes"]:
            note.pop("id")
    assert before == after
    assert json.loads(verb("export", 2, "--to", "-")[1])["format"] == "rodeo-run"


def test_a_database_goes_on_behind_what_it_imported(verb, tmp_path):
    verb("export", 2, "--to", tmp_path)

    async def main():
        async with opened(tmp_path) as database:
            assert verb("import", tmp_path / "run-000002.json", "--database", tmp_path / "runs.db")[0] == 0
            assert await begin(database) == 3

    asyncio.run(main())


def test_an_open_run_is_closed_by_its_import(verb, tmp_path):
    verb("export", 3, "--to", tmp_path)
    assert verb("import", tmp_path / "run-000003.json", "--database", tmp_path / "runs.db")[0] == 0
    run = json.loads(verb("show", 3, "-o", "json", "--database", tmp_path / "runs.db")[1])
    assert run["state"] == "CLOSED" and "unknown" in run["reason"]


def test_what_cannot_be_imported_is_named_and_the_rest_is(verb, tmp_path):
    verb("export", 1, "--to", tmp_path)
    whole = json.loads((tmp_path / "run-000001.json").read_text())
    bad = {
        "other.json": {**whole, "asked_ns": 1},
        "no.json": {"events": 3},
        "newer.json": {**whole, "version": 99},
        "torn.json": None,
        "lacks.json": {"format": "rodeo-run", "version": 1, "number": 7},
    }
    for name, value in bad.items():
        (tmp_path / name).write_text(json.dumps(value) if value else "{")
    status, out, _ = verb(
        "import",
        tmp_path / "run-000001.json",
        *(tmp_path / name for name in bad),
        "--database",
        tmp_path / "runs.db",
        "-o",
        "json",
    )
    outcomes = [row["outcome"] for row in json.loads(out)]
    assert (
        status == 6
        and outcomes[0] == "imported"
        and len(set(outcomes)) == 6
        and "another run has the number 1" in outcomes[1]
        and all(outcomes)
    )
    assert len(json.loads(verb("list", "-o", "json", "--database", tmp_path / "runs.db")[1])) == 1
    assert verb("import", tmp_path / "torn.json", "--database", tmp_path / "runs.db")[0] == 1


def test_an_odd_number_does_not_spoil_a_database(verb, tmp_path):
    database = tmp_path / "runs.db"
    verb("export", 1, "--to", tmp_path)
    whole = json.loads((tmp_path / "run-000001.json").read_text())
    odd = [0, -3, 2**31, 10**17]
    for number_ in odd:
        (tmp_path / f"{number_}.json").write_text(json.dumps({**whole, "number": number_}))
        (tmp_path / f"report{number_}.json").write_text(
            json.dumps({**REPORT, "run": {**REPORT["run"], "number": number_}})
        )
    status, out, _ = verb(
        "import",
        *(tmp_path / f"{what}{number_}.json" for what in ("", "report") for number_ in odd),
        "--database",
        database,
        "-o",
        "json",
    )
    assert status == 1 and all("number" in row["outcome"] for row in json.loads(out))
    assert (
        verb("take", "--database", database, "--least", 2**31)[0]
        == verb("take", "--database", database, "--least", 10**17)[0]
        == 2
    )
    assert verb("take", "--database", database)[1] == "1\n"
    # A row that an older version has damaged does not stop the copy.
    with sqlite3.connect(database) as spoiled:
        spoiled.execute("insert into run_number (system, last) values ('other', 100000000000000000)")
    assert verb("take", "--database", database)[1] == "2\n"
    assert verb("take", "--database", database, "--least", 2**31 - 1)[1] == "2147483647\n"
    status, _, err = verb("take", "--database", database)
    assert status == 5 and "its last run number" in err


def test_what_holds_no_run_is_a_row_among_others_and_a_pipe_is_refused(verb, tmp_path):
    verb("export", 1, "--to", tmp_path)
    (tmp_path / "empty").mkdir()
    os.mkfifo(tmp_path / "pipe")
    status, out, _ = verb(
        "import",
        tmp_path / "empty",
        tmp_path / "pipe",
        tmp_path / "run-000001.json",
        "--database",
        tmp_path / "runs.db",
        "-o",
        "json",
    )
    assert status == 6 and {row["file"].rsplit("/", 1)[1]: row["outcome"] == "imported" for row in json.loads(out)} == {
        "empty": False,
        "pipe": False,
        "run-000001.json": True,
    }
    status, _, err = verb("import", tmp_path / "pipe", "--database", tmp_path / "runs.db")
    assert status == 1 and "not a regular file" in err


@pytest.mark.parametrize("text", ["99999999999999d", "9999-01-01", "0001-01-01", "1e9d"])
def test_a_time_that_nobody_can_mean_is_refused(verb, text):
    status, _, err = verb("list", "--since", text)
    assert status == 2 and "error[control.argument]" in err


def test_folders_of_runs_are_imported_and_records_of_readouts_are_not_taken_for_runs(verb, tmp_path):
    async def main():
        async with opened(tmp_path) as database:
            for _ in range(2):
                number_ = await begin(database)
                await end(database, number_)
                folder = tmp_path / "runs" / f"{number_:06d}"
                path = run_json.write(folder, await database.reads.run(number_))
                assert run_json.read(path)["number"] == number_
                (folder / "reader").mkdir()
                (folder / "reader" / "run.json").write_text("{}")

    asyncio.run(main())
    assert [path.parent.name for path in run_json.found([tmp_path])] == ["000001", "000002"]
    assert verb("import", tmp_path, "--database", tmp_path / "again.db")[1].count("imported") == 2
    with pytest.raises(Refused, match="no run.json"):
        run_json.found([tmp_path / "runs" / "000001" / "reader"])


def test_the_audit_is_shown_and_proven(verb, lab, tmp_path):
    status, out, _ = verb("audit")
    assert status == 0 and out.splitlines()[-1] == "2 rows, none changed or missing" and "shifter" in out
    assert json.loads(verb("audit", "-o", "json")[1])["verified"] is True
    copy = sqlite3.connect(tmp_path / "copy.db")
    with sqlite3.connect(lab / "runs.db") as source:
        source.backup(copy)
    source.close()
    with copy:
        copy.execute("update audit set actor = 'eve' where id = 1")
    copy.close()
    status, out, err = verb("audit", "--database", tmp_path / "copy.db")
    assert status == 7 and "row 1" in err and "none changed" not in out


@pytest.mark.parametrize(
    "argv, status, code",
    [
        (["show", "9"], 2, "control.no_run_number"),
        (["show", "x"], 2, "control.argument"),
        (["lists"], 2, "control.unknown_verb"),
        (["list", "--since", "noon"], 2, "control.argument"),
        (["list", "--database", "/nowhere/runs.db"], 5, "control.database"),
        (["list", "--database", "nosuch://x"], 5, "control.database"),
        (["export", "1", "2", "--to", "-"], 2, "control.argument"),
        (["list", "--system", "/nowhere"], 3, "control.system"),
    ],
)
def test_what_goes_wrong_says_what_to_do(verb, argv, status, code):
    got, out, err = verb(*argv)
    assert (got, out) == (status, "") and err.startswith(f"error[{code}]: ") and len(err.splitlines()) > 1


def test_which_database_is_meant(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("RODEO_RUNTIME_DIR", str(tmp_path / "run"))
    monkeypatch.delenv("RODEO_DATABASE", raising=False)
    with pytest.raises(Refused) as refused:
        runs.database_url()
    assert refused.value.code == "control.which_database"
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "runs.db").touch()
        if name == "a":
            assert runs.database_url() == f"sqlite:///{tmp_path}/a/runs.db"
    with pytest.raises(Refused, match="several run databases"):
        runs.database_url()
    monkeypatch.setenv("RODEO_DATABASE", "postgresql+psycopg://host/lab")
    assert (
        runs.database_url() == "postgresql+psycopg://host/lab"
        and runs.database_url("x.db") == f"sqlite:///{tmp_path}/x.db"
    )
    assert runs.database_url(system=tmp_path / "b") == f"sqlite:///{tmp_path}/b/runs.db"


def test_nothing_in_a_table_moves_the_cursor_and_wide_letters_keep_their_columns():
    lines = table(
        ["name", "n"],
        [[Cell("a\x1b[31m\nb"), Cell(1)], [Cell("束線"), Cell(None)], [Cell("e\u0301"), number(1234567, 1000, 1)]],
        styled=False,
    )
    assert lines == ["name            n", "a?[31m b        1", "束線            -", "e\u0301         1 234.6"]
    assert properties([("a", Cell(None)), ("long", Cell(["x", "y"]))], styled=False) == ["a     -", "long  x, y"]


def test_every_verb_has_help(capsys):
    for name in runs_verbs.VERBS:
        with pytest.raises(SystemExit) as left:
            runs_verbs.main([name, "--help"])
        assert left.value.code == 0 and f"rodeo runs {name}" in capsys.readouterr().out
    assert runs_verbs.main(["--help"]) == 0 and runs_verbs.main([]) == 2


REPORT = {
    "run": {"name": "bench", "number": 4, "seconds": 2.5, "condition": "INCOMPLETE", "failure": ""},
    "links": 1,
    "chunks": {"sent": 10, "built": 9, "lost": {"late": 1}},
    "fragments": {"built": 9, "incomplete": 1},
    "bytes": {"in": 100, "payload": 90, "written": 80},
    "files": ["bench.data", "gone.data"],
    "input": {"card_lost_packets": 1},
}


def test_a_readout_without_a_control_room_takes_a_number_and_its_report_becomes_a_run(verb, tmp_path):
    database = tmp_path / "runs.db"
    assert verb("take", "--database", database)[1] == "1\n" and json.loads(
        verb("take", "--database", database, "-o", "json")[1]
    ) == {"run": 2}
    (tmp_path / "bench.data").write_bytes(b"12345")
    (tmp_path / "report.json").write_text(json.dumps(REPORT))
    assert verb("import", tmp_path / "report.json", "--database", database)[0] == 0
    row = json.loads(verb("show", 4, "--database", database, "-o", "json")[1])
    assert (row["system"], row["state"], row["condition"], row["seconds"], row["events"]) == (
        "readout",
        "CLOSED",
        "INCOMPLETE",
        2.5,
        9,
    )
    assert {
        (each["path"].rsplit("/", 1)[1], each["bytes"], each["state"])
        for each in row["files"]
        if isinstance(row["files"], list)
    } == {("bench.data", 5, "closed"), ("gone.data", None, "missing")}
    assert {each["name"]: each["value"] for each in row["counters"]}["lost_late"] == 1 and row["processes"][0][
        "report"
    ]["chunks"]["built"] == 9
    assert "there already" in verb("import", tmp_path / "report.json", "--database", database)[1]
    assert verb("take", "--database", database)[1] == "5\n", "after the number of the report"
    assert (
        verb("take", "--database", database, "--least", 9)[1] == "9\n"
        and verb("take", "--database", database, "--least", 3)[1] == "10\n"
    )
    (tmp_path / "other.json").write_text(json.dumps({**REPORT, "run": {**REPORT["run"], "seconds": 1.0}}))
    assert verb("import", tmp_path / "other.json", "--database", database)[0] == 1, "another run has its number"


def test_a_control_room_and_readouts_without_one_never_get_the_same_number(verb, tmp_path):
    async def main():
        async with opened(tmp_path) as database:
            first = await begin(database)
            taken = [int(verb("take", "--database", tmp_path / "runs.db")[1]) for _ in range(3)]
            await end(database, first)
            second = await begin(database)
            return first, taken, second

    first, taken, second = asyncio.run(main())
    assert [first, *taken, second] == [1, 2, 3, 4, 5]


@pytest.mark.parametrize(
    "wrong", [{**REPORT, "run": {"seconds": 1.0, "condition": "GOOD", "number": 0}}, {**REPORT, "run": {"number": "x"}}]
)
def test_a_report_without_a_number_is_no_run(verb, tmp_path, wrong):
    (tmp_path / "report.json").write_text(json.dumps(wrong))
    status, out, _ = verb("import", tmp_path / "report.json", "--database", tmp_path / "runs.db")
    assert status == 1 and "the report has no run number" in out


def test_a_table_fits_a_narrow_terminal():
    titles = ["run", "length [s]", "flags", "what happened during it"]
    rows = [[Cell(12), number(3.25, digits=1), Cell(None), Cell("a link fell silent and came back")]]
    assert table(titles, rows, columns=0, if_any=["flags"]) == [
        "run  length [s]  what happened during it",
        " 12         3.2  a link fell silent and came back",
    ]
    assert table(titles, rows, columns=36, if_any=["flags"]) == [
        "     length",
        "run     [s]  what happened during it",
        " 12     3.2  a link fell silent and",
        "             came back",
    ]
    assert table(titles, rows, columns=14, if_any=["flags"]) == [
        "     length",
        "run     [s]",
        " 12     3.2",
        "    what",
        "      happened",
        "      during",
        "      it a",
        "      link",
        "      fell",
        "      silent",
        "      and came",
        "      back",
    ]


def test_numbers_are_rounded_for_people():
    assert Cell(0.45494375634065043).text == "0.4549" and Cell(12).text == "12" and Cell(123456.7).text == "123457"


def test_long_values_continue_below_their_values():
    assert properties([("reason", Cell("a card of the run is lost"))], columns=30) == [
        "reason  a card of the run is",
        "        lost",
    ]
    assert folded("rate 1 | dead 2 | events 3", 16) == "rate 1 | dead 2\n  | events 3"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--condition", "bad"], "`bad` is not one of GOOD, INCOMPLETE, WRONG, ABORTED"),
        (["--condition", "incomplet"], "did you mean INCOMPLETE?"),
        (["--state", "shut"], "is not one of OPEN, CLOSED, ABORTED"),
        (["--flag", "tainte"], "did you mean TAINTED?"),
        (["--conditon", "good"], "there is no option `--conditon`\n  did you mean `--condition`?"),
        (["every"], "unexpected argument `every`"),
    ],
)
def test_a_filter_or_an_option_that_does_not_exist_is_refused(verb, arguments, said):
    status, out, err = verb("list", *arguments)
    assert status == 2 and said in err and not out


def test_a_directory_has_the_database_that_its_system_file_names(lab, tmp_path, monkeypatch):
    monkeypatch.setattr(paths, "rodeo_command", lambda: "rodeo")
    monkeypatch.setattr(
        system, "load", lambda path, *_, **__: SimpleNamespace(database=None, directory=tmp_path / "elsewhere")
    )
    (tmp_path / "run.toml").write_text("[readout]\n")
    assert runs.database_url(system=tmp_path) == f"sqlite:///{tmp_path}/runs.db", "no system file is here"
    (tmp_path / "system.toml").write_text("[control]\ndirectory = 'elsewhere'\n")
    assert runs.database_url(system=tmp_path) == f"sqlite:///{tmp_path}/elsewhere/runs.db"
    (tmp_path / "other.toml").write_text("[control]\n")
    with pytest.raises(Refused, match="several system files"):
        runs.database_url(system=tmp_path)
