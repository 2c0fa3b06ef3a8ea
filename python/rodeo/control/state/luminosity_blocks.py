"""Luminosity blocks of a run: begin and contents of each, from the marks of the trigger authority. Pure.

A block begins with a trigger: `first_trigger` is its number in the run, from 0, `first_id` its global id (docs/reference/glossary.md). The authority lives longer than a
run, and keeps its last 256 marks; marks from before the run are ignored."""

import re
from dataclasses import asdict, dataclass, replace

_BLOCK_OF_FILE = re.compile(r"\._lb([0-9]+)\.")


@dataclass(frozen=True)
class Block:
    """A stretch of triggers with the same luminosity block and scan step. `triggers`, `recorded`: None while it lasts, or if unknown.
    `seen_ns`: when the control room saw it first, UTC."""

    first_trigger: int
    number: int
    scan_step: int
    first_id: int | None = None
    seen_ns: int | None = None
    triggers: int | None = None
    recorded: int | None = None

    def as_json(self):
        return asdict(self)

    @classmethod
    def from_json(cls, value):
        """The block that as_json wrote; None if `value` is anything else."""
        try:
            return cls(**value)
        except TypeError:
            return None


def blocks_of(known, trigger, before, now_ns, *, over=False):
    """All Blocks so far: the `known` ones, and those from the marks in `trigger` (of the authority's status, checked). The authority had accepted
    `before` triggers when the run began. A block ends where the next begins; with `over` the last one ends with the last accepted trigger."""
    found = {block.first_trigger: block for block in known}
    for mark in (trigger or {}).get("marks") or ():
        first = mark.get("sequence")
        if first is None or first < before:
            continue
        found.setdefault(
            first - before, Block(first - before, mark["lumi_block"], mark["scan_step"], mark["id"], now_ns)
        )
    blocks = [found[first] for first in sorted(found)]
    ends = [block.first_trigger for block in blocks[1:]]
    accepted = (trigger or {}).get("accepted")
    if blocks and over and accepted is not None:
        ends.append(accepted - before)
    return [
        replace(block, triggers=end - block.first_trigger) if end >= block.first_trigger else block
        for block, end in zip(blocks, ends)
    ] + blocks[len(ends) :]


def with_recorded(blocks, files):
    """The Blocks with their numbers of recorded events, from the recorders' `files` {path, events}, whose names contain the block. Blocks of one number
    (scan steps, a repeated number) share their files: `recorded` stays unknown. Debug streams do not count: their files have block 0."""
    events = {}
    for each in files:
        if (match := _BLOCK_OF_FILE.search(each["path"])) and each.get("events") is not None:
            events[int(match[1])] = events.get(int(match[1]), 0) + each["events"]
    numbers = [block.number for block in blocks]
    return [
        replace(block, recorded=events.get(block.number, 0)) if numbers.count(block.number) == 1 else block
        for block in blocks
    ]
