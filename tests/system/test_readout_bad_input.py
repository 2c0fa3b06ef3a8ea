"""Bad input gives a clear error with its place and the right exit status, and loses nothing."""

import json
import os
import re
import resource
import time

import pytest
from conftest import BUILD, TIMEOUT_SCALE, scaled
from running_readout import CONFIGURATION, adds_up, running, write_configuration


def refused(rodeo, text, code, exit_code=3, *arguments):
    done = rodeo("readout", write_configuration(rodeo, text), "--seconds", 0.2, *arguments, exit_code=exit_code)
    assert f"error[{code}]" in done.stderr, done.stderr
    return done.stderr


def test_a_missing_file(rodeo):
    assert "nothing.toml" in rodeo("readout", "nothing.toml", exit_code=3).stderr


def test_no_file_at_all(rodeo):
    rodeo("readout", exit_code=2)


def test_an_unknown_plugin(rodeo):
    error = refused(
        rodeo,
        CONFIGURATION.replace('name = "test"', 'name = "test"\nplugins = ["no_such_thing"]'),
        "base.plugin_not_found",
    )
    assert "no_such_thing" in error and "run.toml:" in error


def test_a_plugin_of_another_abi(rodeo):
    library = next((BUILD / "test_plugins").glob("*wrong_abi*"), None)
    if library is None:
        pytest.skip("built with the unit tests")
    refused(rodeo, CONFIGURATION.replace('name = "test"', f'name = "test"\nplugins = ["{library}"]'), "base.plugin_abi")


def test_an_unknown_component_with_the_nearest_name(rodeo):
    assert "file_writer" in refused(
        rodeo, CONFIGURATION.replace('type = "file_writer"', 'type = "file_writr"'), "base.unknown_component"
    )


def test_a_duplicate_link(rodeo):
    text = CONFIGURATION.replace(
        'source_id = "0x00610001"', 'source_id = "0x00610001"\nlinks = ["0x1000000000000000", "0x1000000000000000"]'
    )
    assert "run.toml:" in refused(rodeo, text, "readout.duplicate_link")


def test_a_link_of_two_robs(rodeo):
    refused(rodeo, CONFIGURATION + '\n[[readout.rob]]\nsource_id = "0x00610002"\n', "readout.duplicate_link")


def test_zero_links(rodeo):
    assert "links" in refused(rodeo, CONFIGURATION.replace("links = 8", "links = 0"), "config.out_of_range")


def test_no_rob(rodeo):
    refused(rodeo, CONFIGURATION.replace('[[readout.rob]]\nsource_id = "0x00610001"\n', ""), "readout.no_rob")


def test_pools_larger_than_memory(rodeo):
    done = rodeo(
        "readout",
        write_configuration(rodeo, CONFIGURATION.replace("links = 8", 'links = 8\nmemory = "900GB"')),
        "--seconds",
        0.2,
        exit_code=3,
    )
    assert "error[base.memory]" in done.stderr and "readout.input.memory" in done.stderr


@pytest.mark.parametrize(
    "keys",
    [
        'window = 16777216\nchunk_size = "1MB"',
        'buffers = 16777216\nchunk_size = "1MB"\nworkers = 2',
        'type = "full"\nfragments = 1000000\ncopies = 1000000\ncopy_size = "16MiB"',
    ],
    ids=["window", "buffers", "copies"],
)
def test_buffers_larger_than_memory_are_refused_before_any_is_touched(rodeo, keys):
    text = CONFIGURATION.replace('type = "gbt"', keys)
    if "full" in keys:
        text = text.replace("links = 8", "links = 8\ngroups = 1")
    # Programs with sanitizers need more memory than this limit.
    limit = None if TIMEOUT_SCALE > 1 else lambda: resource.setrlimit(resource.RLIMIT_DATA, (1 << 30, 1 << 30))
    done = rodeo("readout", write_configuration(rodeo, text), "--seconds", 0.2, exit_code=3, preexec_fn=limit)
    assert "error[base.memory]" in done.stderr and "are wanted" in done.stderr and "readout.builder." in done.stderr, (
        done.stderr
    )


def test_an_empty_directory_name(rodeo):
    done = rodeo(
        "readout", write_configuration(rodeo, CONFIGURATION.replace('"files"', '""')), "--seconds", 0.2, exit_code=1
    )
    assert "error[readout.cannot_write]" in done.stderr and "empty" in done.stderr


def test_a_name_with_a_nul(rodeo):
    assert "NUL" in refused(rodeo, CONFIGURATION.replace('"files"', '"fi\\u0000les"'), "config.bad_value")


def test_what_a_flag_gives_is_found_at_the_flag(rodeo):
    error = refused(rodeo, CONFIGURATION, "config.bad_value", 3, "--set", "readout.name=a b")
    assert "--set" in error and "run.toml:" not in error


