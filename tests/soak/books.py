"""What became of each event: every id of the trigger's list must be in exactly one place. Pure: ids in, findings out."""

import dataclasses

import numpy


@dataclasses.dataclass
class Books:
    accepted: int = 0
    rejected: int = 0
    debug: int = 0
    lost: dict = dataclasses.field(default_factory=dict)  # by reason
    wrong: list = dataclasses.field(default_factory=list)  # sentences

    def lost_events(self):
        return sum(self.lost.values())


def ids_of(ranges):
    """All ids of (first, count) ranges."""
    if not ranges:
        return numpy.empty(0, numpy.uint64)
    return numpy.concatenate([numpy.arange(first, first + count, dtype=numpy.uint64) for first, count in ranges])


def name_some(ids):
    shown = ", ".join(f"{id:#x}" for id in ids[:5].tolist())
    return f"{len(ids)}: {shown}{' ...' if len(ids) > 5 else ''}"


def told_at_the_end(triggered, decided, most):
    """Ids of the list of an authority that was killed: it may have told others of the last ones, and not us. These follow the list without a gap."""
    last = triggered.max() if len(triggered) else numpy.uint64(0)
    more = numpy.unique(decided[(decided > last) & (decided <= last + numpy.uint64(most))])
    follows = more == last + numpy.arange(1, len(more) + 1, dtype=numpy.uint64)
    return numpy.concatenate([triggered, more[follows]])


def lost_before(triggered, lost, most):
    """What is lost with the cards may only be the last that was under way."""
    early = lost[lost + numpy.uint64(most) <= triggered.max()] if len(triggered) else lost
    return [f"events are lost that were not under way when the authority died, {name_some(early)}"] if len(early) else []


def gone_with(triggered, known, most):
    """Ids of the list of an authority that was killed which it told us alone: nobody else knows them. They may be among its last alone."""
    unknown = numpy.setdiff1d(triggered, known)
    return unknown[unknown + numpy.uint64(most) > triggered.max()] if len(unknown) else unknown


def decided_otherwise(decided, placed, name):
    """Decisions that the files do not bear out: `decided` and `placed` are ids of one verdict, as the supervisor counts it and as files have it."""
    wrong = numpy.setdiff1d(decided, placed)
    return [f"events that count as {name} and are in no {name} file, {name_some(wrong)}"] if len(wrong) else []


def settle(triggered, recorded, debug, rejected, lost):
    """`triggered`: ids of the list. `recorded`, `debug`: ids in files of ordinary and of debug streams. `rejected`: ids that were decided so. `lost`: by reason, the ids
    that somebody has counted as lost. Repetitions within `rejected` and `lost` are the same said again; within files they are wrong."""
    books = Books()
    places = {"accepted": recorded, "debug": debug, "rejected": numpy.unique(rejected)}
    places |= {f"lost ({reason})": numpy.unique(ids) for reason, ids in lost.items()}
    for name in ("accepted", "debug"):
        unique, times = numpy.unique(places[name], return_counts=True)
        if (times > 1).any():
            books.wrong.append(f"events twice in {name} files, {name_some(unique[times > 1])}")
        places[name] = unique
    seen = numpy.empty(0, numpy.uint64)
    for name, ids in places.items():
        both = numpy.intersect1d(seen, ids)
        if len(both):
            elsewhere = [other for other, there in places.items() if other != name and len(numpy.intersect1d(there, both))]
            books.wrong.append(f"events in {name} and elsewhere ({', '.join(elsewhere)}), {name_some(both)}")
        unknown = numpy.setdiff1d(ids, triggered)
        if len(unknown):
            books.wrong.append(f"events in {name} that no trigger was given for, {name_some(unknown)}")
        seen = numpy.union1d(seen, ids)
    nowhere = numpy.setdiff1d(triggered, seen)
    if len(nowhere):
        books.wrong.append(f"events that are nowhere, {name_some(nowhere)}")
    books.accepted, books.debug, books.rejected = len(places["accepted"]), len(places["debug"]), len(places["rejected"])
    books.lost = {reason: len(numpy.unique(ids)) for reason, ids in lost.items() if len(ids)}
    return books
