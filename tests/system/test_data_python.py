"""rodeo.data as a user imports it, compared with a reader that shares no code with it (event_files.py)."""

import gc
import json
import os
import resource
import shutil
import signal
import struct
import subprocess
import sys
import threading
import time
import zlib
from pathlib import Path

import numpy as np
import pytest
from conftest import BUILD, ROOT, scaled
from event_files import read_event_file
from running_readout import running

if not list((BUILD / "python" / "rodeo").glob("_data*.so")):
    pytest.skip(
        "this build has no Python modules (sanitizers, or python3-dev or nanobind is missing)", allow_module_level=True
    )
sys.path.insert(0, str(BUILD / "python"))
import rodeo as rodeo_package  # noqa: E402
from rodeo import data  # noqa: E402

NAME = "{}.00431493.physics_Main.daq.RAW._lb0012._sample._{:04}.data"


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    directory = tmp_path_factory.mktemp("samples")
    subprocess.run([BUILD / "tests/storage/write_sample_files", directory], check=True, timeout=scaled(30))
    return directory


@pytest.fixture
def samples(made, tmp_path):
    return Path(shutil.copytree(made, tmp_path / "data"))


def expected_events(paths):
    return [event for path in paths for event in read_event_file(path).events]


def assert_same(event, slow):
    assert (event.l1_id, event.global_id, event.bcid, event.run_number) == (
        slow.l1id,
        slow.global_id,
        slow.bcid,
        slow.run_number,
    )
    assert (event.lumi_block, event.trigger_type, event.run_type, event.source_id) == (
        slow.lumi_block,
        slow.trigger_type,
        slow.run_type,
        slow.source_id,
    )
    assert event.time_ns == slow.time_s * 10**9 + slow.time_ns and event.status == slow.status
    assert bytes(event.raw) == slow.raw
    assert [tag.name for tag in event.stream_tags] == ["Main"] and event.streams == ["physics_Main"]
    assert len(event.fragments) == len(slow.robs)
    for fragment, rob in zip(event.fragments, slow.robs):
        rod = rob.rod
        assert (fragment.source_id, fragment.l1_id, fragment.bcid, fragment.trigger_type) == (
            rod.source_id,
            rod.l1id,
            rod.bcid,
            rod.trigger_type,
        )
        assert fragment.status == rod.status and fragment.rob_status == rob.status[0]
        assert fragment.missing_links == (rod.status[1] if len(rod.status) > 1 else 0)
        chunks = fragment.chunks
        assert len(chunks) == fragment.n_chunks == len(rod.chunks)
        assert [bytes(chunk) for chunk in chunks] == [chunk.data for chunk in rod.chunks]
        assert chunks.link.tolist() == [chunk.link_id for chunk in rod.chunks]
        assert chunks.status.tolist() == [chunk.felix_status | chunk.rodeo_status << 8 for chunk in rod.chunks]
        assert all(
            fragment.payload[begin : begin + size].tobytes() == chunk.data
            for begin, size, chunk in zip(chunks.offset, chunks.size, rod.chunks)
        )


@pytest.mark.parametrize("kind", ["sound", "faulty", "compressed"])
def test_events_are_what_a_reader_without_our_code_reads(samples, kind):
    paths = sorted(samples.glob(f"{kind}.*.data"))
    events = data.open(str(samples / f"{kind}.*.data"))
    slow = expected_events(paths)
    assert len(events) == len(slow) == 8
    for event, expected in zip(events, slow, strict=True):
        assert_same(event, expected)
    assert events.errors == [] and events.files == [str(path) for path in paths]
    assert events.info()["run_number"] == 431493 and events.info(len(paths) - 1)["last_file"]


@pytest.mark.parametrize("name", ["Event", "Fragment", "StreamTag"])
def test_each_attribute_says_what_it_is(name):
    of = vars(getattr(data, name))
    assert [
        attribute for attribute in of if not attribute.startswith("_") and not getattr(of[attribute], "__doc__", None)
    ] == []


def test_events_are_found_by_number_and_by_l1_id(samples):
    events = data.open(sorted(samples.glob("sound.*.data")))
    slow = expected_events(sorted(samples.glob("sound.*.data")))
    ids = [event.l1id for event in slow]
    assert [events[i].l1_id for i in (0, 7, -1, -8, 3)] == [ids[i] for i in (0, 7, -1, -8, 3)]
    assert [event.l1_id for event in events[1:6:2]] == ids[1:6:2] and len(events[1:6:2]) == 3
    assert [event.l1_id for event in events[::-1]] == ids[::-1]
    assert events[2:][1:3][-1].l1_id == ids[4] and [event.l1_id for event in events[5:100]] == ids[5:]
    for expected in slow:
        assert_same(events.by_l1_id(expected.l1id), expected)
    assert events.find(ids[6]) == [6] and events[4:].find(ids[6]) == [2]
    for wrong in (8, -9):
        with pytest.raises(IndexError):
            events[wrong]
    with pytest.raises(IndexError):
        events.info(3)
    with pytest.raises(KeyError, match="0x00abcdef"):
        events.by_l1_id(0xABCDEF)


