"""Settings of a network, named like the configuration's keys. The C++ code parses and completes them."""

from .native import module


def texts(settings):
    """Settings for the C++ code: every value as text, without None."""
    return [(name, _text(value)) for name, value in settings.items() if value is not None]


def _text(value):
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return str(int(value)) if value.is_integer() else repr(value)
    return str(value)


def complete(settings):
    """Every setting with its value in base units, as text. ValueError for an unknown name or an invalid value."""
    return module.scenario(texts(settings))


def readable(settings):
    """Settings in readable units: "5 MB", "12 kHz", "200 ms"."""
    return module.readable(texts(settings))


def check(settings):
    """ValueError for an impossible network, or one with more load than its links carry."""
    module.check(texts(settings))


def formula_arguments(settings):
    """The network as arguments of formula(), for one rack's switch. An event arrives at the rate of the uplink or of all readouts, whichever is lower."""
    whole = complete(settings)
    together = int(whole["readouts"]) * float(whole["readout_link"])
    return {
        "event_size": int(whole["event_size"]),
        "rate": float(whole["rate"]),
        "input": min(float(whole["uplink"]), together),
        "output": float(whole["node_link"]),
        "ports": int(whole["nodes"]) // int(whole["racks"]),
        "mtu": int(whole["mtu"]),
        "readouts": int(whole["readouts"]),
    }
