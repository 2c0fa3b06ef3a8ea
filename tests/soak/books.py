"""The result of each event: every id of the trigger's list must be in exactly one place. Pure functions: ids in, findings out."""

import dataclasses

import numpy


@dataclasses.dataclass
class Books:
    accepted: int = 0
    rejected: int = 0
    debug: int = 0
    lost: dict = dataclasses.field(default_factory=dict)  # by reason
    wrong: list = dataclasses.field(default_factory=list)  # error sentences

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
    """Completes the list of a killed authority: it may have sent its last ids to others, but not to us. These ids follow the list without a gap."""
    last = triggered.max() if len(triggered) else numpy.uint64(0)
    more = numpy.unique(decided[(decided > last) & (decided <= last + numpy.uint64(most))])
    follows = more == last + numpy.arange(1, len(more) + 1, dtype=numpy.uint64)
    return numpy.concatenate([triggered, more[follows]])


def lost_before(triggered, lost, most):
    """Ids lost with the cards may only be the last ones in flight."""
    early = lost[lost + numpy.uint64(most) <= triggered.max()] if len(triggered) else lost
    return (
        [f"events are lost that were not under way when the authority died, {name_some(early)}"] if len(early) else []
    )


def gone_with(triggered, known, most):
    """Ids that a killed authority sent only to us: no other process knows them. They may only be among its last ids."""
    unknown = numpy.setdiff1d(triggered, known)
    return unknown[unknown + numpy.uint64(most) > triggered.max()] if len(unknown) else unknown


def decided_otherwise(decided, placed, name):
    """Decisions that contradict the files: `decided` and `placed` are ids of one verdict, from the supervisor and from the files."""
    wrong = numpy.setdiff1d(decided, placed)
    return [f"events that count as {name} and are in no {name} file, {name_some(wrong)}"] if len(wrong) else []


def settle(triggered, recorded, debug, rejected, lost):
    """`triggered`: ids of the list. `recorded`, `debug`: ids in files of ordinary and debug streams. `rejected`: rejected ids. `lost`: by reason, ids that
    a process has counted as lost. Repetitions within `rejected` and `lost` are allowed; in files they are errors."""
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
            elsewhere = [
                other for other, there in places.items() if other != name and len(numpy.intersect1d(there, both))
            ]
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
