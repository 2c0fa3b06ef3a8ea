"""Recordings whose links are silent, late or lose blocks: replayed, and read back by an independent reader. A chunk is in its event, flagged,
or counted as lost.

RODEO_RECORDINGS=FIRST:COUNT replays other recordings, or more, as `./test all` does.
"""

import json
import os
import random
import struct
from collections import Counter

import pytest
from block_recordings import BlockWriter, chunks_of
from event_files import MASK64, mix, read_event_file
from running_readout import adds_up

pytestmark = pytest.mark.slow

CLASSES = ("none", "silent", "late", "several", "blocks")
WRONG_ID, IN_DOUBT = 0x3, 64  # bits of the generic status: wrong BCID or L1 id; chunks after a silence

READOUT = """
[readout]
name = "replay"
control = false
[readout.input]
type = "file"
file = "damaged.felix"
rate = "{rate}"
l1id_bits = {bits}
[readout.builder]
type = "{builder}"
workers = {workers}
[readout.extractor]
type = "rodeo"
l1id_bits = {bits}
bcid_offset = {bcid_offset}
[[readout.rob]]
source_id = "0x00610001"
links_per_group = {turns}
[[readout.consumer]]
type = "file_writer"
directory = "out"
full_queue = "wait"
"""


class Scenario:
    def __init__(self, seed):
        draw = random.Random(seed)
        self.seed = seed
        self.kind = draw.choice(CLASSES)
        self.bits = draw.choice((8, 8, 16, 24, 32))
        self.reset = draw.randrange(300, 1500) if self.bits >= 16 else 0  # events between event counter resets
        self.full = draw.random() < 0.6
        if self.kind == "late" and self.full and self.bits in (16, 24):
            self.kind = "silent"  # Ids of 16 and 24 bits do not show resets: links that begin more than `reach` apart may get different epochs.
        self.turns = 2 if self.full and self.bits == 8 else draw.choice((2, 3)) if self.full else 1
        if self.full and self.bits in (16, 24):
            self.turns = 3  # Three links: with two, one could return while the other passes an unseen reset.
        self.links = 2 * self.turns if self.full else draw.choice((3, 5, 6))
        self.workers = draw.choice((1, 2)) if self.full or self.links == 6 else 1
        self.bcid = draw.random() < 0.7
        self.rate = draw.choice(("0", "100kHz"))
        period = min(1 << self.bits, self.reset or 1 << 24)
        silence = int(period * draw.uniform(0.5, 20 if self.bits == 8 else 3))
        begin = 0 if self.kind == "late" else draw.randrange(200, 800)
        bad = {"none": 0, "silent": 1, "late": 1, "several": 2 if self.full or self.links > 4 else 1, "blocks": 2}[
            self.kind
        ]
        links = (
            range(draw.randrange(self.turns), self.links, self.turns)
            if self.full
            else draw.sample(range(self.links), bad)
        )
        self.silent = {
            link: (begin, begin + silence + draw.randrange(20)) for link in list(links)[:bad]
        }  # fewer than half of the links are silent
        self.lost_blocks = draw.randrange(1, 3)
        self.events = begin + silence + 1500

    def global_id(self, event):
        return (event // self.reset << 24 | event % self.reset) if self.reset else event

    def carries(self, link, event):
        return event % self.turns == link % self.turns

    def __str__(self):
        return f"seed {self.seed} ({self.kind}; RODEO_RECORDINGS={self.seed}:1 repeats it): {vars(self)}"


def record(rodeo, of):
    """The chunks of each link with their events, which the payload proves."""
    settings = [f"l1id_bits={of.bits}", f"ecr_triggers={of.reset}"]
    settings += ["format=full", "chunk_bytes=40", f"groups={of.links // of.turns}"] if of.full else []
    arguments = [word for setting in settings for word in ("--set", setting)]
    rodeo("data", "record", "sound.felix", "--links", of.links, "--events", of.events, "--seed", of.seed, *arguments)
    chunks = sorted(chunks_of(rodeo.directory / "sound.felix").items())
    found = []
    for link, (elink, of_link) in enumerate(chunks):
        events = [event for event in range(of.events) if of.carries(link, event)]
        assert len(events) == len(of_link), of
        for event, chunk in zip(events, of_link):
            key = mix(of.seed + (elink << 32 | of.global_id(event) & 0xFFFFFFFF) * 0xD1342543DE82EF95 & MASK64)
            assert struct.unpack_from("<Q", chunk, 8)[0] == key + len(chunk) & MASK64, of
        found.append((elink, dict(zip(events, of_link))))
    return found


def damage(of, links, path):
    """Writes the recording again. Returns {chunk: event} of the chunks that are whole in it."""
    writer, written = BlockWriter(), {}
    for event in range(of.events):
        for link, (elink, chunks) in enumerate(links):
            begin, end = of.silent.get(link, (0, 0))
            if of.kind != "blocks" and begin <= event < end:
                writer.flush(elink)
            elif event in chunks:
                writer.push(elink, chunks[event])
                written[chunks[event]] = event
    for elink, _ in links:
        writer.flush(elink)
    lost = Counter()
    if of.kind == "blocks":
        bad = [links[link][0] for link in of.silent]
        at = next(iter(of.silent.values()))[0] // 24 * len(links)
        for elink in bad:
            places = [i for i, (one, _) in enumerate(writer.blocks) if one == elink and i >= at][: of.lost_blocks]
            lost.update(places)
    path.write_bytes(b"".join(block for i, (_, block) in enumerate(writer.blocks) if i not in lost))
    return written


def judge(of, written, paths):
    """The results of the written chunks."""
    found, seen = Counter(), set()
    for path in paths:
        for event in read_event_file(path).events:
            for rob in event.robs:
                assert (rob.source_id, event.global_id) not in seen, of
                seen.add((rob.source_id, event.global_id))
                flagged_event = rob.rod.status[0] & WRONG_ID
                for chunk in rob.rod.chunks:
                    if chunk.felix_status:
                        continue  # a lost block has cut this chunk
                    right = of.global_id(written[chunk.data]) == event.global_id
                    flagged = flagged_event or chunk.rodeo_status
                    found[("flagged and " if flagged else "") + ("right" if right else "wrong")] += 1
    found["lost"] = len(written) - sum(found.values())
    return found


def replay(rodeo, seed):
    of = Scenario(seed)
    for old in ("sound.felix", "damaged.felix"):
        (rodeo.directory / old).unlink(missing_ok=True)
    written = damage(of, record(rodeo, of), rodeo.directory / "damaged.felix")
    (rodeo.directory / "replay.toml").write_text(
        READOUT.format(
            rate=of.rate,
            bits=of.bits,
            builder="full" if of.full else "gbt",
            workers=of.workers,
            bcid_offset=4 if of.bcid else -1,
            turns=of.turns if of.full else 0,
        )
    )
    report = json.loads(
        rodeo("readout", "replay.toml", "--set", f"readout.consumer[0].directory=out{seed}", "--json", "-").stdout
    )
    assert adds_up(report), of
    files = [rodeo.directory / file for file in report["files"]]
    found = judge(of, written, files)
    for file in files:
        file.unlink()
    assert found["wrong"] == 0, f"{of}: {found}"
    doubtful = report["fragments"]["doubtful_links"]
    assert all(link["in_doubt"] <= IN_DOUBT for link in doubtful), f"{of}: {doubtful}"
    if of.kind == "none":
        assert found == {"right": len(written), "lost": 0}, f"{of}: {found}"
    return of.kind, found


def test_a_chunk_of_a_damaged_recording_is_in_its_event_or_flagged_or_lost(rodeo):
    first, count = (int(number) for number in os.environ.get("RODEO_RECORDINGS", "1:20").split(":"))
    sums, runs = {kind: Counter() for kind in CLASSES}, Counter()
    for seed in range(first, first + count):
        kind, found = replay(rodeo, seed)
        sums[kind] += found
        runs[kind] += 1
    for kind, found in sums.items():
        names = ("right", "flagged and right", "flagged and wrong", "wrong", "lost")
        print(f"{kind}: {runs[kind]} recordings, " + ", ".join(f"{found[name]} {name}" for name in names))
