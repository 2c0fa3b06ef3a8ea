"""Converts event files to HDF5 and back, and to ROOT, draws pictures, and selects events with Python functions."""

import json
import os
import resource
import subprocess
import sys

import h5py
import numpy as np
import pytest
import uproot
from conftest import BUILD, ROOT, scaled
from event_files import read_event_file
from PIL import Image

if not list((BUILD / "python" / "rodeo").glob("_data*.so")):
    pytest.skip(
        "this build has no Python modules (sanitizers, or python3-dev or nanobind is missing)", allow_module_level=True
    )

NAME = "{}.00431493.physics_Main.daq.RAW._lb0012._sample._{:04}.data"
FILES = [NAME.format("sound", 1), NAME.format("sound", 2), NAME.format("faulty", 1), NAME.format("compressed", 1)]


@pytest.fixture
def samples(tmp_path):
    subprocess.run([BUILD / "tests/storage/write_sample_files", tmp_path], check=True, timeout=scaled(30))
    return tmp_path


def events_of(directory, names):
    return [event for name in names for event in read_event_file(directory / name).events]


def chunks_of(events):
    return [chunk for event in events for rob in event.robs for chunk in rob.rod.chunks]


def test_hdf5_holds_every_chunk_and_comes_back(rodeo, samples):
    done = rodeo("data", "convert", *FILES, "--output", "run.h5")
    events = events_of(samples, FILES)
    assert done.stdout.startswith(f"run.h5: {len(events)} events, ")
    chunks = chunks_of(events)
    with h5py.File(samples / "run.h5") as file:
        assert (file.attrs["format"], file.attrs["events"], file.attrs["files"], file.attrs["left_out_events"]) == (
            "rodeo-events",
            len(events),
            4,
            0,
        )
        assert file["event/l1_id"][:].tolist() == [event.l1id for event in events]
        assert file["event/time_ns"][:].tolist() == [event.time_s * 10**9 + event.time_ns for event in events]
        assert (
            file["event/chunk_offsets"][:].tolist()
            == np.cumsum([0] + [len(chunks_of([event])) for event in events]).tolist()
        )
        assert file["fragment/status"][:].tolist() == [event.robs[0].rod.status[0] for event in events]
        assert file["chunk/link"][:].tolist() == [chunk.link_id for chunk in chunks]
        data = file["bytes"][:].tobytes()
        assert [
            data[at : at + size] for at, size in zip(file["chunk/offset"][:].tolist(), file["chunk/size"][:].tolist())
        ] == [chunk.data for chunk in chunks]
    said = rodeo("data", "convert", "run.h5", "--output", "again", "-o", "csv").stdout.splitlines()
    assert said[0] == "file,size_bytes,events,adler32" and said[1].startswith("again._0001.data,") and len(said) == 2
    again = read_event_file(samples / "again._0001.data")
    assert [chunk.data for chunk in chunks_of(again.events)] == [chunk.data for chunk in chunks]
    assert [event.number for event in again.events] == list(range(1, len(events) + 1))
    assert "sound" in rodeo("data", "verify", "again._0001.data").stdout


def made_by(rodeo, samples, number, run, source):
    """An event file of a run, written by a readout."""
    text = f"""
[run]
number = {run}
[readout]
name = "reads{number}"
[readout.input]
type = "generator"
links = 4
rate = "2kHz"
[readout.builder]
type = "gbt"
[readout.extractor]
type = "rodeo"
[[readout.rob]]
source_id = "{source}"
[[readout.consumer]]
type = "file_writer"
directory = "of{number}"
"""
    (samples / f"{number}.toml").write_text(text)
    (written,) = json.loads(rodeo("readout", f"{number}.toml", "--events", 20, "--json", "-").stdout)["files"]
    return written


