"""`rodeo net size`: the buffer to buy, its proof, the assumption that matters most, and the rate that a given switch reaches.

Many seeds with an infinite buffer (train engine) give the distribution of the largest occupancy. The answer is its quantile at the stated
confidence plus a margin. The packet engine proves it with new seeds: none drops with this buffer, some drop with nine tenths of it.
"""

from pathlib import Path

import numpy as np

from . import scenario, search
from .closed_forms import formula
from .journal import Journal
from .methods import Task
from .runner import Runner

PROOF_SEEDS_FROM = 1_000_000  # these seeds are far from those of the fit
NINE_TENTHS = 0.9
INTERVALS = {"hour": 3600.0, "day": 86400.0, "year": 86400.0 * 365}  # running time between two runs with drops
IP_TCP_BYTES, ETHERNET_BYTES = 52, 14  # header bytes of a packet in the closed forms

# Variants of one assumption at a time, with the settings that they change. A variant equal to the scenario is left out.
ASSUMPTIONS = {
    "arrivals": [
        ("even intervals", {"arrivals": "periodic"}),
        ("jitter of half a period", {"arrivals": "jittered", "jitter_periods": 0.5}),
        ("Poisson", {"arrivals": "poisson"}),
    ],
    "assignment": [
        ("in turn", {"assignment": "round-robin"}),
        ("least loaded", {"assignment": "least-loaded"}),
        ("random", {"assignment": "random"}),
    ],
    "size spread": [
        ("none", {"size_spread": "fixed", "size_sigma": 0}),
        ("normal, 20 %", {"size_spread": "normal", "size_sigma": 0.2}),
    ],
    "MTU": [("1500", {"mtu": 1500}), ("9000", {"mtu": 9000})],
    "cells": [
        ("by the byte", {"cell": 0, "cell_metadata": 0}),
        ("256 B, 64 B of them metadata", {"cell": 256, "cell_metadata": 64}),
    ],
    "readouts": [("48", {"readouts": 48}), ("600", {"readouts": 600})],
}


def plain(settings):
    """The scenario with an infinite buffer and no limits, in the train engine."""
    return {
        **settings,
        "buffer": "infinite",
        "dedicated": 0,
        "dynamic_threshold": 0,
        "port_limit": "none",
        "engine": "train",
    }


def limited(settings):
    """Whether the switch has limits that make it drop packets while memory is free. Then it needs more memory than it holds."""
    whole = scenario.complete(settings)
    return float(whole["dynamic_threshold"]) > 0 or whole["port_limit"] != "none" or int(whole["dedicated"]) > 0


def counted(settings):
    """The result that counts memory as the switch does: in cells or in frames."""
    return "max_buffer_cell_bytes" if int(scenario.complete(settings)["cell"]) > 0 else "max_buffer_bytes"


def held(whole, payload):
    """The size of a packet with this payload: (in the closed forms, as the switch counts it)."""
    frame = payload + IP_TCP_BYTES + int(whole["ethernet_overhead"])
    cell = int(whole["cell"])
    return payload + IP_TCP_BYTES + ETHERNET_BYTES, frame if cell == 0 else -(
        -(frame + int(whole["cell_metadata"])) // cell
    ) * cell


def one_packet(settings):
    """The smallest possible memory of a switch."""
    whole = scenario.complete(settings)
    return held(whole, int(whole["mtu"]) - IP_TCP_BYTES)[1]


