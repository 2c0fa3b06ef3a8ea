"""One run of one method: settings in, a flat dict of numbers out. Executors send these calls to workers."""

import json
import os
import socket
import subprocess
import time
from dataclasses import dataclass, field

METHODS = ("formula", "simulation", "laboratory", "farm")


@dataclass(frozen=True)
class Task:
    method: str
    settings: dict = field(hash=False)  # seed included

    def with_settings(self, **changes):
        return Task(self.method, {**self.settings, **changes})


class Overload(Exception):
    """The load is larger than the network can carry: no buffer is large enough."""


def run(task):
    """The numbers of one run. ValueError: impossible settings; Overload: more load than the links carry."""
    return {"formula": by_formula, "simulation": by_simulation, "laboratory": by_laboratory, "farm": by_farm}[
        task.method
    ](task.settings)


def timed(task):
    start = time.monotonic()
    try:
        result = run(task)
    except Overload as overload:
        result = {"overload": str(overload)}
    return result, time.monotonic() - start, socket.gethostname()


def by_formula(settings):
    """The exact form as occupancy; drops are 1 if a finite buffer is smaller."""
    from . import units
    from .closed_forms import formula
    from .scenario import formula_arguments

    forms = formula(**formula_arguments(settings))
    if forms.exact_bytes is None:
        raise Overload(forms.why)
    buffer = settings.get("buffer", "infinite")
    limit = float("inf") if buffer == "infinite" else units.size(buffer)
    return {
        "max_buffer_bytes": forms.exact_bytes,
        "paper_bytes": forms.paper_bytes,
        "bound_bytes": forms.bound_bytes,
        "drops": int(forms.exact_bytes > limit),
    }


def by_simulation(settings):
    """One simulation. With the setting `only_drops` it only finds out whether there are drops, in the least time."""
    from .simulation import drops_at_all, simulate

    settings = dict(settings)
    try:
        if settings.pop("only_drops", False):
            return {"drops": int(drops_at_all(**settings))}
        return simulate(**settings).numbers
    except ValueError as refused:
        if "network.overload" in str(refused):
            raise Overload(str(refused)) from None
        raise


# The laboratory of one machine represents a faster network: bit rates are multiplied by RATE_SCALE, sizes of events and buffers by SIZE_SCALE,
# event rates by RATE_SCALE / SIZE_SCALE (docs/explanation/network-laboratory.md, "The scaling law").
RATE_SCALE, SIZE_SCALE = 0.001, 0.1


def seconds_of(settings):
    """Seconds of a run in real time: the setting `duration`, or 2."""
    from . import scenario

    return float(scenario.complete({"duration": settings["duration"]})["duration"]) if "duration" in settings else 2.0


def by_farm(settings):
    """The laboratory with a real farm as its load. Without root it runs on loopback: it measures rate and latency, without a switch."""
    if os.geteuid() == 0:
        return by_laboratory(settings, load="farm")
    from . import farm_load, scenario

    if settings.get("only_drops") or settings.get("buffer", "infinite") != "infinite":
        raise ValueError("on loopback there is no switch that could drop: the method farm needs root for that")
    seconds = seconds_of(settings)
    whole = dict(scenario.complete(settings))
    whole |= {
        "rate": str(float(whole["rate"]) * RATE_SCALE / SIZE_SCALE),
        "event_size": str(round(float(whole["event_size"]) * SIZE_SCALE)),
    }
    found = farm_load.run_here(whole, seconds)
    return {"laboratory_rate_hz": float(whole["rate"]), **farm_figures(found)}


def farm_figures(found):
    """The farm's results of a run. Its times are times on the slow network."""
    return {
        "events_completed": found["events_completed"],
        "farm_rate_hz": found["rate_hz"],
        "latency_p50_us": found["latency_p50_us"],
        "latency_p99_us": found["latency_p99_us"],
        "building_p50_us": found["building_p50_us"],
        "building_p99_us": found["building_p99_us"],
        "waits_for_credit": found["waits_for_credit"],
    }


