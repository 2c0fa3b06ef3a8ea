"""rodeo.card: registers and superpages of emulated cards, from a separate Python process."""

import os
import socket
import subprocess
import sys
import types

import pytest

from conftest import BUILD, Rodeo, scaled
from emulated_cards import CRU, FELIX, emulated

if not list((BUILD / "python" / "rodeo").glob("_card*.so")):
    pytest.skip(
        "this build has no Python modules (sanitizers, or python3-dev or nanobind is missing)", allow_module_level=True
    )


@pytest.fixture(scope="module")
def cards(tmp_path_factory):
    with emulated(Rodeo(tmp_path_factory.mktemp("cards"))) as running:
        yield running


def python(cards, text):
    environment = {**cards.rodeo.environment, "PYTHONPATH": str(BUILD / "python")}
    done = subprocess.run(
        [sys.executable, "-B", "-c", text], env=environment, capture_output=True, text=True, timeout=scaled(60)
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


def test_registers_by_name_and_address(cards):
    out = python(
        cards,
        f"""
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
for write in (lambda: bar.write("temperature", 1), lambda: bar.write(0x10008, 1), lambda: bar.modify("temperature", position=0, width=1, value=1)):
    try:
        write()
    except ValueError as error:
        assert "card.read_only" in str(error), error
        print("read_only")
bar.write("temperature", bar.read("temperature"), force=True)
print(card.type, card.serial, card.endpoint, len(rodeo.card.list_cards()))
""",
    )
    assert out == ["refused", "refused", "refused", "read_only", "read_only", "read_only", "CRU", "245", "0", "3"]
    assert cards.register(CRU, "ctp_bc_max") == 0xD5B


def test_a_register_map_can_be_named(cards):
    out = python(
        cards,
        f"""
import rodeo.card
print(rodeo.card.open("{FELIX}", register_map="254.0").bar(2).read("register_map_version"))
try:
    rodeo.card.open("{FELIX}", register_map="5.0")
except ValueError as error:
    print("unknown" if "card.unknown_map" in str(error) else error)
""",
    )
    assert out == [str(254 << 8), "unknown"]


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="host: one CPU, every place is the same")
def test_an_iterator_stays_on_the_node_until_its_end(cards):
    out = python(
        cards,
        f"""
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
with rodeo.card.open("{FELIX}").dma(**options) as superpages:
    next(superpages)
    assert os.sched_getaffinity(0) == before and superpages.place.startswith("free: "), superpages.place
try:
    rodeo.card.open("{FELIX}").dma(numa="7", **options)
except ValueError as error:
    print("no_node" if "there is no NUMA node 7" in str(error) else error)
""",
    )
    assert out == ["no_node"]


@pytest.mark.parametrize("card", [CRU, FELIX])
def test_superpages_are_arrays(cards, card):
    out = python(
        cards,
        f"""
import rodeo.card
with rodeo.card.open("{card}").dma(data_source="fee", buffer_bytes=8 << 20, superpage_bytes=1 << 18) as superpages:
    seen = 0
    for superpage in superpages:
        assert superpage.data.dtype == "uint8" and not superpage.data.flags.writeable and 0 < len(superpage.data) <= 1 << 18
        first = superpage.data[:4].tobytes()
        assert (first[1] == 64) if "{card}" == "{CRU}" else (first[2:] == b"\\xcd\\xab")
        seen += 1
        if seen == 100:  # more than the buffer has: superpages were reused
            break
print(seen)
""",
    )
    assert out == ["100"]


def test_a_channel_is_owned(cards):
    out = python(
        cards,
        f"""
import rodeo.card
owner = rodeo.card.open("{CRU}").dma()
try:
    rodeo.card.open("{CRU}").dma()
except ValueError as error:
    print("owned" if "own" in str(error) or "locked" in str(error) else error)
""",
    )
    assert out == ["owned"]


def test_a_channel_is_free_after_its_with_whatever_arrays_are_left(cards):
    out = python(
        cards,
        f"""
import rodeo.card
arrays = []
for _ in range(3):
    with rodeo.card.open("{CRU}").dma(data_source="fee", buffer_bytes=8 << 20, superpage_bytes=1 << 18) as superpages:
        try:
            rodeo.card.open("{CRU}").dma()
        except ValueError as error:
            assert "in use by process" in str(error), error
        arrays.append(next(superpages).data)
    seen = arrays[-1].copy()
    assert list(superpages) == []
    try:
        superpages.start()
    except ValueError as error:
        assert "card.closed" in str(error), error
    assert (arrays[-1] == seen).all() and seen[1] == 64
    superpages.close()
del superpages
print(sum(len(array) for array in arrays) > 0)
""",
    )
    assert out == ["True"]


def test_what_was_filled_comes_after_a_stop(cards):
    out = python(
        cards,
        f"""
import rodeo.card
with rodeo.card.open("{FELIX}").dma(data_source="fee", buffer_bytes=8 << 20, superpage_bytes=1 << 18) as superpages:
    for run in range(3):
        superpages.start()
        for _ in range(50):
            assert len(next(superpages).data) == 1 << 18
        superpages.stop()
        rest = list(superpages)
        assert len(rest) <= 32 and all(0 < len(one.data) <= 1 << 18 for one in rest), len(rest)
try:
    next(rodeo.card.open("{FELIX}").dma())
except ValueError as error:
    print("not_started" if "not started" in str(error) else error)
""",
    )
    assert out == ["not_started"]


