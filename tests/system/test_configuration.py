"""`rodeo check`, `rodeo explain`, and the reference and JSON Schema generated from the same declarations."""

import json
import os
import shutil
import tomllib
from pathlib import Path

import jsonschema
import pytest
from event_files import write_event_file

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = sorted((ROOT / "examples").glob("*.toml"))
GOOD = """
[readout.input]
type = "generator"
[readout.builder]
timeout = "20ms"
[[readout.rob]]
source_id = "0x00610001"
[[readout.consumer]]
type = "processor"
work = "verify"
seed = 7
"""


@pytest.fixture
def write(rodeo):
    def write(text, name="run.toml"):
        (rodeo.directory / name).write_text(text)
        return name

    return write


@pytest.fixture
def schema(rodeo):
    return json.loads(rodeo("check", "--schema").stdout)


def test_there_are_examples():
    assert EXAMPLES


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.name)
def test_every_example_is_valid(rodeo, example):
    if "recording.felix" in example.read_text():
        rodeo("data", "record", "recording.felix", "--links", 24, "--events", 100)
    if "before._0001.data" in example.read_text():
        write_event_file(rodeo, "before._0001.data")
    shutil.copy(example, rodeo.directory)
    assert ": valid" in rodeo("check", example.name).stdout


@pytest.mark.parametrize("name", ["pipe", "/dev/zero", "."])
@pytest.mark.parametrize(
    "verb",
    [
        ["check"],
        ["check", "--effective"],
        ["check", "--schema"],
        ["data", "record", "out.felix", "--config"],
        ["readout"],
    ],
    ids=" ".join,
)
def test_what_is_no_plain_file_is_refused_without_waiting_for_it(rodeo, verb, name):
    os.mkfifo(rodeo.directory / "pipe")
    said = rodeo(*verb, name, exit_code=3, timeout=20).stderr
    assert said.startswith("error[config.unreadable]") and name in said


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.name)
def test_every_example_fits_the_json_schema(rodeo, example):
    jsonschema.validate(tomllib.loads(example.read_text()), json.loads(rodeo("check", "--schema", example).stdout))


def test_the_json_schema_is_one(schema):
    jsonschema.Draft7Validator.check_schema(schema)
    assert schema["$schema"].startswith("http://json-schema.org/draft-07/")


@pytest.mark.parametrize(
    "line, better",
    [
        ('timeout = "20ms"', 'time_out = "20ms"'),
        ('timeout = "20ms"', "timeout = 20"),
        ('timeout = "20ms"', 'timeout = "20 parsecs"'),
        ('source_id = "0x00610001"', "links = []"),
        ('source_id = "0x00610001"', 'source_id = "0x1006100010"'),
        ('work = "verify"', 'work = "read"'),
        ('work = "verify"', 'work = "no_such_work"'),
        ('type = "generator"', 'type = "no_such_input"'),
        ('type = "generator"', ""),
    ],
)
def test_check_and_schema_refuse_the_same(rodeo, write, schema, line, better):
    jsonschema.validate(tomllib.loads(GOOD), schema)
    rodeo("check", write(GOOD))
    assert line in GOOD
    broken = GOOD.replace(line, better)
    rodeo("check", write(broken), exit_code=3)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(tomllib.loads(broken), schema)


SYSTEM = """
[control]
name = "lab"
[[control.process]]
name = "readout"
kind = "readout"
configuration = "class.toml"
count = 2
set = ["readout.rob[0].source_id=0x0061000{number}", "readout.builder.window={number}99"]
"""


def test_a_system_file_is_checked_with_the_configurations_of_its_classes(rodeo, write):
    write(GOOD, "class.toml")
    done = rodeo("check", write(SYSTEM, "system.toml"), exit_code=3)
    assert (
        done.stdout == "" and "readout-1" in done.stderr and "window" in done.stderr and "readout-2" not in done.stderr
    ), "a window has 256 events or more: 199 are too few"
    assert ": valid" in rodeo("check", "--alone", "system.toml").stdout
    said = json.loads(rodeo("check", "system.toml", "-o", "json", exit_code=3).stdout)
    assert [(each["file"].rpartition("/")[2], each["valid"]) for each in said] == [
        ("system.toml", True),
        ("class.toml", False),
    ]
    assert said[1]["errors"][0]["what"].startswith("process readout-1: ")
    assert ": valid" in rodeo("check", write(SYSTEM.replace("{number}99", "{number}999"), "system.toml")).stdout


def test_all_errors_of_all_files_are_told(rodeo, write):
    first = write('[readout.builder]\ntime_out = 1\ntimeout = 10\n[readout.input]\ntype="generator"\n', "first.toml")
    second = write("[readout.input]\n", "second.toml")
    done = rodeo("check", first, second, write(GOOD, "good.toml"), exit_code=3)
    assert (
        done.stdout.startswith("good.toml: valid, 6 values given\n  ROB 0x")
        and "a link finds its place after a silence of any length" in done.stdout
    )
    assert done.stderr.count("error[") == 3
    assert (
        "error[config.unknown_key]: first.toml:2:1: readout.builder.time_out is not a known key of `gbt`\n"
        in done.stderr
    )
    assert (
        "  did you mean `timeout`? (duration, default 10ms)    rodeo explain readout.builder.timeout\n" in done.stderr
    )
    assert "error[config.missing_key]: second.toml:1:1: readout.input.type is required\n" in done.stderr


