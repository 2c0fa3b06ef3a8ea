"""Cards continue to work when any process is killed under load, and reading a card during a transfer does not disturb it."""

import json
import random
import signal
import time

import pytest

from conftest import scaled
from emulated_cards import CARDS, CRU, CRU_1, FELIX, SMALL, emulated

CRORC = "0120:0"
ALL = (
    CARDS
    + """
[[emulator.card]]
type = "crorc"
name = "crorc"
address = "0000:3d:00.0"
serial = 120
"""
)
SOURCE = {CRU: "fee", CRU_1: "fee", FELIX: "fee", CRORC: "internal"}


def transfer(rodeo, card, seconds):
    return rodeo.start(
        "card",
        "bench",
        "dma",
        "--id",
        card,
        "--data-source",
        SOURCE[card],
        "--duration",
        f"{seconds}s",
        "--patience",
        "20s",
        *SMALL,
        "--json",
        "-",
    )


def bystanders(rodeo, card):
    """Processes that read a card, change unused registers, and access registers at a high rate, until they are ended."""
    yield rodeo.start("card", "status", "--id", card, "--watch", "20ms", "-o", "json")
    yield rodeo.start("card", "metrics", "--id", card, "--watch", "20ms", "-o", "json")
    yield rodeo.start("card", "bench", "bar", "--id", card, "--processes", 2, "--duration", "60s")


def end(process, how=signal.SIGKILL):
    process.send_signal(how)
    return process.communicate(timeout=scaled(20))


@pytest.mark.parametrize("card", [CRU, FELIX, CRORC])
def test_whoever_looks_at_a_card_does_not_disturb_its_transfer(rodeo, card):
    with emulated(rodeo, ALL, count=4) as cards:
        owner = transfer(rodeo, card, 3)
        others = list(bystanders(rodeo, card))
        while owner.poll() is None:
            cards.card("status", "--id", card)
            if card != FELIX:
                setting = "cru_id=0x12" if card == CRU else "crorc_id=0x12"
                cards.card("config", "--id", card, "--set", setting)
            cards.card("reg", "dump", "--id", card)
        out, err = owner.communicate()
        assert owner.returncode == 0, err
        assert json.loads(out)["errors"] == 0 and json.loads(out)["bytes"] > 0
        for other in others:
            assert other.poll() is None, other.communicate()
            end(other)


def outcome_is_orderly(process, emulator_died):
    """The surviving processes continue, or report that the card is gone."""
    if not emulator_died:
        assert process.poll() is None, process.communicate()
        end(process)
        return
    # A process that only reads a mapped queue notices the missing card when its patience is over.
    out, err = process.communicate(timeout=scaled(40))
    assert process.returncode > 0 and "error[" in err, (process.args, process.returncode, out[-300:], err)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_anybody_may_be_killed_at_any_time(rodeo, seed):
    chance = random.Random(seed)
    for _ in range(3):
        with emulated(rodeo, ALL, count=4) as cards:
            for _ in range(3):
                owners = [transfer(rodeo, card, 120) for card in chance.sample([CRU, CRU_1, FELIX, CRORC], 2)]
                running = owners + list(bystanders(rodeo, chance.choice([CRU, FELIX, CRORC])))
                time.sleep(chance.uniform(0.3, 2))
                victims = chance.sample(running, chance.randint(1, len(running)))
                emulator_dies = chance.random() < 0.4
                if emulator_dies:
                    victims.insert(chance.randint(0, len(victims)), cards.process)
                for victim in victims:
                    victim.kill()
                    time.sleep(chance.choice([0, 0, 0.01, 0.1]))
                for victim in victims:
                    if victim is not cards.process:
                        victim.communicate()
                for process in running:
                    if process not in victims:
                        # `card status` and `card metrics` continue with the other cards.
                        if emulator_dies and process not in owners and "--watch" in process.args:
                            end(process)
                        else:
                            outcome_is_orderly(process, emulator_dies)
                if emulator_dies:
                    break  # the next round takes over the addresses of the dead emulator
                for card in SOURCE:
                    assert cards.bench(card, "--data-source", SOURCE[card], size="16MiB")["errors"] == 0


@pytest.mark.slow
def test_ctrl_c_ends_a_verb_while_the_emulator_stands_still(rodeo):
    with emulated(rodeo) as cards, rodeo.start("card", "metrics", "--id", FELIX, "--watch", "100ms") as verb:
        verb.wait_until_it_catches(signal.SIGINT)
        cards.process.send_signal(signal.SIGSTOP)
        try:
            time.sleep(0.5)  # the verb waits for an answer by then
            verb.send_signal(signal.SIGINT)
            verb.communicate(timeout=scaled(15))  # the verb ends after two seconds, not after its minute
        finally:
            cards.process.send_signal(signal.SIGCONT)
