"""Rodeo for Python: data files (rodeo.data), events of a running readout (rodeo.events), event selections of the farm
(rodeo.select), cards (rodeo.card), sizing of event-building networks (rodeo.network). In a clone run with PYTHONPATH=build/python.

    import rodeo
    for event in rodeo.data.open("*.data"):
        print(event.l1_id, len(event.fragments))
"""

import importlib

try:
    from rodeo._version import VERSION as __version__
except ImportError:  # only the sources are here: CMake generates the version
    __version__ = "unknown"

# Names that are imported on first use, each with its module ("": the name is a module).
_SELECTION = "rodeo.selection.decorator"
_HOMES = {
    "card": "",
    "data": "",
    "events": "",
    "network": "",
    "decoder": "rodeo.data.decoder",
    "monitor": "rodeo.monitoring.monitor",
    "select": _SELECTION,
    "accept": _SELECTION,
    "reject": _SELECTION,
    "more": _SELECTION,
    "Stream": _SELECTION,
}


def __getattr__(name):
    if name not in _HOMES:
        raise AttributeError(f"module rodeo has no attribute {name}")
    home = _HOMES[name]
    value = getattr(importlib.import_module(home), name) if home else importlib.import_module(f"rodeo.{name}")
    globals()[name] = value
    return value
