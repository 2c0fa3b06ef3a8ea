"""The buffer that an event-building network needs: closed forms, superposition of events and simulation.

    from rodeo import network
    network.formula("5MB", "12kHz").exact_bytes
    network.simulate(preset="lab-2023", rate="12kHz", arrivals="poisson", duration="50ms", occupancy="10us").occupancy["max_bytes"]

Results are numbers and NumPy arrays.
"""

import importlib

# Imported on first use, so that python -m rodeo.network can report missing packages in words.
_HOMES = {
    "Formula": "closed_forms",
    "formula": "closed_forms",
    "highest_rate": "closed_forms",
    "superposition": "closed_forms",
    "Simulation": "simulation",
    "drops_at_all": "simulation",
    "simulate": "simulation",
}

__all__ = sorted(_HOMES)


def __getattr__(name):
    if name not in _HOMES:
        raise AttributeError(f"module rodeo.network has no attribute {name}")
    value = getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
    globals()[name] = value
    return value
