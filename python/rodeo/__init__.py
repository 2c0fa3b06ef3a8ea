"""Rodeo for Python: sizing of event-building networks (rodeo.network), figures, event selections (rodeo.select). Run with PYTHONPATH=build/python."""

from rodeo.selection.decorator import Stream, accept, more, reject, select

__all__ = ["Stream", "accept", "more", "reject", "select"]