def test_a_flag_may_bring_a_table_that_the_file_leaves_out(rodeo):
    done = rodeo(
        "readout",
        write_configuration(rodeo),
        "--seconds",
        0.3,
        "--set",
        "readout.checker.type=crc32",
        "--set",
        "readout.input.crc=true",
        "--json",
        "-",
    )
    assert json.loads(done.stdout)["verified"]["mismatches"] == 0


@pytest.mark.parametrize(
    "change, code",
    [
        (("links = 8", 'fids = ["0x1000000000000000", "0x1000000000000000"]'), "readout.bad_generator"),
        (('source_id = "0x00610001"', 'source_id = "0x00610001"\nlinks = []'), "readout.no_links"),
        (('[[readout.rob]]\nsource_id = "0x00610001"\n', ""), "readout.no_rob"),
        (("[[readout.rob]]", '[[readout.rob]]\nsource_id = "0x00610001"\n[[readout.rob]]'), "readout.duplicate_rob"),
        (
            (
                'source_id = "0x00610001"',
                'source_id = "0x00610001"\nlinks = ["0x1000000000000000+2"]\nlink_ids = ["3", "3"]',
            ),
            "readout.duplicate_link",
        ),
        (('type = "generator"\nlinks = 8\nrate = "2kHz"', 'type = "file"\nfile = "nowhere"'), "file.open"),
        (('type = "generator"\nlinks = 8\nrate = "2kHz"', 'type = "file"\nfile = "zeros"'), "formats.zero_recording"),
        (('type = "generator"\nlinks = 8\nrate = "2kHz"', 'type = "card"\ncards = ["bogus"]'), "card.bad_id"),
        (
            ('type = "generator"\nlinks = 8\nrate = "2kHz"', 'type = "card"\ncards = ["#0"]\nmemory = "3MiB"'),
            "readout.card_memory",
        ),
        (("[readout.builder]", '[readout.metrics]\nlisten = "127.0.0.1"\n[readout.builder]'), "process.http"),
        (("[readout.builder]", '[readout.metrics]\nlisten = "127.0.0.1:99999"\n[readout.builder]'), "process.http"),
        (
            (
                '\n[readout.builder]\ntype = "gbt"\n\n[readout.extractor]',
                "l1id_bits = 8\n[readout.extractor]\nl1id_bits = 16",
            ),
            "readout.l1id_bits",
        ),
        (
            (
                '\n[readout.builder]\ntype = "gbt"\n\n[readout.extractor]',
                "l1id_bits = 32\nl1id_counter = 32\n[readout.builder]\ntrigger_list = true\n[readout.extractor]",
            ),
            "readout.wide_ids_listed",
        ),
        (("links = 8", "links = 8\nchunk_bytes = -4"), "config.out_of_range"),
    ],
    ids=[
        "fids",
        "no_links",
        "no_rob",
        "two_robs",
        "link_ids",
        "missing_recording",
        "zeros",
        "cards",
        "memory",
        "no_port",
        "large_port",
        "id_bits",
        "wide_ids_listed",
        "negative",
    ],
)
def test_check_refuses_what_a_readout_refuses(rodeo, change, code):
    (rodeo.directory / "zeros").write_bytes(bytes(1 << 16))
    assert change[0] in CONFIGURATION
    file = write_configuration(rodeo, CONFIGURATION.replace(*change))
    done = rodeo("check", file, exit_code=3)
    assert f"error[{code}]" in done.stderr and "run.toml" in done.stderr + done.stdout, done.stderr
    assert "18447" not in done.stderr
    assert f"error[{code}]" in rodeo("readout", file, "--seconds", 0.2, exit_code=None).stderr


def test_an_unwritable_directory(rodeo):
    done = rodeo(
        "readout",
        write_configuration(rodeo, CONFIGURATION.replace('"files"', '"/proc/nowhere"')),
        "--seconds",
        0.2,
        exit_code=1,
    )
    assert "error[readout.cannot_write]" in done.stderr and "/proc/nowhere" in done.stderr


def test_a_misspelt_key_with_the_right_one(rodeo):
    assert "rate" in refused(rodeo, CONFIGURATION.replace("rate =", "rat ="), "config.unknown_key")


FILE_INPUT = CONFIGURATION.replace('type = "generator"\nlinks = 8\nrate = "2kHz"', 'type = "file"\nfile = "recording"')


def test_a_missing_recording(rodeo):
    assert "recording" in refused(rodeo, FILE_INPUT, "file.open", 1)


@pytest.mark.parametrize(
    "contents", [bytes(1 << 20), b"", b"a text\n" * 1000, bytes(100)], ids=["zeros", "nothing", "text", "few_zeros"]
)
def test_a_file_that_is_no_recording(rodeo, contents):
    (rodeo.directory / "recording").write_bytes(contents)
    done = rodeo("readout", write_configuration(rodeo, FILE_INPUT), "--seconds", 0.2, exit_code=None)
    assert done.returncode in (1, 3) and "error[" in done.stderr and "recording" in done.stderr, done.stderr


