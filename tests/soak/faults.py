"""The faults of a soak and their times: a function of length and seed, so that a failed run can be repeated."""

import dataclasses
import random

KILL, STOP, CUT, SLOW_DISK, FULL_DISK, HANG = "kill", "stop", "cut", "slow_disk", "full_disk", "hang"
KINDS = [KILL, STOP, CUT, SLOW_DISK, FULL_DISK, HANG]

FIRST = 1.0  # seconds without faults at the beginning and at the end
LAST = 3.0
LONGEST = 2.5
LONG = (1.0, 60.0)  # seconds that a process is stopped or gone, in runs that are long enough
LONG_CUT = (
    3.0,
    30.0,
)  # seconds in which connections are cut repeatedly: up to three times the supervisor's readout_grace
RECOVERY = 1.2  # seconds without a fault of the process after one


@dataclasses.dataclass(frozen=True)
class Fault:
    at: float  # seconds from the first trigger
    kind: str
    target: str  # the process, also of a disk or a selection
    lasts: float  # seconds; 0: only a moment


def schedule(seconds, seed, processes, recorders, nodes, kinds=KINDS, per_kind=None, only_stopped=()):
    """Faults in the order of time. `processes` may be killed and stopped; `only_stopped` are never killed. Each kind occurs three times if the run is
    long enough, and each process is killed and stopped. Faults of one process never overlap."""
    draw = random.Random(seed)
    room = seconds - FIRST - LAST
    if per_kind is None:
        per_kind = max(3, int(room / 30)) if room >= 20 else 1
    faults, free_from = [], {}
    wanted = []
    for kind in kinds:
        targets = {SLOW_DISK: recorders, FULL_DISK: recorders, HANG: nodes, STOP: [*processes, *only_stopped]}.get(
            kind, processes
        )
        count = max(per_kind, len(targets)) if kind in (KILL, STOP) and room >= 20 else per_kind
        turns = draw.sample(targets, len(targets))
        wanted += [(kind, turns[i % len(turns)]) for i in range(count)]
    draw.shuffle(wanted)
    step = max(room - LONGEST, 0.0) / max(len(wanted), 1)
    for i in range(len(wanted)):
        at = FIRST + step * (i + draw.random() * 0.5)
        # Chooses the next process that has no fault now. There are more turns than processes, so it finds one.
        kind, target = wanted.pop(
            min(range(len(wanted)), key=lambda j: max(free_from.get(wanted[j][1], 0.0) - at, 0.0))
        )
        at = max(at, free_from.get(target, 0.0))
        lasts = 0.0 if kind in (KILL, CUT) else draw.uniform(0.3, LONGEST)
        if kind in (KILL, STOP) and room > 4 * LONG[1] and draw.random() < 0.5:
            lasts = draw.uniform(*LONG)
        if kind == CUT and room > 4 * LONG_CUT[1] and draw.random() < 0.4:
            lasts = draw.uniform(*LONG_CUT)
        lasts = min(lasts, seconds - LAST - at)
        if lasts < 0:
            continue
        free_from[target] = at + lasts + RECOVERY
        faults.append(Fault(round(at, 3), kind, target, round(lasts, 3)))
    return sorted(faults, key=lambda fault: fault.at)
