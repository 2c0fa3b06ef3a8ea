"""Rodeo for Python: sizing of event-building networks (rodeo.network), figures. Run with PYTHONPATH=build/python."""

try:
    from rodeo._version import VERSION as __version__
except ImportError:  # the sources by themselves: CMake writes the version beside them
    __version__ = "unknown"