def test_an_event_is_found_by_the_id_that_never_repeats(samples):
    path, copy, later = (samples / name for name in (NAME.format("sound", 1), "copy.data", "later.data"))
    slow = expected_events([path])
    shutil.copy(path, copy)
    content = bytearray(path.read_bytes())
    for event in slow:  # later events repeat the extended L1 ids, as after 256 resets
        struct.pack_into("<I", content, content.index(event.raw) + 11 * 4, (event.global_id >> 32) + 1)
    later.write_bytes(content)
    events = data.open([path, later])
    for expected in slow:
        assert_same(events.by_global_id(expected.global_id), expected)
        assert events.by_global_id(expected.global_id + (1 << 32)).file == str(later)
        assert len(events.find(expected.l1id)) == 2
        with pytest.raises(
            ValueError, match=f"2 events have the L1 id .* {expected.global_id:#x}, {expected.global_id + (1 << 32):#x}"
        ):
            events.by_l1_id(expected.l1id)
        assert data.open([path, copy]).by_l1_id(expected.l1id).file == str(path)  # both files have this event
    assert events[2:].by_global_id(slow[2].global_id).global_id == slow[2].global_id
    with pytest.raises(KeyError, match="0xabcdef"):
        events.by_global_id(0xABCDEF)


def mapped(path):
    return sum(str(path) in line for line in Path("/proc/self/maps").read_text().splitlines())


def test_a_view_keeps_the_file_mapped_and_nothing_else_does(samples):
    path = samples / NAME.format("sound", 1)
    events = data.open(path)
    event = events[2]
    chunk = event.fragments[0].chunks[4]
    assert len(chunk) == 70000 and not chunk.flags.owndata and not chunk.flags.writeable
    assert np.shares_memory(chunk, event.raw)
    expected = expected_events([path])[2].robs[0].rod.chunks[4].data
    del event, events
    gc.collect()
    path.unlink()
    assert mapped(path) == 1 and chunk.tobytes() == expected
    part = chunk[100:200].view("<u4")
    del chunk
    gc.collect()
    assert mapped(path) == 1 and part.tobytes() == expected[100:200]
    del part
    gc.collect()
    assert mapped(path) == 0


def test_the_index_is_used_only_while_it_is_that_of_the_file(samples):
    path = samples / NAME.format("sound", 1)
    index = Path(f"{path}.index")
    ids = [event.l1id for event in expected_events([path])]

    def read():
        return [data.open(path).by_l1_id(l1_id).l1_id for l1_id in ids]

    assert sum(1 for _ in data.open(path)) == 3 and not index.exists()  # iteration needs no index
    assert read() == ids and index.exists()
    sound = index.read_bytes()
    # A changed index that is whole and belongs to this file is trusted: this proves that it is used.
    forged = bytearray(sound)
    struct.pack_into("<I", forged, 48 + 12, 0x00ABCDEF)
    struct.pack_into("<I", forged, len(forged) - 4, zlib.crc32(forged[:-4]))
    index.write_bytes(forged)
    assert data.open(path).find(0xABCDEF) == [0]
    for damaged in (sound[:-1], forged[:-4] + b"\0\0\0\0", b"", sound[:20]):
        index.write_bytes(damaged)
        assert read() == ids and index.read_bytes() == sound
    os.utime(path, ns=(1, 1))
    index.write_bytes(sound)
    assert read() == ids and index.read_bytes() != sound
    index.unlink()
    index.mkdir()  # a directory in its place prevents an index
    assert read() == ids and data.open(path, index=False).find(ids[1]) == [1]
    assert [entry.name for entry in samples.iterdir() if ".index." in entry.name] == []


