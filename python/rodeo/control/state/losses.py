"""Losses that stop nothing: whole events that lack fragments of a readout. Pure."""

from rodeo.control.state.numbers import grown, value


def lacking(before, after):
    """The readout whose fragments events lack most, of those that nodes decided between two moments; None if no node says so."""
    lost = {}
    for name, status in after.of("node").items():
        earlier = {one["name"]: one for one in (before.statuses.get(name, (None, None))[1] or {}).get("readouts") or ()}
        for one in status.get("readouts") or ():
            growth = grown(value(earlier.get(one["name"]), "lost_fragments"), value(one, "lost_fragments"))
            lost[one["name"]] = lost.get(one["name"], 0) + (growth or 0)
    most = max(sorted(lost), key=lost.get, default=None)
    return most.rsplit(".", 1)[0] if most and lost[most] else None  # nodes know a readout as NAME.CONSUMER
