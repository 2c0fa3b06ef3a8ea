"""Event selections in Python: the decorator rodeo.select, the event that a selection gets, and the process in which a filter node runs it."""

from rodeo.selection.decorator import Stream, accept, more, reject, select
from rodeo.selection.event import Event, Rob

__all__ = ["Event", "Rob", "Stream", "accept", "more", "reject", "select"]
