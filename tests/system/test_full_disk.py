"""A full disk leaves no partial files. A limit on the size of files replaces the full disk: writes fail in the same way, without special rights."""

import json
import resource
import signal
import subprocess

import pytest
from conftest import ROOT
from running_readout import write_configuration


def full_after(size):
    """Options that limit the files of a command to `size` bytes."""

    def limit():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))

    return {"preexec_fn": limit}


def test_a_recovery_that_finds_no_room_leaves_nothing(rodeo):
    report = json.loads(rodeo("readout", write_configuration(rodeo), "--seconds", 0.5, "--json", "-").stdout)
    whole = rodeo.directory / report["files"][0]
    damaged = rodeo.directory / "cut._0001.writing"
    damaged.write_bytes(whole.read_bytes()[:-100])
    before = damaged.read_bytes()
    done = rodeo("data", "recover", damaged, exit_code=1, **full_after(len(before) // 2))
    assert (
        "error[file.write]" in done.stderr and "recovered._0001" not in done.stderr
    )  # the error does not name a file that does not exist
    assert not list(rodeo.directory.rglob("*recovered*")) and damaged.read_bytes() == before
    rodeo("data", "recover", damaged)
    rodeo("data", "verify", *rodeo.directory.rglob("*recovered*.data"))


@pytest.mark.parametrize("directory", ["detector", "deep/er/detector"])
def test_a_plugin_that_finds_no_room_leaves_nothing(rodeo, directory):
    done = rodeo("plugin", "new", "detector", "--directory", directory, exit_code=1, **full_after(1000))
    assert "error[cli.output]" in done.stderr and done.stdout == ""
    assert list(rodeo.directory.iterdir()) == []
    rodeo("plugin", "new", "detector", "--directory", directory)
    assert (rodeo.directory / directory / "README.md").stat().st_size > 0


def test_a_report_that_finds_no_room_leaves_what_was_there(rodeo):
    command = ["net", "formula", "--event-size", "5MB", "--rate", "12kHz", "--json", "x.json"]
    done = rodeo(*command, exit_code=1, **full_after(16))
    assert "error[cli.output]" in done.stderr and list(rodeo.directory.iterdir()) == []
    rodeo(*command)
    before = (rodeo.directory / "x.json").read_text()
    rodeo(*command, exit_code=1, **full_after(16))
    assert (rodeo.directory / "x.json").read_text() == before and len(list(rodeo.directory.iterdir())) == 1


def test_the_examples_that_write_number_their_runs_by_themselves():
    for example in (ROOT / "examples").rglob("*.toml"):
        text = example.read_text()
        assert 'type = "file_writer"' not in text or "\nnumber = " not in text, f"{example.name} runs only once"


def test_a_run_that_fills_its_disk_to_the_last_byte_keeps_its_record(rodeo, tmp_path_factory):
    disk = tmp_path_factory.mktemp("disk")
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=12m", "tmpfs", disk], capture_output=True).returncode != 0:
        pytest.skip("host: needs root, to mount a small disk")
    try:
        done = rodeo(
            "readout",
            write_configuration(rodeo),
            "--set",
            f"readout.consumer[2].directory={disk}",
            "--set",
            "readout.consumer[2].min_free=0",
            "--set",
            "readout.input.rate=20kHz",
            "--seconds",
            60,
            exit_code=1,
            timeout=120,
        )
        record = json.loads((disk / "run.json").read_text())
        assert (
            record["run"]["condition"] == "ABORTED"
            and "the disk is full" in record["run"]["failure"]
            and record["files"]
        )
        assert "run.json" not in done.stderr
        rodeo("data", "verify", *disk.glob("*.data"))
    finally:
        subprocess.run(["umount", disk], check=True)


def test_a_limit_on_the_size_of_files_is_not_blamed_on_the_disk(rodeo):
    configuration = write_configuration(rodeo)
    done = rodeo(
        "readout",
        configuration,
        "--set",
        "readout.input.events=20000",
        "--json",
        "run.json",
        exit_code=1,
        **full_after(300_000),
    )
    report = json.loads((rodeo.directory / "run.json").read_text())
    counters = report["consumers"]["file_writer"]["counters"]
    assert counters["unwritten_size_limit"] > 0 and counters["unwritten_disk_full"] == 0
    assert (
        "a file cannot become larger" in report["run"]["failure"]
        and "ulimit -f" in done.stderr
        and "disk is full" not in done.stderr
    )


def test_the_examples_that_write_do_not_fill_a_disk():
    for example in (ROOT / "examples").glob("*.toml"):
        text = example.read_text()
        played = 'type = "file"' in text or 'type = "event_file"' in text
        ends = played and "\nloop = true" not in text  # a recording or an event file that is played once ends by itself
        if 'type = "file_writer"' in text and not ends:
            assert any(key in text for key in ("fraction = ", "max_rate = ", "max_bytes = ")), example.name
