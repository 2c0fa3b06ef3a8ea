"""The control room: run control, page and run database. `connect()` gives a client of a room that runs; all else is imported on use."""


def connect(system=None, *, name=None):
    """A client of this user's control room of `system`; without a name the only one that runs. See rodeo.control.client.Client.
    `name` is who you are in the lease and in the audit (the user's login name without it).
    Raises Refused: control.no_room (nobody there), control.which_room (several run, name one)."""
    from rodeo.control.client import connect as _connect

    return _connect(system, name=name)


def __getattr__(name):
    if name == "Refused":
        from rodeo.control.refused import Refused

        return Refused
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
