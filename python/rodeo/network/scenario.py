"""Settings of a network by name, as the configuration's keys: read and completed by the C++ side."""

from .native import module


def texts(settings):
    """As the C++ side reads them: every value as text, None left out."""
    return [(name, _text(value)) for name, value in settings.items() if value is not None]


def _text(value):
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return str(int(value)) if value.is_integer() else repr(value)
    return str(value)


def complete(settings):
    """Every setting with its value in base units, as text; ValueError for one that is not known or not readable."""
    return module.scenario(texts(settings))


def readable(settings):
    """The same as people write it: "5 MB", "12 kHz", "200 ms"."""
    return module.readable(texts(settings))


def check(settings):
    """ValueError for a network that cannot be, or would have to carry more than its links do."""
    module.check(texts(settings))


def formula_arguments(settings):
    """The same network for formula(): one rack's switch, event size with headers; an event comes in as fast as uplink and readouts let it."""
    whole = complete(settings)
    together = int(whole["readouts"]) * float(whole["readout_link"])
    return {"event_size": int(whole["event_size"]), "rate": float(whole["rate"]), "input": min(float(whole["uplink"]), together), "output": float(whole["node_link"]),
            "ports": int(whole["nodes"]) // int(whole["racks"]), "mtu": int(whole["mtu"]), "readouts": int(whole["readouts"])}
