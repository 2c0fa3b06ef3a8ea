"""Closing a run recovers files that killed processes left open: with the real command, on files of a real readout."""

import asyncio
import shutil
import subprocess
from types import SimpleNamespace

import pytest
from conftest import BUILD, scaled
from looking import seen
from rodeo.control.run import event_files
from rodeo.control.run.closing import Closing
from rodeo.control.run.event_files import events_in, files_of, name_of, recover_open, still_open
from rodeo.control.state.conditions import conditions
from rodeo.control.state.system_state import derive
from test_derive import READY

READOUT = """
[readout]
name = "g"
[readout.input]
type = "generator"
links = 4
events = 200
rate = "0"
[readout.builder]
type = "gbt"
[readout.extractor]
type = "rodeo"
[[readout.rob]]
source_id = "0x00610001"
[[readout.consumer]]
type = "file_writer"
name = "writer"
directory = "files"
min_free = "0"
"""


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A closed file with 200 events."""
    directory = tmp_path_factory.mktemp("whole")
    (directory / "g.toml").write_text(READOUT)
    subprocess.run(
        [BUILD / "rodeo", "readout", "g.toml"], cwd=directory, check=True, capture_output=True, timeout=scaled(60)
    )
    (file,) = (directory / "files").glob("*.data")
    return file


def cut(file, path, bytes_):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(file.read_bytes()[:bytes_])


def recovered(folder, **options):
    return list(of_each(folder, **options).values())


def of_each(folder, **options):
    return asyncio.run(recover_open(BUILD / "rodeo", folder, **options))


def alarms(said):
    """Alarms on open files of the last run: {cause: sentence}."""
    looks = seen()
    left_open = {name_of(path): sentence for path, sentence in still_open(said).items()}
    found = conditions(derive(looks, None, None, READY), looks, left_open=left_open)
    assert all(
        (each.severity, each.rule) == ("warning", "file_left_open") and "rodeo data recover" in each.do
        for each in found
    )
    return {each.cause: each.what for each in found}


def names(folder):
    return sorted(path.name for path in folder.rglob("*") if path.is_file())


def test_whole_events_of_an_open_file_are_saved_and_counted(tmp_path, whole):
    cut(whole, tmp_path / "recorder" / "x._0003.writing", whole.stat().st_size - 5000)
    each = of_each(tmp_path)
    (said,) = each.values()
    (file,) = files_of(tmp_path)
    assert (
        file["state"] == "recovered"
        and file["path"].endswith("recorder/x._0003.recovered._0001.data")
        and 150 < file["events"] < 200
    )
    assert (
        said
        == f"recorder/x._0003.writing was left open: its {file['events']} events are in x._0003.recovered._0001.data"
        and alarms(each) == {}
    )
    assert recovered(tmp_path) == [] and names(tmp_path) == ["x._0003.recovered._0001.data"]


def test_the_events_of_a_closed_file_are_those_that_the_readout_wrote(whole):
    assert events_in(whole) == 200


def test_a_recovery_that_was_cut_short_is_done_anew_and_one_that_was_done_is_not(tmp_path, whole):
    cut(whole, tmp_path / "a" / "x._0001.writing", whole.stat().st_size - 5000)
    cut(whole, tmp_path / "a" / "x._0001.recovered._0001.writing", 100)
    recovered(tmp_path)
    assert names(tmp_path) == ["x._0001.recovered._0001.data"]
    cut(
        whole, tmp_path / "a" / "x._0001.writing", whole.stat().st_size - 5000
    )  # as if the process had been killed before it removed this file
    before = files_of(tmp_path)[0]["events"]
    assert f"its {before} events" in recovered(tmp_path)[0] and names(tmp_path) == ["x._0001.recovered._0001.data"]


def test_a_file_that_was_only_not_renamed_is_closed(tmp_path, whole):
    shutil.copy(whole, tmp_path / "x._0001.writing")
    assert "it is complete, and is now x._0001.data" in recovered(tmp_path)[0]
    assert [(each["state"], each["events"]) for each in files_of(tmp_path)] == [("closed", 200)]


def test_what_is_damaged_more_than_at_its_end_stays_beside_what_was_saved(tmp_path, whole):
    cut(whole, tmp_path / "a" / "x._0001.writing", whole.stat().st_size - 5000)
    with open(tmp_path / "a" / "x._0001.writing", "r+b") as file:
        file.seek(20_000)
        file.write(bytes(500))
    said = alarms(of_each(tmp_path))
    assert list(said) == ["file.left_open:a/x._0001.writing"] and "is kept" in said["file.left_open:a/x._0001.writing"]
    assert [each["state"] for each in files_of(tmp_path)] == ["recovered", "part"]


def test_an_open_file_without_an_event_stays_and_is_named(tmp_path, whole):
    cut(whole, tmp_path / "a" / "x._0001.writing", 2000)
    said = alarms(of_each(tmp_path))
    assert list(said) == ["file.left_open:a/x._0001.writing"]
    assert (
        "could not be recovered" in said["file.left_open:a/x._0001.writing"]
        and "no whole event" in said["file.left_open:a/x._0001.writing"]
    )
    assert [each["state"] for each in files_of(tmp_path)] == ["part"]


def test_files_of_processes_that_may_still_write_are_left_alone(tmp_path, whole):
    cut(whole, tmp_path / "recorder" / "x._0001.writing", whole.stat().st_size - 5000)
    assert recovered(tmp_path, living={"recorder"}) == [] and names(tmp_path) == ["x._0001.writing"]


def test_a_file_that_cannot_be_looked_at_counts_as_still_there(tmp_path):
    unknown = tmp_path / ("x" * 300)  # no file system accepts this name
    assert list(still_open({unknown: "it may be there", tmp_path / "missing": "it is gone"}).values()) == [
        "it may be there"
    ]


def test_files_that_cannot_be_listed_lose_no_sentence_of_a_recovery(tmp_path, monkeypatch):
    path = tmp_path / "a" / "x._0001.writing"
    path.parent.mkdir()
    path.write_text("")

    async def recover_open(*_):
        return {path: "it could not be recovered"}

    def files_of(_):
        raise OSError("stale file handle")

    monkeypatch.setattr(event_files, "recover_open", recover_open)
    monkeypatch.setattr(event_files, "files_of", files_of)
    c = SimpleNamespace(
        folders=SimpleNamespace(run=lambda _: tmp_path),
        observer=SimpleNamespace(members={}),
        telling=SimpleNamespace(left_open={}),
        rodeo="rodeo",
    )
    assert asyncio.run(Closing(c)._files(SimpleNamespace(), SimpleNamespace(number=7, lives={}), {}, {})) == (
        [],
        ["it could not be recovered"],
    )
    assert c.telling.left_open == {path: "it could not be recovered"}