def test_columns_are_the_events_field_by_field(samples):
    paths = sorted(samples.glob("*.data"))
    events = data.open(paths)
    columns = events.read(data.FIELDS)
    slow = expected_events(paths)
    rods = [rob.rod for event in slow for rob in event.robs]
    chunks = [chunk for rod in rods for chunk in rod.chunks]
    assert columns.events == len(slow) and columns["index"].tolist() == list(range(len(slow)))
    assert columns["l1_id"].tolist() == [event.l1id for event in slow]
    assert columns["global_id"].tolist() == [event.global_id for event in slow]
    assert columns["time_ns"].tolist() == [event.time_s * 10**9 + event.time_ns for event in slow]
    assert columns["status"].tolist() == [event.status[0] for event in slow]
    assert [columns["file"].tolist().count(i) for i in range(len(paths))] == [
        len(read_event_file(path).events) for path in paths
    ]
    assert columns["fragment.source_id"].tolist() == [rod.source_id for rod in rods]
    assert columns["fragment.missing_links"].tolist() == [rod.status[1] if len(rod.status) > 1 else 0 for rod in rods]
    assert (
        columns["chunk.link"].tolist() == [chunk.link_id for chunk in chunks]
        and columns["chunk.link"].dtype == np.uint32
    )
    assert columns["chunk.size"].tolist() == [len(chunk.data) for chunk in chunks]
    assert columns["chunk.status"].tolist() == [chunk.felix_status | chunk.rodeo_status << 8 for chunk in chunks]
    assert columns["chunk.data"].tobytes() == b"".join(chunk.data for chunk in chunks)
    assert np.diff(columns["chunk.data_offsets"]).tolist() == columns["chunk.size"].tolist()
    assert np.diff(columns["chunk.offsets"]).tolist() == [
        sum(len(rob.rod.chunks) for rob in event.robs) for event in slow
    ]
    assert np.diff(columns["fragment.offsets"]).tolist() == [len(event.robs) for event in slow]
    assert np.diff(columns["fragment.chunk_offsets"]).tolist() == [len(rod.chunks) for rod in rods]
    some = events[3:12:4].read(["l1_id", "chunk.size"])
    assert some["l1_id"].tolist() == columns["l1_id"][3:12:4].tolist() and set(some) == {
        "l1_id",
        "chunk.size",
        "chunk.offsets",
    }
    pieces = list(events.iterate(["l1_id", "chunk.data"], events=5))
    assert [piece.events for piece in pieces] == [5, 5, 5, 5, 4]
    joined = data.Columns.joined(pieces)
    assert all(
        (joined[name] == columns[name]).all() for name in ("l1_id", "chunk.data", "chunk.offsets", "chunk.data_offsets")
    )
    with pytest.raises(ValueError, match="no field chunk.colour"):
        events.read("chunk.colour")


def test_awkward_arrays_have_fragments_and_chunks_as_lists_of_records(samples):
    ak = pytest.importorskip("awkward")
    events = data.open(samples / NAME.format("faulty", 1))
    array = events.read(["l1_id", "fragment.missing_links", "chunk.link", "chunk.data"], library="ak")
    slow = expected_events([samples / NAME.format("faulty", 1)])
    assert ak.to_list(array.l1_id) == [event.l1id for event in slow]
    assert ak.to_list(array.chunk.link) == [[chunk.link_id for chunk in event.robs[0].rod.chunks] for event in slow]
    assert bytes(ak.to_list(array.chunk.data[2][1])) == slow[2].robs[0].rod.chunks[1].data
    assert (
        ak.to_list(ak.num(array.chunk)) == [len(event.robs[0].rod.chunks) for event in slow]
        and len(array.fragment[0]) == 1
    )


def test_without_awkward_the_error_names_it(samples):
    code = f"import sys; sys.modules['awkward'] = None\nimport rodeo\nrodeo.data.open({str(samples / '*.data')!r}).read(['l1_id'], library='ak')"
    done = subprocess.run(
        [sys.executable, "-B", "-c", code], env={"PYTHONPATH": str(BUILD / "python")}, text=True, capture_output=True
    )
    assert done.returncode == 1 and "needs the Python package awkward: tools/setup" in done.stderr