def closed_forms(settings):
    """The closed forms of this network, as its switch counts. The bound exists only if its premises hold; then no run needs more."""
    network = scenario.formula_arguments(settings)
    forms = formula(**network)
    whole = scenario.complete(settings)
    segment = int(whole["mtu"]) - IP_TCP_BYTES
    packets, rest = divmod(-(-int(whole["event_size"]) // int(whole["readouts"])), segment)
    full, last = held(whole, segment), held(whole, rest) if rest else (0, 0)
    scale = (packets * full[1] + last[1]) / (packets * full[0] + last[0])
    # All short packets of each live event may be in the switch; in cells they take more than their share of bytes.
    ends = (
        int(network["input"] / network["output"] + 1)
        * network["readouts"]
        * max(0.0, last[1] - last[0] * full[1] / full[0])
    )
    premises = {
        "nodes at random": whole["assignment"] == "random",
        "sizes that vary": whole["size_spread"] != "fixed",
        "uplinks chosen by a hash": whole["uplink_sharing"] != "ideal",
        "a switch that drops while memory is free": limited(settings),
    }
    broken = [name for name, holds in premises.items() if holds]
    bound = None if forms.bound_bytes is None or broken else forms.bound_bytes * full[1] / full[0] + ends
    why_no_bound = f"none for {broken[0]}" if broken else "none: fewer ports than I/O" if bound is None else ""
    exact = None if forms.exact_bytes is None else forms.exact_bytes * scale
    return {
        "exact_bytes": exact,
        "paper_bytes": forms.paper_bytes * scale,
        "bound_bytes": bound,
        "why_no_bound": why_no_bound,
        "valid": forms.valid,
        "why": forms.why,
    }


def need(settings, seed):
    """Generator: the memory [bytes] that this seed needs to drop nothing. It uses bisection only if limits of the switch matter."""
    roomy = yield Task("simulation", {**plain(settings), "seed": seed})
    if "overload" in roomy:
        raise ValueError(roomy["overload"])
    if not limited(settings):
        return max(roomy[counted(settings)], one_packet(settings))
    task = Task("simulation", {**settings, "engine": "train", "seed": seed})
    top = roomy[counted(settings)]
    found = yield from search.bisect(task, "buffer", max(1.0, top * 0.01), top * 64, 0.003)
    if found.good is None:
        raise ValueError("this switch drops with any shared memory: its limit per port is below the need of one event")
    return found.good


def distribution(maxima):
    """Returns (function, description). A further run exceeds function(confidence) with probability 1 - confidence; the value is at least the largest maximum.
    If the maxima scatter, the function comes from a generalised extreme value distribution."""
    maxima = np.asarray(maxima, float)
    largest = float(maxima.max())
    if maxima.std() <= 1e-3 * maxima.mean():
        return lambda confidence: largest, "all runs need the same: no distribution to fit"
    from scipy import stats

    scale = float(maxima.mean())
    location, width = stats.gumbel_r.fit(maxima / scale)
    gumbel = stats.gumbel_r(location, width)
    shape, general_location, general_width = stats.genextreme.fit(maxima / scale, 0.0, loc=location, scale=width)
    general = stats.genextreme(shape, general_location, general_width)
    # Use the third parameter only if it improves the fit enough (Akaike).
    better = np.isfinite(general.logpdf(maxima / scale)).all() and (
        general.logpdf(maxima / scale).sum() - 1 > gumbel.logpdf(maxima / scale).sum()
    )
    chosen, name = (general, f"generalised extreme value, shape {-shape:.2f}") if better else (gumbel, "Gumbel")
    return lambda confidence: max(
        float(chosen.ppf(confidence)) * scale, largest
    ), f"{name} distribution of {len(maxima)} maxima"


def drops_of(runner, settings, seeds, stop_at_first=False, phase="runs"):
    """Returns {seed: drops} with a finite buffer. With `stop_at_first` it ends soon after the first drop; the numbers then tell only whether drops occur."""
    settings = {**settings, "only_drops": True} if stop_at_first else settings
    batch = 2 if stop_at_first else len(seeds)
    found = {}
    runner.begin(f"{phase} with a buffer of {settings['buffer'] * 1e-6:.4g} MB", len(seeds))
    for start in range(0, len(seeds), batch):
        some = seeds[start : start + batch]
        results = runner.all([Task("simulation", {**settings, "seed": seed}) for seed in some])
        found |= {seed: result["drops"] for seed, result in zip(some, results)}
        if stop_at_first and any(found.values()):
            break
    return found


def prove(runner, settings, answer, seeds, engine):
    """Drops by seed with the answer, and with nine tenths of it. The second is empty if nine tenths are less than a packet."""
    with_answer = drops_of(runner, {**settings, "buffer": round(answer), "engine": engine}, seeds)
    if answer * NINE_TENTHS < one_packet(settings):
        return with_answer, {}
    with_less = drops_of(
        runner, {**settings, "buffer": round(answer * NINE_TENTHS), "engine": engine}, seeds, stop_at_first=True
    )
    return with_answer, with_less


def vary(runner, settings, seeds):
    """The median need of every variant, relative to the scenario's need; assumptions sorted by their effect."""
    whole = scenario.complete(settings)
    variants = {("base", "as given"): settings}
    for assumption, changes in ASSUMPTIONS.items():
        for name, change in changes:
            if all(str(whole[key]) == scenario.complete({key: value})[key] for key, value in change.items()):
                continue
            variants[assumption, name] = {**settings, **change}
    sequences = {
        (variant, seed): tolerant_need(changed, seed) for variant, changed in variants.items() for seed in seeds
    }
    runner.begin("assumptions, each changed alone")
    found = runner.drive(sequences)
    median = {variant: _median([found[variant, seed] for seed in seeds]) for variant in variants}
    base = median.pop(("base", "as given"))
    rows = []
    for (assumption, name), bytes in median.items():
        rows.append(
            {"assumption": assumption, "variant": name, "buffer_bytes": bytes, "ratio": bytes / base if bytes else None}
        )

    def change(row):
        """The size of the effect; 0 for a variant that the network cannot carry."""
        return abs(np.log(row["ratio"])) if row["ratio"] else 0.0

    strength = {
        row["assumption"]: max(change(other) for other in rows if other["assumption"] == row["assumption"])
        for row in rows
    }
    rows.sort(key=lambda row: (-strength[row["assumption"]], row["assumption"], -change(row)))
    return base, rows


def tolerant_need(settings, seed):
    """Like need(), but returns None if the network cannot carry the variant's load."""
    try:
        return (yield from need(settings, seed))
    except ValueError:
        return None


def _median(values):
    return float(np.median(values)) if all(value is not None for value in values) else None


def reach(runner, settings, seeds):
    """The highest rate [Hz] without drops that the switch reaches, by seed; None if it is below a hundredth of the requested rate."""
    whole = scenario.complete(settings)
    asked = float(whole["rate"])
    payload = float(whole["event_size"])
    ports = int(whole["nodes"]) // int(whole["racks"])
    ceiling = min(float(whole["uplink"]), ports * float(whole["node_link"])) / 8 / payload
    task = Task("simulation", {**settings, "engine": "train"})
    runner.begin("rate that the switch reaches")
    found = runner.drive(
        {
            seed: search.bisect(task.with_settings(seed=seed), "rate", asked / 100, max(ceiling, asked), 0.01)
            for seed in seeds
        }
    )
    return {seed: result.good for seed, result in found.items()}


def curve(runner, settings, shares=(0.25, 0.5, 0.75, 1.0, 1.25)):
    """Needed memory against rate, one seed each, without rates that the network cannot carry."""
    asked = float(scenario.complete(settings)["rate"])
    rates = [round(asked * share) for share in shares if round(asked * share) >= 1]
    runner.begin("need at other rates")
    found = runner.drive({rate: tolerant_need({**settings, "rate": rate}, 1) for rate in rates})
    return [(rate, found[rate]) for rate in rates if found[rate] is not None]


def size(job, directory, executor, progress=None, revision=""):
    """The whole answer as a dict of plain values; every run is in the journal of `directory`."""
    wanted, settings = job["size"], {name: value for name, value in job["scenario"].items() if name != "seed"}
    first = int(job["scenario"].get("seed", 1))
    seeds = range(first, first + wanted["seeds"])
    with Journal(Path(directory) / "journal.sqlite", revision) as journal:
        runner = Runner(journal, executor, progress)
        runner.begin("need of each seed")
        found = runner.drive({seed: need(settings, seed) for seed in seeds})
        maxima = [float(found[seed]) for seed in seeds]
        quantile, how = distribution(maxima)
        forms = closed_forms(settings)
        bound = forms["bound_bytes"] or np.inf
        value = quantile(wanted["confidence"])

        def with_margin(bytes):
            """Adds the margin, up to the bound: no run needs more."""
            return max(min(bytes * (1 + wanted["margin"]), bound), max(maxima))

        answer = with_margin(value)

        proof_seeds = list(range(PROOF_SEEDS_FROM + first, PROOF_SEEDS_FROM + first + wanted["proof_seeds"]))
        raised = 0
        while True:
            with_answer, with_less = prove(runner, settings, answer, proof_seeds, wanted["proof_engine"])
            failing = [seed for seed, drops in with_answer.items() if drops]
            if not failing or raised == 3:
                break
            # The proof knows more than the fit: it gives the need of seeds that drop.
            raised += 1
            runner.begin(f"need of the seeds that drop with {answer * 1e-6:.4g} MB")
            needs = runner.drive({seed: need(settings, seed) for seed in failing})
            answer = max(answer * 1.01, max(needs.values()) * (1 + wanted["margin"]))
        further = 0
        least = answer * NINE_TENTHS < one_packet(settings)
        if not any(with_less.values()) and not least:
            # Rare large occupancies: more seeds, in the fast engine, until one of them needs more than nine tenths.
            more = range(proof_seeds[-1] + 1, proof_seeds[-1] + 1 + 10 * wanted["proof_seeds"])
            extra = drops_of(
                runner,
                {**settings, "buffer": round(answer * NINE_TENTHS), "engine": "train"},
                list(more),
                stop_at_first=True,
                phase="further runs",
            )
            further = len(extra)
            with_less |= extra

        base, assumptions = vary(runner, settings, seeds[:5]) if wanted["assumptions"] else (None, [])
        whole = scenario.complete(settings)
        switch = settings if whole["buffer"] != "infinite" else {**settings, "switch": "qfx5120"}
        reached = reach(runner, switch, seeds[:5])
        rates = curve(runner, settings)
    proved = not any(with_answer.values())
    seconds = float(whole["duration"])
    scatter = quantile(1 - 1e-9) > min(maxima)
    once_in = (
        seconds / (1 - wanted["confidence"]) if scatter and answer < bound else None
    )  # the quantile of the fit, without the margin
    rare = [
        {"once_a": name, "buffer_bytes": round(max(with_margin(quantile(1 - seconds / interval)), answer))}
        for name, interval in INTERVALS.items()
        if interval > seconds
    ]
    return {
        "buffer_bytes": round(answer),
        "confidence": wanted["confidence"],
        "margin": wanted["margin"],
        "quantile_bytes": round(value),
        "how": how,
        "seconds_between_runs_with_drops": once_in,
        "for_drops": rare,
        "at_the_bound": bool(answer >= bound),
        "counted_in": "cells of the switch" if counted(settings) == "max_buffer_cell_bytes" else "frames",
        "maxima_bytes": maxima,
        "seeds": [seeds[0], seeds[-1]],
        "proof": {
            "engine": wanted["proof_engine"],
            "seeds": [proof_seeds[0], proof_seeds[-1]],
            "drops": sum(with_answer.values()),
            "proved": proved,
            "raised": raised,
            "nine_tenths_bytes": round(answer * NINE_TENTHS),
            "nine_tenths_seeds_that_drop": sum(drops > 0 for drops in with_less.values()),
            "nine_tenths_seeds": len(with_less),
            "nine_tenths_further_seeds": further,
            "one_packet": least,
            "tight": least or any(with_less.values()),
        },
        "dominant": assumptions[0]["assumption"] if assumptions and assumptions[0]["ratio"] else None,
        "assumptions": assumptions,
        "base_bytes": base,
        "switch": {
            "buffer": scenario.complete(switch)["buffer"],
            "is_example": whole["buffer"] == "infinite",
            "rate_hz": min(reached.values()) if all(rate is not None for rate in reached.values()) else None,
            "rates_hz": list(reached.values()),
        },
        "need_by_rate": [{"rate_hz": rate, "buffer_bytes": bytes} for rate, bytes in rates],
        "formula": forms,
        "settings": whole,
        "runs": {"done": runner.ran, "known": runner.known},
        "revision": revision,
    }
