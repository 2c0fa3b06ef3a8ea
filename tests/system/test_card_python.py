"""rodeo.card: registers and superpages of emulated cards, from a Python process of its own."""

import os
import subprocess
import sys

import pytest

from conftest import BUILD, Rodeo, scaled
from emulated_cards import CRU, FELIX, emulated

if not list((BUILD / "python" / "rodeo").glob("_card*.so")):
    pytest.skip("this build has no Python modules (sanitizers, or python3-dev or nanobind is missing)", allow_module_level=True)


@pytest.fixture(scope="module")
def cards(tmp_path_factory):
    with emulated(Rodeo(tmp_path_factory.mktemp("cards"))) as running:
        yield running


def python(cards, text):
    environment = {**cards.rodeo.environment, "PYTHONPATH": str(BUILD / "python")}
    done = subprocess.run([sys.executable, "-B", "-c", text], env=environment, capture_output=True, text=True, timeout=scaled(60))
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


def test_registers_by_name_and_address(cards):
    out = python(cards, f"""
import rodeo.card
card = rodeo.card.open("{CRU}")
bar = card.bar(2)
assert bar.read("firmware_hash") == bar.read(4) and bar.number == 2 and bar.bytes == 16 << 20
bar.write("ctp_bc_max", 3563)
assert bar.modify("ctp_bc_max", position=4, width=4, value=5) == 0xd5b
for wrong in ("temperatur", 3, 1 << 24):
    try:
        bar.read(wrong)
    except ValueError as error:
        print("refused")
print(card.type, card.serial, card.endpoint, len(rodeo.card.list_cards()))
""")
    assert out == ["refused", "refused", "refused", "CRU", "245", "0", "3"]
    assert cards.register(CRU, "ctp_bc_max") == 0xd5b


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="one CPU: every place is the same")
def test_an_iterator_stays_on_the_node_until_its_end(cards):
    out = python(cards, f"""
import os
os.environ.update(HWLOC_SYNTHETIC="node:2 core:1 pu:1", HWLOC_THISSYSTEM="1")
import rodeo.card
before = os.sched_getaffinity(0)
options = dict(data_source="fee", buffer_bytes=8 << 20, superpage_bytes=1 << 18)
with rodeo.card.open("{FELIX}").dma(numa="1", **options) as superpages:
    assert os.sched_getaffinity(0) == before
    next(superpages)
    assert os.sched_getaffinity(0) == {{1}} and superpages.place == "on NUMA node 1 (CPUs 1)", superpages.place
assert os.sched_getaffinity(0) == before
del superpages  # the channel is owned as long as it is there
with rodeo.card.open("{FELIX}").dma(**options) as superpages:
    next(superpages)
    assert os.sched_getaffinity(0) == before and superpages.place.startswith("free: "), superpages.place
del superpages
try:
    rodeo.card.open("{FELIX}").dma(numa="7", **options)
except ValueError as error:
    print("no_node" if "there is no NUMA node 7" in str(error) else error)
""")
    assert out == ["no_node"]


@pytest.mark.parametrize("card", [CRU, FELIX])
def test_superpages_are_arrays(cards, card):
    out = python(cards, f"""
import rodeo.card
with rodeo.card.open("{card}").dma(data_source="fee", buffer_bytes=8 << 20, superpage_bytes=1 << 18) as superpages:
    seen = 0
    for superpage in superpages:
        assert superpage.data.dtype == "uint8" and not superpage.data.flags.writeable and 0 < len(superpage.data) <= 1 << 18
        first = superpage.data[:4].tobytes()
        assert (first[1] == 64) if "{card}" == "{CRU}" else (first[2:] == b"\\xcd\\xab")
        seen += 1
        if seen == 100:  # more than the buffer has: they went round
            break
print(seen)
""")
    assert out == ["100"]


def test_a_channel_is_owned(cards):
    out = python(cards, f"""
import rodeo.card
owner = rodeo.card.open("{CRU}").dma()
try:
    rodeo.card.open("{CRU}").dma()
except ValueError as error:
    print("owned" if "own" in str(error) or "locked" in str(error) else error)
""")
    assert out == ["owned"]