@pytest.fixture
def damaged(samples):
    """A flipped bit in the payload of the second of three events."""
    path = samples / NAME.format("sound", 1)
    raw = bytearray(path.read_bytes())
    second = expected_events([path])[1].raw
    raw[bytes(raw).index(second) + len(second) // 2] ^= 4
    path.write_bytes(raw)
    return path


def test_a_damaged_event_is_an_error_of_that_event_alone(damaged):
    ids = [event.l1_id for event in data.open(damaged, checksums=False)]
    walk = iter(data.open(damaged))
    assert next(walk).l1_id == ids[0]
    with pytest.raises(data.DamagedEvent, match="event 1 .*checksum") as raised:
        next(walk)
    assert (raised.value.index, raised.value.l1_id, raised.value.file, raised.value.code) == (
        1,
        ids[1],
        str(damaged),
        "data.damaged",
    )
    assert next(walk).l1_id == ids[2] and next(walk, None) is None
    with pytest.raises(data.DamagedEvent):
        data.open(damaged).read(["l1_id"])

    skipping = data.open(damaged, damaged="skip")
    for _ in range(2):  # each error is listed once, even after several reads
        assert [event.l1_id for event in skipping] == [ids[0], ids[2]]
        assert skipping.read(["l1_id", "index"])["index"].tolist() == [0, 2]
    assert [event.l1_id for event in skipping[::-1]] == [ids[2], ids[0]]
    assert [(error.index, error.file) for error in skipping.errors] == [(1, str(damaged))] and skipping.error_count == 1
    assert len(skipping) == 3 and skipping[2].l1_id == ids[2]
    with pytest.raises(data.DamagedEvent):
        skipping[1]


SLICES = [
    slice(*three)
    for three in [
        (0, 5),
        (None, 12, 2),
        (1, None, 2),
        (2, 20, 3),
        (0, None, 5),
        (3, 4),
        (1, 2),
        (None, None, 24),
        (4, 17, 4),
    ]
]


@pytest.mark.parametrize("checked", ["one", "several"])
def test_a_slice_means_the_same_events_whatever_is_damaged(samples, damaged, checked):
    paths = [damaged] if checked == "one" else sorted(samples.glob("*.data"))
    skipping, raising = data.open(paths, damaged="skip"), data.open(paths)
    bad = sum(len(data.open(path)) for path in paths[: paths.index(damaged)]) + 1
    for which in SLICES:
        wanted = [number for number in range(len(raising))[which] if number != bad]
        assert skipping[which].read(["index"])["index"].tolist() == wanted, which
        ids = [skipping[number].l1_id for number in wanted]
        assert [event.l1_id for event in skipping[which]] == ids, which
        assert [event.l1_id for event in every_one(raising[which])] == ids, which
        assert [event.l1_id for event in every_one(raising[which][::-1])] == ids[::-1], which
        for decoder in (None, heads):
            pieces = [
                piece["index"].tolist()
                for piece in every_one(raising[which].iterate(["index"], events=2, decoder=decoder))
            ]
            assert [number for piece in pieces for number in piece] == wanted, which


def every_one(iterator):
    """The events of an iterator, also after damaged events."""
    iterator = iter(iterator)
    while True:
        try:
            yield next(iterator)
        except StopIteration:
            return
        except data.DamagedEvent:
            pass


def test_columns_of_events_before_a_damaged_one_come_before_its_error(damaged):
    for decoder in (None, heads):
        pieces = data.open(damaged).iterate(["index"], events=10, decoder=decoder)
        assert next(pieces)["index"].tolist() == [0]
        with pytest.raises(data.DamagedEvent, match="event 1 "):
            next(pieces)
        assert next(pieces)["index"].tolist() == [2] and next(pieces, None) is None


def test_of_a_file_that_is_cut_the_good_part_is_read(samples):
    path = samples / NAME.format("sound", 1)
    whole = path.read_bytes()
    for cut in (len(whole) - 1, len(whole) - 40, len(whole) - 41, len(whole) - 5000):
        path.write_bytes(whole[:cut])
        there = 3 if cut >= len(whole) - 40 else 2
        walk = iter(data.open(path))
        assert [next(walk).bcid for _ in range(there)]
        with pytest.raises(data.DataError, match="ends early or is damaged"):
            next(walk)
        skipping = data.open(path, damaged="skip")
        assert len(list(skipping)) == there == len(skipping) and [error.index for error in skipping.errors] == [None]
        assert not Path(f"{path}.index").exists()
    writing = path.rename(path.with_suffix(".writing"))
    assert len(list(data.open(writing))) == 2  # an unclosed file is not damaged
    path.write_bytes(whole[:100])
    with pytest.raises(data.DataError, match="data.header"):
        data.open(path)


def test_of_a_file_of_others_what_stands_in_the_rods_is_not_guessed(samples):
    path = samples / NAME.format("sound", 3)
    slow = expected_events([path])
    path.write_bytes(path.read_bytes().replace(b"Rodeo-", b"Other-"))
    events = data.open(path)
    for event, expected in zip(events, slow, strict=True):
        (fragment,) = event.fragments
        assert (
            event.l1_id == expected.l1id
            and fragment.source_id == expected.robs[0].rod.source_id
            and fragment.n_chunks == 0
        )
        assert fragment.payload.tobytes().count(expected.robs[0].rod.chunks[2].data) == 1
        with pytest.raises(ValueError, match="data.no_chunks.*\n.*payload"):
            fragment.chunks
    assert len(events.read(["chunk.link"])["chunk.link"]) == 0


def test_what_is_no_data_file_says_what_it_is(tmp_path):
    for name, content, said in (
        ("text", b"# no data\n", "unknown_kind"),
        ("empty", b"", "data.empty"),
        ("zeros", bytes(9000), "data.zeros"),
    ):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(data.DataError, match=said):
            data.open(tmp_path / name)
        if name != "text":
            assert [error.code for error in data.open(tmp_path / name, damaged="skip").errors] == [said]
    for damaged in ("raise", "skip"):
        with pytest.raises(data.DataError, match="unknown_kind.*text\n.*an editor"):
            data.open(tmp_path / "text", damaged=damaged)
        with pytest.raises(data.DataError, match="file.open.*No such file"):
            data.open(tmp_path / "nothing.data", damaged=damaged)


def test_a_name_that_is_missing_among_many_is_an_error_at_once_and_a_foreign_file_where_it_is_met(samples, tmp_path):
    path = samples / NAME.format("sound", 1)
    (tmp_path / "text").write_bytes(b"# no data\n")
    with pytest.raises(data.DataError, match="file.open.*typo.data.*No such file"):
        data.open([path] * 20 + ["typo.data"], damaged="skip")
    with pytest.raises(data.DataError, match="unknown_kind"):
        list(data.open([path] * 20 + [tmp_path / "text"], damaged="skip"))


def test_names_that_fit_nothing_and_wrong_options_are_errors(tmp_path):
    (tmp_path / "text").write_bytes(b"# no data\n")
    with pytest.raises(data.DataError, match="is a directory"):
        data.open(tmp_path)
    with pytest.raises(data.DataError, match="no file fits .*data"):
        data.open(str(tmp_path / "*.data"))
    with pytest.raises(data.DataError, match="no file is named"):
        data.open([])
    for wrong in (dict(damaged="ignore"), dict(l1_id_bits=33), dict(l1_id_offset=-1)):
        with pytest.raises(ValueError):
            data.open(tmp_path / "text", **wrong)


def test_a_file_that_may_not_be_read_says_so(samples):
    path = samples / NAME.format("sound", 1)
    path.chmod(0)
    me = os.geteuid()
    if me == 0:
        os.seteuid(65534)
    try:
        with pytest.raises(data.DataError, match="Permission denied"):
            data.open(path)
    finally:
        os.seteuid(me)


def test_a_file_that_becomes_shorter_while_it_is_read_is_an_error_not_the_end(samples):
    path = samples / NAME.format("sound", 1)
    events = data.open(path)
    chunk = events[2].fragments[0].chunks[4]
    assert chunk[-1000:].any()
    os.truncate(path, 4096)
    assert not chunk[-1000:].any()  # the array has zeros where the file was cut
    for access in (lambda: events[2], lambda: list(events), lambda: events.read(["chunk.data"])):
        with pytest.raises(data.DataError, match="file.shrunk"):
            access()


def test_names_need_not_be_utf8(samples):
    path = os.fsencode(samples) + b"/run \xff\xfe.data"
    os.rename(samples / NAME.format("sound", 1), path)
    events = data.open(path)
    assert len(events) == 3 and os.fsencode(events[0].file) == path
    assert len(data.open(os.fsdecode(samples) + "/run*.data")) == 3
    with open(path, "r+b") as file:
        file.truncate(700)
    with pytest.raises(data.DataError, match=r"run \\xff"):
        list(data.open(path))


def test_a_hundred_thousand_files_need_few_descriptors_and_maps(samples):
    path = samples / NAME.format("sound", 3)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    open_now = len(os.listdir("/proc/self/fd"))
    resource.setrlimit(resource.RLIMIT_NOFILE, (open_now + 20, hard))
    try:
        events = data.open([path] * 100_000, index=False)
        assert len(events) == 200_000 and mapped(path) <= 8
        assert events[123_457].l1_id == events[1].l1_id and events[-2].l1_id == events[0].l1_id
        assert len(os.listdir("/proc/self/fd")) <= open_now + 2
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_files_that_are_being_written_are_followed_to_the_end_of_the_run(samples, tmp_path):
    parts = [(samples / NAME.format("sound", number)).read_bytes() for number in (1, 2, 3)]
    ids = [event.l1id for event in expected_events([samples / NAME.format("sound", number) for number in (1, 2, 3)])]
    directory = tmp_path / "run"
    directory.mkdir()
    got, asked = [], threading.Semaphore(0)

    def write():
        for number, content in enumerate(parts, 1):
            path = directory / f"run._{number:04}.writing"
            with open(path, "wb", buffering=0) as file:
                for begin in range(0, len(content), len(content) // 5 + 1):  # the pieces cut events at any place
                    file.write(content[begin : begin + len(content) // 5 + 1])
                    asked.acquire(timeout=0.1)
            path.rename(path.with_suffix(".data"))

    writer = threading.Thread(target=write)
    writer.start()
    for event in data.open(str(directory / "*.data"), follow=True, timeout_s=scaled(30)):
        got.append(event.l1_id)
        asked.release()
    writer.join()
    assert got == ids
    unfinished = directory / "run._0003.data"
    unfinished.write_bytes(parts[2][:-40])
    unfinished.rename(unfinished.with_suffix(".writing"))
    assert [event.l1_id for event in data.open(str(directory / "*.data"), follow=True, timeout_s=0.1)] == ids


def test_the_files_of_a_running_readout_are_followed_from_file_to_file(rodeo):
    """Files of the real writer: reserved space that is not written yet, its blocks, and a new file while the previous one is read."""
    with running(rodeo, "readout.consumer[2].max_file_events=300", "readout.consumer[2].buffer=64KiB") as run:
        got, during = [], 0
        for event in data.open(str(rodeo.directory / "files" / "*.data"), follow=True, timeout_s=scaled(60)):
            assert len(event.fragments[0].chunks) == 8
            got.append((event.l1_id, bytes(event.raw)))
            if len(got) == 1000:
                during = len(list((rodeo.directory / "files").glob("*.writing")))
                run.process.send_signal(signal.SIGINT)
        report, _ = run.finish(how=None)
    assert during == 1, "the file was read during the writing"
    assert len(report["files"]) >= 4 and report["run"]["condition"] == "GOOD"
    written = [event for name in report["files"] for event in read_event_file(rodeo.directory / name).events]
    assert got == [(event.l1id, event.raw) for event in written] and len(got) >= 1000


def test_a_recording_of_felix_blocks_is_events_of_chunks_with_one_id(rodeo, tmp_path):
    from test_record import chunks_of

    path = tmp_path / "card.felix"
    rodeo("data", "record", path, "--links", 24, "--events", 300)
    expected = chunks_of(path)
    events = data.open(path)
    assert len(events) == 300 and [event.l1_id for event in events] == list(range(300))
    for number in (0, 17, 299):
        chunks = events.by_l1_id(number).fragments[0].chunks
        assert {int(link): bytes(chunk) for link, chunk in zip(chunks.link, chunks)} == {
            elink: of_link[number] for elink, of_link in expected.items()
        }
    columns = events.read(["l1_id", "chunk.link", "chunk.data"])
    assert len(columns["chunk.link"]) == 24 * 300
    assert columns["chunk.data"].tobytes() == b"".join(
        expected[elink][number] for number in range(300) for elink in sorted(expected)
    )
    # The eight bits of the id wrap, and the events stay separate.
    assert [event.l1_id for event in data.open(path, l1_id_bits=8)] == [number % 256 for number in range(300)]
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2 + 100])
    with pytest.raises(data.DataError, match="recording is damaged"):
        list(data.open(path))
    assert 100 < len(list(data.open(path, damaged="skip"))) < 300


def every_byte(events):
    return [
        (event.l1_id, event.fragments[0].chunks.link.tolist(), [bytes(chunk) for chunk in event.fragments[0].chunks])
        for event in events
    ]


@pytest.mark.parametrize("chunk_bytes", [40, 3000])
def test_the_index_of_a_recording_gives_the_same_bytes_as_its_blocks(rodeo, tmp_path, chunk_bytes):
    """Chunks of 3000 bytes are in several blocks."""
    path = tmp_path / "card.felix"
    rodeo("data", "record", path, "--links", 4, "--events", 50, "--set", f"chunk_bytes={chunk_bytes}")
    index = Path(f"{path}.index")
    walked = data.open(path)
    expected, columns = every_byte(walked), walked.read(["chunk.data"])["chunk.data"].tobytes()
    assert len(expected) == 50 and not index.exists()  # iteration needs no index
    assert data.open(path, index=False).by_l1_id(7).l1_id == 7 and not index.exists()
    assert data.open(path).by_l1_id(7).l1_id == 7 and index.exists()
    sound = index.read_bytes()
    taken = data.open(path)
    assert every_byte(taken) == expected and taken.read(["chunk.data"])["chunk.data"].tobytes() == columns
    assert index.read_bytes() == sound
    # A changed index that is whole and belongs to this file is trusted: this proves that it is used.
    forged = bytearray(sound)
    struct.pack_into("<I", forged, 56 + 8, 0x00ABCDEF)
    struct.pack_into("<I", forged, len(forged) - 4, zlib.crc32(forged[:-4]))
    index.write_bytes(forged)
    assert data.open(path).find(0xABCDEF) == [0]
    # The index is for another place of the L1 id, so it does not apply.
    assert [event.l1_id for event in data.open(path, l1_id_bits=8)] == list(range(50))
    assert data.open(path, l1_id_bits=8).find(0) == [0] and index.read_bytes() != forged


def test_an_index_of_a_recording_that_is_stale_damaged_or_cannot_be_kept_costs_time_alone(rodeo, tmp_path):
    path = tmp_path / "card.felix"
    rodeo("data", "record", path, "--links", 4, "--events", 50)
    index = Path(f"{path}.index")

    def read():
        return [data.open(path).by_l1_id(number).l1_id for number in (0, 17, 49)]

    assert read() == [0, 17, 49]
    sound = index.read_bytes()
    for damaged in (sound[:-1], sound[:-4] + b"\0\0\0\0", b"", sound[:20], sound[:100]):
        index.write_bytes(damaged)
        assert read() == [0, 17, 49] and index.read_bytes() == sound
    os.utime(path, ns=(1, 1))
    assert read() == [0, 17, 49] and index.read_bytes() != sound
    index.unlink()
    index.mkdir()  # no index can be written there
    assert read() == [0, 17, 49] and len(list(tmp_path.iterdir())) == 2
    index.rmdir()
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) - 700])  # the last block is cut
    for _ in range(2):  # the first time from the blocks, then from the index
        skipping = data.open(path, damaged="skip")
        ids = [event.l1_id for event in skipping]
        assert ids and skipping.by_l1_id(ids[-1]).l1_id == ids[-1] and index.exists()
        assert [error.index for error in skipping.errors] == [
            None
        ] and "behind the last whole block" in skipping.errors[0].reason
        with pytest.raises(data.DataError, match="recording is damaged.*behind the last whole block"):
            list(data.open(path))


