"""Quantities as numbers in base units or as text with a unit, parsed by the same code as the command line."""

from .native import module


def _read(value, unit):
    return module.parse(value, unit) if isinstance(value, str) else float(value)


def size(value):
    """Bytes: "5MB" (10^6), "5MiB" (2^20), 5e6."""
    return _read(value, "size")


def rate(value):
    """Hertz: "12kHz", 12e3."""
    return _read(value, "rate")


def bit_rate(value):
    """Bits per second: "25Gbps", 25e9."""
    return _read(value, "bit_rate")


def duration(value):
    """Seconds: "50ms", 0.05."""
    return _read(value, "duration")
