"""The control room: run control, page and run database. `connect()` returns a client of a running room; all other modules are imported on use."""


def connect(system=None, *, name=None):
    """A client of this user's control room of `system`; by default of the only running room. See rodeo.control.client.Client.
    `name` is your name in the lease and in the audit; the default is the login name.
    Raises Refused: control.no_room (no room runs), control.which_room (several rooms run, name one)."""
    from rodeo.control.client import connect as _connect

    return _connect(system, name=name)


def __getattr__(name):
    if name == "Refused":
        from rodeo.control.refused import Refused

        return Refused
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