def test_a_recording_that_becomes_shorter_while_it_is_read_is_an_error_not_the_end(rodeo, tmp_path):
    path = tmp_path / "card.felix"
    rodeo("data", "record", path, "--links", 4, "--events", 500)
    events = data.open(path)
    assert len(events) == 500
    os.truncate(path, 4096)
    for access in (lambda: events[499], lambda: list(events), lambda: events.read(["chunk.data"])):
        with pytest.raises(data.DataError, match="file.shrunk"):
            access()


def rdh_page(link, packet, orbit, number, stop, payload):
    size = 64 + len(payload)
    words = [
        7 | 64 << 8 | link << 16,
        0,
        size | size << 16,
        link | packet << 8,
        0,
        orbit,
        0,
        0,
        2,
        number | stop << 16,
        0,
        0,
        0,
        0,
        0,
        0,
    ]
    return struct.pack("<16I", *words) + payload


def test_a_dump_of_rdh_pages_is_events_of_heartbeat_frames(tmp_path):
    dump, frames, packets = b"", {}, [0, 0]
    for orbit in range(100, 120, 2):
        for link in (0, 1):
            for half in (0, 1):
                frame = b""
                for number in (0, 1):
                    frame += rdh_page(
                        link,
                        packets[link] % 256,
                        orbit + half,
                        number,
                        number,
                        bytes([orbit + half, link, number, 7] * 8 * (number + 1)),
                    )
                    packets[link] += 1
                frames[orbit + half, link] = frame
                dump += frame
    path = tmp_path / "cru.dump"
    path.write_bytes(dump)
    events = data.open(path)
    assert [event.l1_id for event in events] == list(range(100, 120)) and events.info()["kind"] == "rdh pages"
    for event in events:
        chunks = event.fragments[0].chunks
        assert [bytes(chunk) for chunk in chunks] == [
            frames[event.l1_id, link] for link in chunks.link.tolist()
        ] and chunks.link.tolist() == [0, 1]
    index = Path(f"{path}.index")
    assert not index.exists() and events.by_l1_id(107).l1_id == 107 and index.exists()
    assert every_byte(data.open(path)) == every_byte(events)