CARD = """
[[emulator.card]]
type = "felix"
name = "felix"
address = "0000:3b:00.0"
serial = 712
endpoints = 2
links = 4
"""
CRU = """
[emulator]
name = "cards"
[[emulator.card]]
type = "cru"
name = "cru"
address = "0000:af:00.0"
"""
FAULT = """
[[emulator.fault]]
kind = "link_down"
card = "felix"
link = 3
"""


@pytest.mark.parametrize(
    "text, says",
    [
        (CARD + 'link_speed = "100Gbps"\n', "link_speed is at most"),
        (CARD + 'chunk_size = "4"\n', "chunk_size is 4 B, but must be 8 B to 1 MiB"),
        (CARD + 'chunk_size = "100"\nchunk_size_max = "99"\n', "chunk_size_max (99) is below chunk_size (100)"),
        (CARD + CARD.replace("3b", "3c").replace("712", "713"), "two cards have the name felix"),
        (
            CARD + CARD.replace('"felix"\naddress', '"other"\naddress').replace("3b", "3c"),
            "two cards have the serial number 712",
        ),
        (
            CARD
            + CARD.replace('"felix"\naddress', '"other"\naddress')
            .replace("0000:3b:00.0", "3b:00.1")
            .replace("712", "713")
            .replace("endpoints = 2", "endpoints = 1"),
            "two cards have the address 0000:3b:00.1",
        ),
        (CARD + FAULT.replace('card = "felix"', 'card = "nobody"'), "there is no card `nobody`"),
        (CARD + FAULT.replace("link = 3", "link = 4"), "has 2 endpoints of 4 links"),
        (
            CARD + FAULT.replace('card = "felix"', 'card = "3b:00.1"').replace("link = 3", "link = 4"),
            "fault is for endpoint 1, link 4",
        ),
        (
            CARD + FAULT + "endpoint = 1\n" + FAULT.replace('card = "felix"', 'card = "3b:00.2"'),
            "there is no card `3b:00.2`",
        ),
        (
            CARD + FAULT.replace("link_down", "bad_packet_counter"),
            "card `felix` (FELIX) has no fault bad_packet_counter",
        ),
        (CARD + FAULT.replace("link_down", "size_index_mismatch"), "it has: link_down, link_up, corrupt_rdh"),
        (
            CARD + FAULT.replace("link_down", "corrupt_rdh") + 'duration = "1s"\n',
            "the fault corrupt_rdh has no duration",
        ),
        (
            CRU + FAULT.replace('"felix"', '"cru"').replace("link = 3", "link = 12"),
            "card `cru` (CRU) has 1 endpoint of 12 links, and the fault is for endpoint 0, link 12",
        ),
        (CRU + "links = 3\n" + FAULT.replace('"felix"', '"cru"'), "has 1 endpoint of 3 links"),
        (
            CRU.replace('"cru"', '"crorc"') + FAULT.replace('"felix"', '"crorc"').replace("link = 3", "link = 6"),
            "card `crorc` (C-RORC) has 1 endpoint of 6 links",
        ),
        (
            CRU.replace('"cru"', '"crorc"') + FAULT.replace('"felix"', '"crorc"').replace("link_down", "temperature"),
            "card `crorc` (C-RORC) has no fault temperature",
        ),
        (CARD + FAULT + 'every = "1ns"\n', "every is at least 1ms"),
        ('[emulator]\nname = "nothing"\n', "there is no [[emulator.card]]"),
    ],
)
def test_check_refuses_what_the_emulator_refuses(rodeo, write, text, says):
    for fault in (
        FAULT,
        FAULT.replace("link = 3", "link = 31").replace("link_down", "removal"),
        FAULT.replace('card = "felix"', 'card = "3b:00.1"'),
    ):
        rodeo("check", write(CARD + fault))
    rodeo("check", write(CRU + FAULT.replace('"felix"', '"cru"').replace("link_down", "bad_packet_counter")))
    file = write(text)
    for verb in ("check", "emulate"):
        done = rodeo(verb, file, exit_code=3)
        assert says in done.stderr and "run.toml" in done.stderr


def test_an_emulator_says_that_a_cpu_is_not_there(rodeo, write):
    done = rodeo(
        "emulate", write(CARD.replace("endpoints = 2", "endpoints = 1") + 'cpus = ["4000"]\n'), "--seconds", 0.1
    )
    assert "the DMA thread of 0000:3b:00.0 cannot be pinned to CPU 4000" in done.stderr


def test_errors_for_programs(rodeo, write):
    done = rodeo("check", write("[readout.input]\ntype = 3\n"), "-o", "json", exit_code=3)
    [report] = json.loads(done.stdout)
    assert not report["valid"] and report["errors"][0]["code"] == "config.wrong_type"
    assert report["errors"][0]["where"] == "run.toml:2:8" and done.stderr == ""


