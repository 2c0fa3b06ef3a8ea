"""A small system in words, for tests of decisions: seen(cards="ready", readout_1="running") returns its Looks."""

from dataclasses import replace
from pathlib import Path

from rodeo.control.state.snapshots import Exit, Look, RunRow
from rodeo.control.state.system import ProcessClass, System

CARDS = ProcessClass("cards", "emulator", Path("/lab/cards.toml"))
READOUTS = ProcessClass("readout", "readout", Path("/lab/readout.toml"), count=2)
SYSTEM = System("lab", Path("/lab/system.toml"), Path("/lab/lab"), classes=(CARDS, READOUTS), text="[control]")
ROW = RunRow(7, "test", "RUNNING", first_event_ns=1)

# A word is a phase, or the name of a special case.
_WORDS = {
    "absent": {"alive": False},
    "launching": {"alive": True, "launched_age_s": 1.0},
    "done": {"alive": False, "exit": Exit(status=0)},
    "left": {"alive": False, "exit": Exit(status=0), "left": (55,)},
    "lossy": {"alive": False, "exit": Exit(status=6)},
    "failed": {"alive": False, "exit": Exit(status=1)},
    "killed": {"alive": False, "exit": Exit(signal=9)},
    "lost": {"alive": True, "phase_said": "running", "answered_age_s": 4.0, "unanswered": 4},
    "silent": {"alive": None, "phase_said": "running", "answered_age_s": 5.0, "unanswered": 4},
    "unknown": {"alive": None},
}


def look(member, word, **fields):
    """The Look of a member: the fields that a word stands for, and fields that replace them."""
    if word in _WORDS:
        return Look(member, **{**_WORDS[word], **fields})
    return Look(
        member,
        **{
            "alive": True,
            "phase_said": word,
            "answered_age_s": 0.2,
            "run_number": 7 if member.per_run and word in ("running", "draining") else None,
            **fields,
        },
    )


def seen(cards="ready", readout_1="ready", readout_2="ready", *, held=None, classes=(CARDS, READOUTS), **others):
    """The Looks of a system with one emulator and two readouts. `held`: the state of the trigger; `others`: words of further members, with _ in place of -."""
    words = {"cards": cards, "readout_1": readout_1, "readout_2": readout_2, **others}
    looks = []
    for one in classes:
        for member in one.members():
            word = words.get(member.name.replace("-", "_"), "absent")
            status = {"trigger": {"held": held}} if one.kind == "emulator" and held is not None else None
            looks.append(look(member, word, status=status))
    return tuple(looks)


def row(**fields):
    return replace(ROW, **fields)