@rodeo_package.decoder
def heads(chunks):
    return {"l1_id": chunks.field("<u4"), "body": chunks.values("u1", skip=8), "first": chunks.data[chunks.offset]}


def test_a_decoder_makes_columns_of_its_own(samples):
    events = data.open(sorted(samples.glob("sound.*.data")))
    plain = events.read(["l1_id", "chunk.size", "chunk.data"])
    columns = events.read(["bcid"], decoder=heads)
    assert set(columns) == {"bcid", "chunk.offsets", "heads.l1_id", "heads.body", "heads.body_offsets", "heads.first"}
    assert columns["heads.l1_id"].tolist() == np.repeat(plain["l1_id"], np.diff(plain["chunk.offsets"])).tolist()
    assert np.diff(columns["heads.body_offsets"]).tolist() == (plain["chunk.size"] - 8).tolist()
    body, offsets, begin = columns["heads.body"], columns["heads.body_offsets"], plain["chunk.data_offsets"]
    assert all(
        body[offsets[i] : offsets[i + 1]].tobytes() == plain["chunk.data"][begin[i] + 8 : begin[i + 1]].tobytes()
        for i in range(len(begin) - 1)
    )
    chunks = events[0].fragments[0].chunks
    assert heads(chunks)["first"].tolist() == [chunk[0] for chunk in chunks]
    ak = pytest.importorskip("awkward")
    array = events.read(["l1_id"], library="ak", decoder=heads)
    assert ak.all(array.heads.l1_id == array.l1_id) and len(array.heads.body[0][0]) == plain["chunk.size"][0] - 8
    with pytest.raises(ValueError, match="differ|no table"):
        chunks.table
    assert chunks[[0, 0]].table.shape == (2, chunks.size[0])

    @rodeo_package.decoder
    def strict(chunks):
        return {"first": chunks.data[chunks.offset[0]] + 0 * chunks.size}

    assert len(events[8:].read(decoder=strict)) == 2  # nothing to decode: only l1_id and the offsets


