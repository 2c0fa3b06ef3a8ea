"""A link has the name that its owner gave it; people see it beside the FID, programs as `name`."""

import json
import re

import pytest
from running_readout import CONFIGURATION, running, write_configuration

FID = "0x1000000000030000"
NAMES = f"""
[[link]]
fid = "{FID}"
name = "BIL-A12"

[[link]]
fid = "0x1000000000040000"
name = "BIL-A13"
"""


def test_status_list_top_messages_metrics_and_report_have_the_name(rodeo):
    text = CONFIGURATION + NAMES
    with running(rodeo, "readout.input.silent_link=3", text=text) as run:
        run.wait_until(lambda status: status["fragments"]["missing_links"], "the link is missing")
        assert f"{FID} (BIL-A12) missing" in run.ask("status").stdout
        [missing] = run.status()["fragments"]["missing_links"]
        assert missing["fid"] == FID and missing["name"] == "BIL-A12"
        listed = run.ask("link", "list").stdout
        assert re.search(rf"{FID} +BIL-A12 ", listed), listed
        assert {link["fid"]: link["name"] for link in run.links()}["0x1000000000050000"] == ""
        assert re.search(rf"{FID} +BIL-A12 ", rodeo("top", "--once", "--interval", "10ms").stdout)
        run.ask("link", "remove", FID)
        _, said = run.finish()
    assert f"link {FID} (BIL-A12) removed by hand" in said
    assert f"{FID} (BIL-A12) in" in said, "the report has the name"


@pytest.mark.parametrize(
    "more, what",
    [
        ('[[link]]\nfid = "0x1000000000050000"\nname = "BIL-A12"\n', "two links have the name BIL-A12"),
        (f'[[link]]\nfid = "{FID}"\nname = "other"\n', f"the link {FID} has two names"),
        ('[[link]]\nfid = "0x1000000000050000"\nname = ""\n', "is not a name of a link"),
        ('[[link]]\nfid = "five"\nname = "other"\n', "five"),
    ],
)
def test_a_wrong_name_is_refused_with_its_place(rodeo, more, what):
    file = write_configuration(rodeo, CONFIGURATION + NAMES + more)
    for verb in (["check", file], ["readout", file, "--seconds", 0.1]):
        said = rodeo(*verb, exit_code=3).stderr
        assert what in said and "config.bad_value" in said and re.search(r"\.toml:\d+:\d+", said), said


def test_a_name_is_no_key_of_the_readout(rodeo):
    found = json.loads(rodeo("check", write_configuration(rodeo, CONFIGURATION + NAMES), "-o", "json").stdout)
    assert found[0]["valid"]
