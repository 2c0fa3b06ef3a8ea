"""Event selections in Python: the decorator rodeo.select, what a function gets, and the process that a filter node runs it in."""

from rodeo.selection.decorator import Stream, accept, more, reject, select
from rodeo.selection.event import Event, Rob

__all__ = ["Event", "Rob", "Stream", "accept", "more", "reject", "select"]
