"""The simulator: one call, one run, arrays out."""

from dataclasses import dataclass, field

from . import scenario, units
from .native import module


@dataclass(frozen=True)
class Simulation:
    """`numbers`: largest occupancy (max_buffer_bytes: frames on the wire), drops, retransmits, events, latency, packets, speed.

    `occupancy` (if requested): arrays time_s, max_bytes, last_bytes, rack, drops, with one entry per interval. `flows` (if requested): arrays by
    connection. `settings`: all settings, including defaults.
    """

    settings: dict
    numbers: dict
    occupancy: dict = field(default_factory=dict)
    flows: dict = field(default_factory=dict)

    def __getattr__(self, name):
        try:
            return self.__dict__["numbers"][name]
        except KeyError:
            raise AttributeError(name) from None


def drops_at_all(**settings):
    """Whether the network drops anything. It works like simulate(), but the run ends soon after its first drop, which saves much time."""
    return module.simulate(scenario.texts(settings), until_drop=True)["numbers"]["drops"] > 0


def simulate(*, occupancy=None, flows=False, **settings):
    """Simulates an event-building network. The result depends only on the settings (seed included).

    Settings have the names of the configuration's keys: preset, readouts, nodes, uplink, node_link, event_size, rate, arrivals,
    assignment, mtu, switch, buffer, engine, tcp, duration, seed, ... ; values are numbers in base units (seconds, bytes, hertz, bits per
    second) or text with a unit. `occupancy` is the interval ("10us") at which the buffer is sampled. The call releases the GIL.

    ValueError: an unknown setting, an impossible network, or more load than its links carry.
    """
    given = scenario.texts(settings)
    found = module.simulate(given, units.duration(occupancy) if occupancy is not None else 0.0, flows)
    return Simulation(module.scenario(given), found["numbers"], found.get("occupancy", {}), found.get("flows", {}))