def test_a_truncated_recording_loses_what_was_cut_and_nothing_else(rodeo):
    rodeo("data", "record", "whole", "--links", 8, "--events", 2000)
    whole = (rodeo.directory / "whole").read_bytes()
    (rodeo.directory / "recording").write_bytes(whole[: len(whole) * 2 // 3 + 100])
    done = rodeo("readout", write_configuration(rodeo, FILE_INPUT), "--json", "-")
    report = json.loads(done.stdout)
    assert report["fragments"]["built"] > 1000 and adds_up(report)
    assert report["verified"]["mismatches"] == 0
    assert report["run"]["condition"] == "INCOMPLETE" and report["input"]["damaged"] > 0
    assert "damaged" in done.stderr
    rodeo("data", "verify", *report["files"])


def test_a_report_that_cannot_be_written_is_known_before_the_run(rodeo, tmp_path):
    file = write_configuration(rodeo, CONFIGURATION)
    done = rodeo("readout", file, "--seconds", 30, "--json", tmp_path / "nowhere" / "report.json", exit_code=2)
    assert "nowhere" in done.stderr and "triggers" not in done.stderr


def test_the_demo_speaks_of_its_own_options(rodeo):
    done = rodeo("demo", "--links", 0, exit_code=2)
    assert "--links" in done.stderr and "--set" not in done.stderr


def test_a_recording_cut_short_while_it_is_played_ends_the_run_with_closed_files(rodeo):
    """The exit status reports this, also if bytes were wrong: the last bytes read may have been zeros."""
    rodeo("data", "record", "recording", "--links", 8, "--events", 40000)
    with open(rodeo.directory / "recording", "r+b") as recording:
        content = bytearray(recording.read(1 << 20))
        for block in range(0, len(content), 1024):
            content[block + 30] ^= 0x10
        recording.seek(0)
        recording.write(content)
    process = rodeo.start(
        "readout",
        write_configuration(rodeo, FILE_INPUT.replace('file = "recording"', 'file = "recording"\nrate = "2kHz"')),
        "--json",
        "-",
    )
    deadline = time.monotonic() + scaled(30)
    mismatches = 0
    while mismatches == 0:
        assert process.poll() is None and time.monotonic() < deadline, process.communicate()
        time.sleep(0.05)
        status = rodeo("readout", "status", "--name", "test", "-o", "json", exit_code=None)
        mismatches = json.loads(status.stdout)["verified"]["mismatches"] if status.returncode == 0 else 0
    os.truncate(rodeo.directory / "recording", 1000)
    out, err = process.communicate(timeout=scaled(60))
    assert process.returncode == 1, err
    report = json.loads(out)
    assert (
        report["run"]["condition"] == "ABORTED"
        and "became shorter" in report["run"]["failure"]
        and "recording" in report["run"]["failure"]
    )
    assert report["files"] and not list(rodeo.directory.rglob("*.writing"))
    rodeo("data", "verify", *report["files"], exit_code=None)
    assert not [line for line in rodeo("data", "info", *report["files"]).stderr.splitlines() if "error" in line]


def test_a_flipped_byte_makes_the_run_wrong(rodeo):
    rodeo("data", "record", "recording", "--links", 8, "--events", 2000)
    content = bytearray((rodeo.directory / "recording").read_bytes())
    content[len(content) // 2 + 30] ^= 0x10
    (rodeo.directory / "recording").write_bytes(content)
    done = rodeo("readout", write_configuration(rodeo, FILE_INPUT), "--json", "-", exit_code=None)
    report = json.loads(done.stdout)
    assert report["run"]["condition"] != "GOOD" and ": GOOD" not in done.stderr
    if report["verified"]["mismatches"] > 0:
        assert done.returncode == 7 and report["run"]["condition"] == "WRONG"
        found = rodeo("data", "verify", *report["files"], exit_code=7)
        assert (
            "WRONG PAYLOAD, as it was written" in found.stdout
            and "recover" not in found.stdout
            and "a recovery would not" in found.stderr
        )


def test_a_cpu_that_is_not_there_is_said(rodeo):
    done = rodeo(
        "readout",
        write_configuration(rodeo),
        "--seconds",
        0.2,
        "--set",
        "readout.builder.cpus=4000",
        "--set",
        "readout.input.cpu=4001",
    )
    assert (
        "rodeo-gbt-0 cannot be pinned to CPU 4000" in done.stderr
        and "rodeo-gen cannot be pinned to CPU 4001" in done.stderr
    )
    done = rodeo(
        "readout",
        write_configuration(rodeo),
        "--seconds",
        0.2,
        "--set",
        "readout.builder.type=full",
        "--set",
        "readout.input.groups=1",
        "--set",
        "readout.builder.cpus=4000",
        "--set",
        "readout.consumer[2].directory=full",
    )
    assert "rodeo-full-0 cannot be pinned to CPU 4000" in done.stderr


def test_status_speaks_in_rounded_numbers(rodeo):
    with running(rodeo) as run:
        shown = run.ask("status").stdout
    for line in shown.splitlines():
        assert not re.search(r"\.\d{5}", line), line