@pytest.mark.parametrize(
    "card, wrong",
    [
        (CRU, "superpage_bytes=16 << 20"),
        (CRU, "superpage_bytes=36864"),
        (CRU, "superpage_bytes=0"),
        (CRU, "superpage_bytes=64 << 20"),
        (FELIX, "superpage_bytes=1000"),
        (FELIX, "superpage_bytes=3 << 15"),
        (CRU, "channel=1"),
        (FELIX, "data_source='ddg'"),
    ],
)
def test_what_a_card_does_not_take_is_refused_at_once(cards, card, wrong):
    out = python(
        cards,
        f"""
import rodeo.card
try:
    rodeo.card.open("{card}").dma(**dict(dict(data_source="fee"), {wrong}))
except ValueError as error:
    print("refused" if "card.bad_dma" in str(error) else error)
""",
    )
    assert out == ["refused"]


@pytest.mark.parametrize("card", [CRU, FELIX])
def test_threads_may_share_an_iterator(cards, card):
    out = python(
        cards,
        f"""
import threading, rodeo.card
for _ in range(4):
    counts = []
    with rodeo.card.open("{card}").dma(data_source="fee", buffer_bytes=8 << 20, superpage_bytes=1 << 18) as superpages:
        def read():
            count = 0
            for superpage in superpages:
                assert 0 < len(superpage.data) <= 1 << 18
                count += 1
                if count == 200:
                    break
            counts.append(count)
        threads = [threading.Thread(target=read) for _ in range(4)]
        for thread in threads: thread.start()
        for thread in threads: thread.join()
    assert counts == [200] * 4, counts
print("done")
""",
    )
    assert out == ["done"]


@pytest.mark.parametrize("end", ["stop", "close"])
def test_another_thread_ends_who_waits(cards, end):
    out = python(
        cards,
        f"""
import threading, time, rodeo.card
card = rodeo.card.open("{CRU}")
superpages = card.dma(data_source="fee", buffer_bytes=8 << 20, superpage_bytes=1 << 18, patience_s=float("inf"))
superpages.start()
card.bar(2).modify("user_control", position=0, width=1, value=0)  # the links stop sending
seen = []
thread = threading.Thread(target=lambda: seen.extend(superpage.link for superpage in superpages))
thread.start()
while True:  # until the reader waits
    before = len(seen)
    time.sleep(0.3)
    if len(seen) == before:
        break
assert thread.is_alive()
superpages.{end}()
thread.join(20)
print(thread.is_alive())
superpages.close()
""",
    )
    assert out == ["False"]


def test_a_card_that_is_gone_ends_nothing_else(tmp_path):
    with emulated(Rodeo(tmp_path)) as running:
        out = python(
            running,
            f"""
import gc, os, signal, rodeo.card
superpages = rodeo.card.open("{CRU}").dma(data_source="fee", buffer_bytes=8 << 20, superpage_bytes=1 << 18)
superpages.start()
superpage = next(superpages)
with rodeo.card.open("{FELIX}").dma(data_source="fee", buffer_bytes=8 << 20, superpage_bytes=1 << 18) as other:
    os.kill({running.process.pid}, signal.SIGKILL)
    while os.path.exists("/proc/{running.process.pid}/fd/0"):  # until its descriptors are closed
        pass
    del superpage, superpages
    gc.collect()
    print("alive")
    try:
        other.close()
    except (ValueError, OSError) as error:
        print("said")
""",
        )
    assert out == ["alive", "said"]


def test_a_card_that_does_not_answer_is_asked_once_and_is_an_error_of_its_own(rodeo):
    directory = rodeo.directory / "rodeo" / "cards"
    directory.mkdir(mode=0o700, parents=True)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(directory / "0000:10:00.0.sock"))
        listener.listen()
        out = python(
            types.SimpleNamespace(rodeo=rodeo),
            """
import rodeo.card
try:
    rodeo.card.open("10:00.0")
except TimeoutError as error:
    print("card.timeout" in str(error))
""",
        )
        listener.setblocking(False)
        listener.accept()[0].close()
        with pytest.raises(BlockingIOError):
            listener.accept()
    assert out == ["True"]


def test_a_forked_child_does_nothing_to_the_card(cards):
    out = python(
        cards,
        f"""
import multiprocessing, os, sys, rodeo.card
card = rodeo.card.open("{CRU}")
bar = card.bar(2)
with card.dma(data_source="fee", buffer_bytes=8 << 20, superpage_bytes=1 << 18) as superpages:
    superpage = next(superpages)
    if os.fork() == 0:
        refused = 0
        for call in (superpages.start, superpages.stop, lambda: next(superpages), lambda: bar.read("serial"), lambda: bar.write("ctp_bc_max", 1), lambda: card.bar(0), lambda: card.dma()):
            try:
                call()
            except ValueError as error:
                refused += "card.forked" in str(error)
        sys.exit(0 if refused == 7 and superpage.data[1] == 64 else 1)  # through the end of `with` and all destructors
    assert os.wait()[1] == 0
    worker = multiprocessing.get_context("fork").Process(target=lambda: rodeo.card.open("{CRU}").bar(2).read("serial"))
    worker.start()
    worker.join()
    assert worker.exitcode == 0, "a child may open the card itself"
    for i, superpage in enumerate(superpages):  # more than the buffer has: the card still runs
        if i == 100:
            break
    print(i)
""",
    )
    assert out == ["100"]