def test_what_is_wrong_in_a_decoder_is_said_with_its_line_and_the_chunk(samples):
    events = data.open(sorted(samples.glob("sound.*.data")))

    @rodeo_package.decoder
    def picky(chunks):
        if (chunks.size == 70000).any():
            raise IndexError("too long for me")  # this line
        return {"size": chunks.size}

    with pytest.raises(data.DecoderError) as raised:
        events.read(decoder=picky)
    said = str(raised.value)
    assert "IndexError: too long for me" in said and "# this line" in said and Path(__file__).name in said
    assert "at chunk 4 (link id 0x00540004, 70000 bytes) of event 2" in said and isinstance(
        raised.value.__cause__, IndexError
    )

    for wrong, why in (
        (lambda chunks: chunks.size, "dictionary"),
        (lambda chunks: {"a": chunks.size[1:]}, "one value or row"),
        (lambda chunks: {"a": data.Jagged(chunks.size, [1])}, "do not fit"),
    ):
        with pytest.raises(data.DecoderError, match=why):
            events.read(decoder=rodeo_package.decoder(wrong, name="wrong"))


@pytest.mark.parametrize(
    "work", ["events.read(decoder=hang)", "[event for event in rodeo.data.open(sys.argv[1] + '.writing', follow=True)]"]
)
def test_ctrl_c_ends_what_hangs(samples, work):
    path = samples / NAME.format("sound", 1)
    shutil.copy(path, f"{path}.writing")
    os.truncate(f"{path}.writing", 700)
    code = (
        "import rodeo, sys\nevents = rodeo.data.open(sys.argv[1])\ndef hang(chunks):\n    while True: pass\nprint('ready', flush=True)\n"
        + work
    )
    child = subprocess.Popen(
        [sys.executable, "-B", "-c", code, path],
        env={"PYTHONPATH": str(BUILD / "python")},
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert child.stdout.readline() == "ready\n"
    time.sleep(0.2)
    child.send_signal(signal.SIGINT)
    assert "KeyboardInterrupt" in child.communicate(timeout=scaled(20))[1]


def test_threads_share_a_sequence(samples):
    events = data.open(sorted(samples.glob("*.data")))
    expected = events.read(["l1_id", "chunk.data"])
    ids, wrong = expected["l1_id"].tolist(), []

    def work(which):
        for _ in range(10):
            if which % 2:
                columns = events.read(["l1_id", "chunk.data"])
                if not (columns["chunk.data"] == expected["chunk.data"]).all():
                    wrong.append(which)
            elif [event.l1_id for event in events] != ids or events[which].l1_id != ids[which]:
                wrong.append(which)

    threads = [threading.Thread(target=work, args=(which,)) for which in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_a_python_without_the_module_says_what_to_do():
    done = subprocess.run(
        [sys.executable, "-B", "-c", "import rodeo; rodeo.data"],
        env={"PYTHONPATH": str(ROOT / "python")},
        text=True,
        capture_output=True,
    )
    assert done.returncode == 1 and "tools/setup" in done.stderr


def test_sampled_events_of_a_running_readout_are_the_same_objects(rodeo, monkeypatch):
    from running_readout import adds_up, running

    monkeypatch.setenv("XDG_RUNTIME_DIR", rodeo.environment["XDG_RUNTIME_DIR"])
    monkeypatch.delenv("RODEO_RUNTIME_DIR", raising=False)
    with running(rodeo) as run:
        with rodeo_package.events.sample("test", events=5, timeout_s=scaled(20)) as samples:
            events = list(samples)
        assert samples.taken == 5 and samples.missed >= 0 and samples.sequence is not None and samples.time_ns > 1e18
        (last,) = rodeo_package.events.sample(rodeo.directory / "rodeo/test.events", events=1)
        slow = rodeo_package.events.sample()
        first = next(slow)
        report, _ = run.finish()
        rest = sum(1 for _ in slow)  # iteration ends with the run
    assert report["run"]["condition"] == "GOOD" and adds_up(report)
    for event in [*events, last, first]:
        (fragment,) = event.fragments
        assert event.run_number == 7 and fragment.source_id == 0x00610001 and event.l1_id == fragment.l1_id
        assert (
            len(fragment.chunks) == 8
            and fragment.status == [0]
            and fragment.chunks.field("<u4").tolist() == [event.l1_id] * 8
        )
    assert rest >= 0 and [event.l1_id for event in events] == sorted({event.l1_id for event in events})
    with pytest.raises(ValueError, match="readout.no_sampler"):
        rodeo_package.events.sample("test")


def test_a_time_without_events_is_said(tmp_path):
    import socket

    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as server:
        server.bind(str(tmp_path / "quiet.events"))
        server.listen()
        samples = rodeo_package.events.sample(tmp_path / "quiet.events", timeout_s=0.01)
        for _ in range(2):
            with pytest.raises(TimeoutError, match="no event came for 0.01 s"):
                next(samples)
        server.accept()
        patient = rodeo_package.events.sample(tmp_path / "quiet.events", timeout_s=scaled(20))
        server.accept()[0].sendall(bytes(100))
        with pytest.raises(ValueError, match="sample_protocol"):
            next(patient)