def test_files_of_two_runs_are_refused_and_two_readouts_of_one_run_come_back(rodeo, samples):
    one, two = made_by(rodeo, samples, 1, 7, "0x00610001"), made_by(rodeo, samples, 2, 7, "0x00610002")
    other = made_by(rodeo, samples, 3, 8, "0x00610001")
    done = rodeo("data", "convert", one, other, "--output", "x.h5", exit_code=2)
    assert "error[data.other_run]" in done.stderr and "Traceback" not in done.stderr and not list(samples.glob("x*"))
    rodeo("data", "convert", one, two, "--output", "both.h5")
    rodeo("data", "convert", "both.h5", "--output", "both")
    assert "sound" in rodeo("data", "verify", "both._0001.data").stdout
    raws = lambda path: [event.raw for event in read_event_file(path).events]
    assert raws(samples / "both._0001.data") == raws(samples / one) + raws(samples / two)
    text = rodeo("data", "info", "both._0001.data", "-o", "json").stdout
    assert "610001" in text and "610002" in text  # the records list the links of both ROBs


def test_an_hdf5_file_whose_bytes_are_no_events_is_refused(rodeo, samples):
    rodeo("data", "convert", FILES[2], "--output", "sound.h5", "--compression", 0)

    def flipped(file):
        file["bytes"][len(file["bytes"]) // 2] ^= 4

    def other_type(file):
        data = file["bytes"][:]
        del file["bytes"]
        file["bytes"] = data.astype(np.float64)

    def moved(file):
        file["event/byte_offsets"][...] = file["event/byte_offsets"][:] + np.uint64(8)

    def without(file):
        del file["bytes"]

    for change in (flipped, other_type, moved, without):
        (samples / "x.h5").write_bytes((samples / "sound.h5").read_bytes())
        with h5py.File(samples / "x.h5", "r+") as file:
            change(file)
        done = rodeo("data", "convert", "x.h5", "--output", "again", exit_code=1)
        assert "error[data.damaged]" in done.stderr and "Traceback" not in done.stderr, change
        assert not list(samples.glob("again*")), change


def refused(rodeo, samples, change, said):
    """Checks that the command refuses a changed copy of sound.h5."""
    (samples / "x.h5").write_bytes((samples / "sound.h5").read_bytes())
    with h5py.File(samples / "x.h5", "r+") as file:
        change(file)
    done = rodeo("data", "convert", "x.h5", "--output", "again", exit_code=1)
    assert "error[data.damaged]" in done.stderr and said in done.stderr and "Traceback" not in done.stderr, (
        said,
        done.stderr,
    )
    assert not list(samples.glob("again*")), said


def test_an_hdf5_file_that_contradicts_itself_is_refused(rodeo, samples):
    rodeo("data", "convert", FILES[2], "--output", "sound.h5", "--compression", 0)

    def header_bit(file):  # flips a bit of the time, the BCID or the stream tag: no checksum of the event covers these
        for word in (8, 16, 24):
            file["bytes"][int(file["event/byte_offsets"][3]) + 4 * word] ^= 1

    def swapped(file):
        offsets, data = file["event/byte_offsets"][:].astype(int), file["bytes"][:]
        events = [data[begin:end] for begin, end in zip(offsets[:-1], offsets[1:], strict=True)]
        events[1], events[2] = events[2], events[1]
        file["bytes"][...] = np.concatenate(events)
        file["event/byte_offsets"][1:] = np.cumsum([len(event) for event in events])

    def changed(name):
        def change(file):
            values = file[name][:]
            values[1] += 1
            file[name][...] = values

        return change

    def attribute(file):
        file.attrs["left_out_events"] = 3

    def without(name):
        def change(file):
            del file[name]

        return change

    refused(rodeo, samples, header_bit, "event 3 of /bytes")
    refused(rodeo, samples, swapped, "was changed")
    for name in (
        "event/bcid",
        "event/crc32",
        "fragment/status",
        "chunk/link",
        "chunk/offset",
        "fragment/chunk_offsets",
        "file/0",
    ):
        refused(rodeo, samples, changed(name), f"/{name} was changed")
        refused(rodeo, samples, without(name), f"/{name} is missing" if name != "file/0" else "lacks")

    def older(file):
        file.attrs["version"] = 1
        del file.attrs["checksums"]

    refused(rodeo, samples, attribute, "attributes")
    refused(rodeo, samples, lambda file: file.attrs.__setitem__("version", 1), "attributes")
    refused(rodeo, samples, older, "checksums")
    refused(rodeo, samples, lambda file: file.attrs.__delitem__("checksums"), "checksums")
    refused(rodeo, samples, lambda file: file.create_dataset("event/mine", data=[1, 2]), "/event/mine")


def test_an_hdf5_file_of_today_without_checksums_is_read_and_its_columns_are_looked_at(rodeo, samples):
    rodeo("data", "convert", FILES[2], "--output", "sound.h5", "--compression", 0)
    with h5py.File(samples / "sound.h5", "r+") as file:
        del file.attrs["checksums"], file["event/crc32"]
        file.attrs["version"] = 1
    rodeo("data", "convert", "sound.h5", "--output", "one")
    assert "8 events the same, 0 different" in rodeo("data", "diff", FILES[2], "one._0001.data").stdout

    def bcid(file):
        file["bytes"][int(file["event/byte_offsets"][2]) + 4 * 16] ^= 1

    refused(rodeo, samples, bcid, "/event/bcid: the value of event 2")
    refused(rodeo, samples, lambda file: file.__delitem__("event/time_ns"), "/event/time_ns is missing")


def test_a_tree_of_no_events_is_as_one_of_some(rodeo, samples):
    rodeo("data", "filter", FILES[0], "--l1id", "0", "--output", "none")
    rodeo("data", "convert", "none._0001.data", "--output", "none.root")
    rodeo("data", "convert", FILES[0], "--output", "some.root")
    with uproot.open(samples / "none.root") as none, uproot.open(samples / "some.root") as some:
        assert none["events"].num_entries == 0 and some["events"].num_entries > 0
        assert none["events"].typenames() == some["events"].typenames()


def test_patterns_in_quotation_marks_mean_files_for_each_verb(rodeo, samples):
    for verb in ("info", "list", "recover"):
        done = rodeo("data", verb, "sound.*.data", "-o", "json")
        assert (
            NAME.format("sound", 1) in done.stdout + done.stderr
            and NAME.format("sound", 2) in done.stdout + done.stderr
        )
        assert "data.no_files" in rodeo("data", verb, "none*.data", exit_code=1).stderr


def test_uncompressed_events_come_back_as_they_were(rodeo, samples):
    rodeo("data", "convert", FILES[2], "--output", "one.hdf5", "--compression", 0)
    rodeo("data", "convert", "one.hdf5", "--output", "one")
    assert "8 events the same, 0 different" in rodeo("data", "diff", FILES[2], "one._0001.data").stdout


def test_root_has_the_columns(rodeo, samples):
    done = rodeo("data", "convert", *FILES, "--output", "run.root", "-o", "json")
    events = events_of(samples, FILES)
    assert json.loads(done.stdout) == {
        "file": "run.root",
        "events": len(events),
        "damaged_events": 0,
        "bytes": (samples / "run.root").stat().st_size,
    }
    with uproot.open(samples / "run.root") as file:
        tree = file["events"]
        assert tree["l1_id"].array().tolist() == [event.l1id for event in events]
        assert tree["chunk_link"].array().tolist() == [
            [chunk.link_id for chunk in chunks_of([event])] for event in events
        ]
        assert tree["fragment_source_id"].array().tolist() == [
            [rob.source_id for rob in event.robs] for event in events
        ]


@pytest.mark.parametrize("ending", ["png", "svg"])
def test_a_picture_is_drawn(rodeo, samples, ending):
    rodeo("data", "plot", *FILES, "--output", f"run.{ending}")
    if ending == "svg":
        text = (samples / "run.svg").read_text()
        assert text.startswith("<?xml") and text.count("<path") > 50
        return
    picture = np.asarray(Image.open(samples / "run.png").convert("RGB"))
    assert picture.shape[0] > 500 and picture.shape[1] > 800
    for colour in (
        (0x00, 0x72, 0xB2),
        (0x00, 0x9E, 0x73),
        (0xD5, 0x5E, 0x00),
    ):  # colours of the four pictures: sizes and rate, bunch crossings, missing links
        assert (picture == colour).all(axis=2).sum() > 20, colour
    assert "file.exists" in rodeo("data", "plot", *FILES, "--output", "run.png", exit_code=5).stderr
    rodeo("data", "plot", *FILES, "--output", "run.txt", exit_code=2)


def test_a_function_chooses_events(rodeo, samples):
    (samples / "mine.py").write_text(
        "def keep(event):\n    print('looking at', event.l1_id)\n    return len(event.fragments[0].chunks) < 5\n"
    )
    done = rodeo("data", "filter", NAME.format("faulty", 1), "--python", "mine.py", "--output", "few")
    kept = read_event_file(samples / "few._0001.data").events
    assert [event.l1id for event in kept] == [
        event.l1id for event in events_of(samples, [NAME.format("faulty", 1)]) if len(chunks_of([event])) < 5
    ]
    assert kept and "refused" in done.stdout and "looking at" in done.stderr and "looking at" not in done.stdout


def test_a_function_that_hangs_costs_the_events_at_which_it_does(rodeo, samples):
    (samples / "mine.py").write_text(
        "def keep(event):\n    while event.index == 1:\n        try: pass\n        except Exception: pass\n    return True\n"
    )
    done = rodeo(
        "data",
        "filter",
        NAME.format("sound", 1),
        "--python",
        "mine.py",
        "--hang",
        "3s",
        "--output",
        "few",
        "--format",
        "json",
        exit_code=6,
    )
    told = json.loads(done.stdout)
    assert (told["events_in"], told["kept"], told["timed_out"], told["refused"]) == (3, 2, 1, 0)
    all_of_it = events_of(samples, [NAME.format("sound", 1)])
    assert (
        f"took longer than 3 s at event 1 (L1 id {all_of_it[1].l1id:#010x})" in done.stderr
        and "mine.py:" in done.stderr
    )
    assert [event.l1id for event in read_event_file(samples / "few._0001.data").events] == [
        all_of_it[0].l1id,
        all_of_it[2].l1id,
    ]

    (samples / "mine.py").write_text("import time\ndef keep(event):\n    time.sleep(1000)\n")
    done = rodeo("data", "filter", *FILES, "--python", "mine.py", "--hang", "50ms", "--output", "none", exit_code=1)
    assert (
        "took longer than 0.05 s at 3 events in turn" in done.stderr
        and "Traceback" not in done.stderr
        and not list(samples.glob("none*"))
    )


@pytest.mark.parametrize(
    ("text", "name", "says"),
    [
        ("def keep(event):\n    return event.no_such_thing\n", "", "mine.py:2: failed at event 0"),
        ("def other(event):\n    return True\n", "", "has no function `keep`"),
        ("import no_such_module\n", "", "mine.py:1: cannot be run: ModuleNotFoundError"),
        ("def f(event:\n", ":f", "SyntaxError"),
        ("import sys\ndef keep(event):\n    sys.exit()\n", "", "mine.py:3: failed at event 0"),
        ("import sys\nsys.exit(0)\n", "", "mine.py:2: cannot be run: SystemExit"),
        ("import os\ndef keep(event):\n    os._exit(3)\n", "", "ended its process: exit status 3"),
        (
            "import os\ndef keep(event):\n    os.kill(os.getpid(), 11)\n",
            "",
            "ended its process: signal 11 (Segmentation fault)",
        ),
    ],
)
def test_a_function_that_fails_says_where(rodeo, samples, text, name, says):
    (samples / "mine.py").write_text(text)
    done = rodeo("data", "filter", FILES[0], "--python", f"mine.py{name}", "--output", "new", exit_code=1)
    assert says in done.stderr and "error[data.function]" in done.stderr and "Traceback" not in done.stderr
    assert not list(samples.glob("new*"))


def test_a_function_is_in_a_python_file(rodeo, samples):
    (samples / "keep.txt").write_text("def keep(event):\n    return True\n")
    done = rodeo("data", "filter", FILES[0], "--python", "keep.txt", "--output", "new", exit_code=1)
    assert "error[data.function]: keep.txt: is not a Python file" in done.stderr and "AttributeError" not in done.stderr


def test_bad_files_are_refused_by_name(rodeo, samples):
    (samples / "text.data").write_text("no data at all\n" * 20)
    (samples / "empty.data").write_bytes(b"")
    (samples / "other.h5").write_text("no HDF5 either")
    with h5py.File(samples / "strange.h5", "w") as file:
        file["x"] = 1
    for arguments, code in (
        (("text.data", "--output", "x.h5"), "data.unknown_kind"),
        (("empty.data", "--output", "x.root"), "data.empty"),
        (("absent.data", "--output", "x.h5"), "file.open"),
        (("other.h5", "--output", "x"), "data.unknown_kind"),
        (("strange.h5", "--output", "x"), "data.unknown_kind"),
    ):
        done = rodeo("data", "convert", *arguments, exit_code=1)
        assert f"error[{code}]: {arguments[0]}" in done.stderr and "Traceback" not in done.stderr
    rodeo("data", "convert", FILES[0], "--output", "x.unknown", exit_code=2)
    rodeo("data", "convert", FILES[0], "--output", "no/such/x.h5", exit_code=1)
    (samples / "there.h5").write_text("mine")
    assert "file.exists" in rodeo("data", "convert", FILES[0], "--output", "there.h5", exit_code=5).stderr
    assert (
        (samples / "there.h5").read_text() == "mine"
        and not list(samples.glob("x*"))
        and not list(samples.glob("*.part"))
    )


def test_a_full_disk_and_a_missing_package_have_words(rodeo, samples):
    def small():
        resource.setrlimit(resource.RLIMIT_FSIZE, (4000, 4000))

    for verb, output in (("convert", "x.h5"), ("convert", "x.root"), ("plot", "x.png")):
        done = rodeo("data", verb, FILES[0], "--output", output, exit_code=1, preexec_fn=small)
        assert f"error[file.write]: {output}: " in done.stderr and "\n  free space" in done.stderr, done.stderr
        assert "Traceback" not in done.stderr and ".part" not in done.stderr and not list(samples.glob("x*")), (
            done.stderr
        )
    (samples / "h5py.py").write_text("raise ImportError('not here')\n")
    rodeo.environment["PYTHONPATH"] = str(samples)
    done = rodeo("data", "convert", FILES[0], "--output", "x.h5", exit_code=1)
    assert (
        "needs the Python package h5py" in done.stderr
        and "tools/setup run, or name" in done.stderr
        and "Traceback" not in done.stderr
    )


def test_names_that_are_no_text(rodeo, samples):
    odd = os.fsencode(samples) + b"/\xff.data"
    os.link(samples / FILES[0], odd)
    for output in (b"/\xfe.h5", b"/\xfe.root", b"/\xfe.png"):
        verb = "plot" if output.endswith(b"png") else "convert"
        done = subprocess.run(
            [BUILD / "rodeo", "data", verb, odd, "--output", os.fsencode(samples) + output],
            capture_output=True,
            timeout=scaled(60),
        )
        assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    "command",
    [
        ("events", "monitor", ROOT / "examples" / "monitor.py", "--input"),
        ("data", "plot", "--output", "x.png"),
        ("data", "convert", "--output", "x.h5"),
    ],
    ids=lambda command: " ".join(map(str, command[:2])),
)
def test_a_missing_package_is_an_error_with_its_remedy(rodeo, samples, command):
    interpreter = rodeo.directory / "python"
    interpreter.write_text(f'#!/bin/sh\nexec {sys._base_executable} -S "$@"\n')  # has the standard library only
    interpreter.chmod(0o755)
    rodeo.environment["RODEO_PYTHON"] = str(interpreter)
    said = rodeo(*command, FILES[0], exit_code=1).stderr
    assert "Traceback" not in said and "error[cli.python]" in said and "tools/setup run" in said, said


def test_a_full_disk_under_stdout_is_not_blamed_on_the_output_file(rodeo, samples):
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [BUILD / "rodeo", "data", "convert", FILES[0], "--output", "x.h5"],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            cwd=rodeo.directory,
            env=rodeo.environment,
        )
    assert (
        done.returncode == 1
        and "error[cli.output]" in done.stderr
        and "x.h5" not in done.stderr
        and (rodeo.directory / "x.h5").exists()
    )
