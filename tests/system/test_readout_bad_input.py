"""Bad input gets a clear error with its place, the right exit status, and loses nothing."""

import json

import pytest
from conftest import BUILD
from running_readout import CONFIGURATION, adds_up, write_configuration


def refused(rodeo, text, code, exit_code=3, *arguments):
    done = rodeo("readout", write_configuration(rodeo, text), "--seconds", 0.2, *arguments, exit_code=exit_code)
    assert f"error[{code}]" in done.stderr, done.stderr
    return done.stderr


def test_a_missing_file(rodeo):
    assert "nothing.toml" in rodeo("readout", "nothing.toml", exit_code=3).stderr


def test_no_file_at_all(rodeo):
    rodeo("readout", exit_code=2)


def test_an_unknown_plugin(rodeo):
    error = refused(rodeo, CONFIGURATION.replace('name = "test"', 'name = "test"\nplugins = ["no_such_thing"]'), "base.plugin_not_found")
    assert "no_such_thing" in error and "run.toml:" in error


def test_a_plugin_of_another_abi(rodeo):
    library = next((BUILD / "test_plugins").glob("*wrong_abi*"), None)
    if library is None:
        pytest.skip("built with the unit tests")
    refused(rodeo, CONFIGURATION.replace('name = "test"', f'name = "test"\nplugins = ["{library}"]'), "base.plugin_abi")


def test_an_unknown_component_with_the_nearest_name(rodeo):
    assert "file_writer" in refused(rodeo, CONFIGURATION.replace('type = "file_writer"', 'type = "file_writr"'), "base.unknown_component")


def test_a_duplicate_link(rodeo):
    text = CONFIGURATION.replace('source_id = "0x00610001"', 'source_id = "0x00610001"\nlinks = ["0x1000000000000000", "0x1000000000000000"]')
    assert "run.toml:" in refused(rodeo, text, "readout.duplicate_link")


def test_a_link_of_two_robs(rodeo):
    refused(rodeo, CONFIGURATION + '\n[[readout.rob]]\nsource_id = "0x00610002"\n', "readout.duplicate_link")


def test_zero_links(rodeo):
    assert "links" in refused(rodeo, CONFIGURATION.replace("links = 8", "links = 0"), "config.out_of_range")


def test_no_rob(rodeo):
    refused(rodeo, CONFIGURATION.replace('[[readout.rob]]\nsource_id = "0x00610001"\n', ""), "readout.no_rob")


def test_pools_larger_than_memory(rodeo):
    done = rodeo("readout", write_configuration(rodeo, CONFIGURATION.replace("links = 8", 'links = 8\nmemory = "900GB"')), "--seconds", 0.2, exit_code=3)
    assert "error[base.memory]" in done.stderr and "readout.input.memory" in done.stderr


def test_an_unwritable_directory(rodeo):
    done = rodeo("readout", write_configuration(rodeo, CONFIGURATION.replace('"files"', '"/proc/nowhere"')), "--seconds", 0.2, exit_code=1)
    assert "error[readout.cannot_write]" in done.stderr and "/proc/nowhere" in done.stderr


def test_a_misspelt_key_with_the_right_one(rodeo):
    assert "rate" in refused(rodeo, CONFIGURATION.replace("rate =", "rat ="), "config.unknown_key")


FILE_INPUT = CONFIGURATION.replace('type = "generator"\nlinks = 8\nrate = "2kHz"', 'type = "file"\nfile = "recording"')


def test_a_missing_recording(rodeo):
    assert "recording" in refused(rodeo, FILE_INPUT, "file.open", 1)


@pytest.mark.parametrize("contents", [bytes(1 << 20), b"", b"a text\n" * 1000, bytes(100)], ids=["zeros", "nothing", "text", "few_zeros"])
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
