"""Shared by the tests of `rodeo card`: emulated cards in a separate process, in the runtime directory of the test."""

import contextlib
import json
import signal
import time

import pytest

from conftest import scaled

CARDS = """
[emulator]
name = "test"

[[emulator.card]]
type = "cru"
name = "cru"
address = "0000:af:00.0"
serial = 245
endpoints = 2
frame_size = "16KiB"

[[emulator.card]]
type = "felix"
name = "felix"
address = "0000:3b:00.0"
serial = 712
links = 4
elinks_per_link = 4

[emulator.trigger]
rate = 0
wait_for = 1
"""

CRU, CRU_1, FELIX = "0245:0", "0245:1", "0712:0"
SMALL = ["--buffer-size", "32MiB", "--superpage-size", "256KiB"]


class Cards:
    """A process of emulated cards."""

    def __init__(self, rodeo, process):
        self.rodeo, self.process = rodeo, process

    def card(self, *arguments, **options):
        return self.rodeo("card", *arguments, **options)

    def json(self, *arguments, **options):
        return json.loads(self.card(*arguments, "-o", "json", **options).stdout)

    def bench(self, card, *arguments, exit_code=0, size="64MiB"):
        done = self.card(
            "bench", "dma", "--id", card, "--bytes", size, *SMALL, *arguments, "--json", "-", exit_code=exit_code
        )
        return json.loads(done.stdout) if done.stdout else done

    def register(self, card, name):
        return self.json("reg", "read", "--id", card, name)[0]["value"]

    def wait_for_data(self, card, reader):
        """Waits for the first data since the start of the cards; `reader` is the process that reads them."""
        deadline = time.monotonic() + scaled(20)
        while self.register(card, "blocks_sent[0]" if card == FELIX else "superpages_done[1]") == 0:
            assert reader.poll() is None and time.monotonic() < deadline


@contextlib.contextmanager
def emulated(rodeo, text=CARDS, count=3):
    """Starts the cards and waits until they answer. The cards always end with the test."""
    if rodeo("emulate", "--help", exit_code=None).returncode != 0:
        pytest.skip("this build has no `rodeo emulate`")
    configuration = rodeo.directory / "cards.toml"
    configuration.write_text(text)
    process = rodeo.start("emulate", configuration)
    try:
        deadline = time.monotonic() + scaled(20)
        while True:
            listed = rodeo("card", "list", "-o", "json", exit_code=None)
            rows = json.loads(listed.stdout) if listed.stdout else []
            if listed.returncode == 0 and len(rows) == count:
                break
            assert process.poll() is None, process.communicate()
            assert time.monotonic() < deadline, listed
            time.sleep(0.05)
        yield Cards(rodeo, process)
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
            try:
                process.communicate(timeout=scaled(10))
            except Exception:
                process.kill()
                process.communicate()