def test_effective_values_name_their_origin(rodeo, write):
    rodeo.environment["RODEO_READOUT_NAME"] = "muon"
    done = rodeo("check", "--effective", "-o", "json", "--set", "readout.rob[0].source_id=0x00620000", write(GOOD))
    [report] = json.loads(done.stdout)
    values = {one["key"]: (one["value"], one["origin"], one["where"]) for one in report["values"]}
    assert values["readout.builder.timeout"] == ('"20ms"', "file", "run.toml:5:11")
    assert values["readout.name"] == ("muon", "environment", "RODEO_READOUT_NAME")
    assert values["readout.rob[0].source_id"] == ("0x00620000", "flag", "--set")
    assert values["readout.consumer[0].seed"][0] == "7"
    assert values["run.number"][1] == "default"


def test_without_a_file_check_asks_for_one(rodeo):
    assert "which FILE" in rodeo("check", exit_code=2).stderr


def test_explain_knows_keys_of_components(rodeo):
    said = rodeo("explain", "readout.builder.timeout").stdout
    assert 'with type = "gbt"' in said and "duration, default 10ms" in said and "RODEO_READOUT_BUILDER_TIMEOUT" in said
    assert rodeo("explain", "readout.consumer[2].seed").stdout.startswith(
        'readout.consumer.seed    with work = "verify"'
    )


def test_explain_knows_tables_and_codes(rodeo):
    assert "remove_after_events" in rodeo("explain", "readout.link_policy").stdout
    assert "exit status 3" in rodeo("explain", "base.plugin_abi").stdout
    assert json.loads(rodeo("explain", "cli.usage", "-o", "json").stdout)["exit_status"] == 2


def test_explain_shows_the_tables_below_a_table_and_a_table_that_shares_its_name_with_an_error(rodeo):
    said = rodeo("explain", "network").stdout
    assert "[network.topology]" in said and "[network.sweep]" in said and "[[network.sweep.axis]]" not in said
    said = rodeo("explain", "network.topology").stdout
    assert said.startswith("[network.topology]") and "readouts" in said and "exit status 2" in said
    said = json.loads(rodeo("explain", "network.topology", "-o", "json").stdout)
    assert said["code"] == "network.topology" and "readouts" in [row["key"] for row in said["table"]]
    rows = {row["key"]: row["type"] for row in json.loads(rodeo("explain", "network.sweep", "-o", "json").stdout)}
    assert (
        rows["axis"] == "tables"
        and {row["key"]: row["type"] for row in json.loads(rodeo("explain", "network", "-o", "json").stdout)}[
            "topology"
        ]
        == "table"
    )


def test_every_table_that_a_message_sends_people_to_has_something_to_show(rodeo):
    for name in ("readout", "router", "emulator", "farm", "network", "network.sweep"):
        said = rodeo("explain", name).stdout
        assert len(said.splitlines()) > 4, said


def test_explain_suggests_what_was_meant(rodeo):
    assert "did you mean `readout.builder.timeout`?" in rodeo("explain", "readout.builder.tiemout", exit_code=2).stderr


def test_the_committed_reference_is_that_of_the_declarations(rodeo):
    committed = (ROOT / "docs/reference/configuration.md").read_text()
    assert rodeo("check", "--reference").stdout == committed, (
        "write it again: build/rodeo check --reference > docs/reference/configuration.md"
    )


def test_plugin_list_shows_components_with_their_origin(rodeo):
    components = json.loads(rodeo("plugin", "list", "-o", "json").stdout)
    assert {"kind": "checker", "name": "crc32"}.items() <= next(c for c in components if c["name"] == "crc32").items()
    assert all(c["origin"] == "built in" for c in components)
    only = json.loads(rodeo("plugin", "list", "--kind", "work", "-o", "json").stdout)
    assert {c["kind"] for c in only} == {"work"}


@pytest.mark.parametrize(
    "variable, meant",
    [("RODEO_READOUT_BUILDER_TIMEUOT", "RODEO_READOUT_BUILDER_TIMEOUT"), ("RODEO_REDOUT_NAME", "RODEO_READOUT_NAME")],
)
def test_a_misspelt_variable_is_refused_with_the_right_one(rodeo, write, variable, meant):
    rodeo.environment[variable] = "20ms"
    for command in (["check", write(GOOD)], ["readout", write(GOOD), "--seconds", 0.1]):
        assert (
            f"error[config.unknown_key]: {variable}: this variable sets no key" in rodeo(*command, exit_code=3).stderr
        )
        assert f"did you mean `{meant}`?" in rodeo(*command, exit_code=3).stderr


def test_variables_for_other_processes_are_left_alone(rodeo, write):
    rodeo.environment.update({"RODEO_EMULATOR_NAME": "x", "RODEO_LOG": "warning", "RODEO_ANYTHING_ELSE": "1"})
    rodeo("check", write(GOOD))
