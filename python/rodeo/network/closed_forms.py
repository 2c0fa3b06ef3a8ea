"""The closed forms and the brute-force superposition (section 3.3 of the network paper)."""

from dataclasses import dataclass

import numpy as np

from . import units
from .native import module


@dataclass(frozen=True)
class Formula:
    """Bytes are bytes on the wire. None: the value does not exist (overload; too few ports for a bound); `why` gives the reason."""

    event_wire_bytes: float
    event_rate_hz: float
    paper_bytes: float
    exact_bytes: float | None
    bound_bytes: float | None
    k: float
    k_bytes: float
    paper_events: int
    overlapping_events: int
    uplink_load: float
    port_load: float
    valid: bool
    paper_valid: bool
    why: str
    conditions: dict


def _wire(event_size, mtu, readouts):
    payload = units.size(event_size)
    return float(module.wire_bytes(round(payload), mtu, readouts)) if mtu else payload


def formula(event_size="5MB", rate="12kHz", *, input="800Gbps", output="25Gbps", ports=32, mtu=None, readouts=1, k=1.5):
    """Published formula, exact form and bound. With `mtu`, headers are added to `event_size` (payload); without `mtu`, `event_size` includes them."""
    wire = _wire(event_size, mtu, readouts)
    hertz = units.rate(rate)
    forms = module.closed_forms(wire, hertz, units.bit_rate(input), units.bit_rate(output), ports)
    return Formula(event_wire_bytes=wire, event_rate_hz=hertz, k=k, k_bytes=k * forms["paper_bytes"], **forms)


def highest_rate(buffer, event_size="5MB", *, input="800Gbps", output="25Gbps", ports=32, mtu=None, readouts=1):
    """The rate [Hz] at which the exact form fills `buffer`; None if a single event is larger than the buffer."""
    return module.highest_rate_hz(
        _wire(event_size, mtu, readouts), units.bit_rate(input), units.bit_rate(output), ports, units.size(buffer)
    )


def superposition(
    arrivals="periodic",
    event_size="5MB",
    rate="12kHz",
    *,
    input="800Gbps",
    output="25Gbps",
    ports=32,
    mtu=None,
    readouts=1,
    events=1000,
    jitter_periods=0.5,
    seed=1,
    assigned=None,
    one_uplink=True,
):
    """Occupancy over time of any sequence of events, as a dict: max_bytes, max_port_bytes, and the arrays time_s, occupancy_bytes.

    arrivals: periodic, jittered or poisson, or an array of start times [s]. With such an array, `event_size` may be an array of the same
    length, and `assigned` an array of ports (default: the ports take turns).
    """
    bits_in, bits_out = units.bit_rate(input), units.bit_rate(output)
    sizes = np.atleast_1d(event_size) if not isinstance(event_size, str) else [event_size]
    wire = np.array([_wire(size, mtu, readouts) for size in sizes])
    if isinstance(arrivals, str):
        starts = module.starts(arrivals, events, float(wire.mean()), units.rate(rate), ports, jitter_periods, seed)
    else:
        starts = np.ascontiguousarray(arrivals, dtype=float)
    if len(wire) not in (1, len(starts)):
        raise ValueError(f"{len(wire)} sizes for {len(starts)} events")
    port = np.arange(len(starts)) % ports if assigned is None else np.asarray(assigned)
    return module.superpose(
        starts,
        np.ascontiguousarray(np.broadcast_to(wire, len(starts)), dtype=float),
        np.ascontiguousarray(port, dtype=np.uint32),
        bits_in,
        bits_out,
        ports,
        one_uplink,
    )
