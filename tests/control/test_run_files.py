"""Event files of a run at its close: states, events, proven data, checksums. test_recovered.py tests recovery."""

import asyncio
import struct

import pytest
from rodeo.control.refused import Refused
from rodeo.control.run.event_files import events_in, files_of, hashed, mark_verified, proven

KINDS = {"a": "readout", "b": "readout", "r": "recorder", "s": "supervisor"}


def event_file(path, events, size=0):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(
        bytes(size) + struct.pack("<10I", 0x1234DDDD, 10, 28112026, 105500, events, 1, events, 1, 1, 0x1234EEEE)
    )


def test_each_file_has_its_state_and_the_events_that_its_end_says(tmp_path):
    event_file(tmp_path / "r" / "x._0001.data", 7, size=1000)
    event_file(tmp_path / "r" / "x._0002.recovered._0001.data", 6760)
    (tmp_path / "r" / "x._0003.writing").write_bytes(bytes(100))
    (tmp_path / "r" / "run.json").write_text("{}")
    found = [
        (each["path"].rpartition("/")[2], each["state"], each["events"], each["bytes"]) for each in files_of(tmp_path)
    ]
    assert found == [
        ("x._0001.data", "closed", 7, 1040),
        ("x._0002.recovered._0001.data", "recovered", 6760, 40),
        ("x._0003.writing", "part", None, 100),
    ]


@pytest.mark.parametrize(
    "content", [b"", bytes(39), bytes(400), struct.pack("<10I", 0x1234DDDD, 10, 1, 1, 9, 1, 9, 1, 1, 0)]
)
def test_a_file_without_an_end_has_a_number_of_events_that_nobody_knows(tmp_path, content):
    (tmp_path / "x.data").write_bytes(content)
    assert events_in(tmp_path / "x.data") is None and events_in(tmp_path / "y.data") is None


def report(built=100, verified=100, mismatches=0, **more):
    return {
        "chunks": {"sent": built, "built": built, "lost": {}},
        "verified": {"chunks": verified, "mismatches": mismatches},
        "consumers": {"verify": {"counters": {"verified_chunks": verified}}, "writer": {"consumed": 10, **more}},
    }


@pytest.mark.parametrize(
    ("of_a", "of_b", "a", "r"),
    [
        (report(), report(), True, True),
        (report(), report(verified=10), True, False),  # the readout has checked one fragment in ten
        (report(mismatches=1), report(), False, False),
        (report(built=0, verified=0), report(), False, False),
        (
            {
                **report(),
                "consumers": {"x": {"counters": {"verified_chunks": 50}}, "y": {"counters": {"verified_chunks": 50}}},
            },
            report(),
            False,
            False,
        ),
        (report(), None, True, False),
        (None, report(), False, False),
        ({}, report(), False, False),
    ],
)
def test_a_file_is_verified_where_every_chunk_in_it_was(of_a, of_b, a, r):
    yes = proven({"a": of_a, "b": of_b, "r": {}, "r#2": {}, "s": {}}, KINDS)
    assert yes["a"] is a and yes["r"] is r and yes["r#2"] is r and "s" not in yes


def test_only_closed_files_of_that_process_are_verified(tmp_path):
    paths = ("a/x.data", "a.2/x.data", "a/writer/y.data", "b/x.data", "r/x.data", "r/x.recovered._0001.data", "x.data")
    files = [
        {"path": str(tmp_path / path), "state": "recovered" if "recovered" in path else "closed"} for path in paths
    ]
    mark_verified(files, tmp_path, {"a": report(), "a#2": report(verified=3), "b": report(), "r": None}, KINDS)
    assert [each["verified"] for each in files] == [True, False, True, True, False, False, False]
    mark_verified(files, tmp_path, {"a": report(), "b": report(), "r": None}, KINDS)
    assert [each["verified"] for each in files] == [True, False, True, True, True, False, False]


def test_files_whose_checksums_are_made_keep_them_when_the_host_falls_silent():
    class Host:
        async def sha256(self, paths):
            if paths != ["a"]:
                raise Refused("control.host_silent", "it does not answer", "")
            return {"a": "0a"}

    files = [{"path": path, "state": state} for path, state in (("a", "closed"), ("b", "recovered"), ("c", "part"))]
    assert [each["sha256"] for each in asyncio.run(hashed(Host(), files))] == ["0a", None, None]
