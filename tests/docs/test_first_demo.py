"""The first tutorial works as it is printed."""

from conftest import ROOT
from running import Reader


def test_the_first_demo_goes_from_a_command_to_a_histogram():
    with Reader() as reader:
        ran = reader.read((ROOT / "docs" / "tutorials" / "first-demo.md").read_text())
        assert ran >= 8 and (reader.folder / "bcid.png").stat().st_size > 1000