def by_laboratory(settings, load=""):
    """Runs `rodeo net lab` in namespaces of this machine (root), scaled down, and scales the results up. A vetoed run: {"failed": why}."""
    from . import scenario

    settings = dict(settings)
    duration = seconds_of(settings)
    # Time-outs do not change whether packets drop, only how deep the collapse is. Scaled time-outs take a hundred times as long.
    rto = 0.2 if settings.pop("only_drops", False) else 0.2 * SIZE_SCALE / RATE_SCALE
    whole = scenario.complete(settings)
    rate = float(whole["rate"]) * RATE_SCALE / SIZE_SCALE
    if float(whole["event_size"]) * float(whole["rate"]) * 8 > float(whole["uplink"]) * 0.95:
        raise Overload(f"{float(whole['rate']):g} Hz are more than the uplink carries with headers")

    def scaled_down(size):
        return f"{round(float(whole[size]) * SIZE_SCALE)}B"

    buffer = "infinite" if whole["buffer"] == "infinite" else f"shared:{scaled_down('buffer')}"
    flags = {
        "readouts": whole["readouts"],
        "nodes": whole["nodes"],
        "node-link": float(whole["node_link"]) * RATE_SCALE,
        "uplink": float(whole["uplink"]) * RATE_SCALE,
        "event-size": scaled_down("event_size"),
        "rate": rate,
        "mtu": whole["mtu"],
        "buffer": buffer,
        "arrivals": whole["arrivals"],
        "jitter": whole["jitter_periods"],
        "assignment": whole["assignment"],
        "size-sigma": whole["size_sigma"],
        "seed": whole["seed"],
        "size-spread": whole["size_spread"] if whole["size_spread"] != "fixed" else "normal",
        "racks": whole["racks"],
        "cell": f"{whole['cell']}B",
        "cell-metadata": f"{whole['cell_metadata']}B",
        "dedicated": scaled_down("dedicated") if whole["buffer"] != "infinite" else 0,
        "dynamic-threshold": whole["dynamic_threshold"] if whole["buffer"] != "infinite" else 0,
        "rto-min": f"{rto:g}s",
        "duration": f"{duration:g}s",
    }
    if load:
        flags |= {"load": load, "request-credits": whole["request_credits"], "in-flight": whole["events_in_flight"]}
    if whole["port_limit"] != "none":
        flags["port-limit"] = scaled_down("port_limit")
    if whole["virtual_output_queues"] == "true":
        raise ValueError("the laboratory's switch has no virtual output queues")
    command = [
        os.environ.get("RODEO", "rodeo"),
        "net",
        "lab",
        *(word for name, value in flags.items() for word in (f"--{name}", str(value))),
        "--json",
        "-",
    ]
    done = subprocess.run(command, text=True, capture_output=True)
    if done.returncode not in (0, 1):
        raise RuntimeError(done.stderr.strip() or f"{' '.join(command)} ended with {done.returncode}")
    try:
        found = json.loads(done.stdout)
    except ValueError:
        raise RuntimeError(done.stderr.strip() or "rodeo net lab said nothing") from None
    if found["failed"]:
        return {"failed": "vetoed: this machine was too busy to measure it"}

    def scaled_up(name):
        return found[name] / SIZE_SCALE if found.get(name) is not None else None

    return {
        "max_buffer_bytes": scaled_up("max_buffer_bytes"),
        "max_buffer_cell_bytes": scaled_up("max_buffer_cell_bytes"),
        "drops": found["drops"],
        "retransmits": found["retransmits"],
        "timeouts": found["timeouts"],
        "events_completed": found["events_completed"],
        "vetoes": found["vetoes"],
        "laboratory_rate_hz": rate,
        **(farm_figures(found["runs"][-1]["load"]) if load else {}),
    }
