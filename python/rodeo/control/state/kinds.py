"""The kinds of process in a system, and the properties of each kind. A new kind is one entry here, and a shape in state/status_schema.py."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Kind:
    """A kind of process. `table`: the table of its configuration in which the key `name` names the process. `socket`: the suffix of its control socket's
    name. `order`: kinds with larger numbers start first and stop last, so sinks have larger numbers. `per_run`: its processes live for one run; they are
    launched held, started once, and end with the run. `held`: its processes wait for an order after the launch. `report`: the shape in
    state/status_schema.py of the report at the end. `counted`: the path of the counter in the status from which the rate comes, if state/numbers.py
    has no better source."""

    name: str
    verb: tuple = ()
    table: str = ""
    socket: str = ""
    order: int = 0
    per_run: bool = False
    held: bool = False
    report: str = ""
    counted: tuple = ()
    do: str = "look at its log"  # the operator's action when such a process is gone

    @property
    def named_by(self):
        """The key that contains the process's name; empty for a program."""
        return f"{self.table}.name" if self.table else ""


# The order at the end of a run: triggers are held; the supervisor waits until all events are decided and cleared, so readouts keep no fragments; nodes
# learn that the run is over; the recorder closes its files last.
_ALL = (
    Kind("program", order=40),
    Kind(
        "recorder",
        ("farm", "record"),
        "farm.recorder",
        ".control",
        38,
        True,
        True,
        "recorder",
        ("events", "recorded"),
        "nodes keep what it did not acknowledge: restart it, or stop the run",
    ),
    Kind(
        "node",
        ("farm", "filter"),
        "farm.node",
        ".control",
        35,
        True,
        True,
        "node",
        ("events", "assigned"),
        "its events go to other nodes; look at its log",
    ),
    Kind(
        "readout",
        ("readout",),
        "readout",
        ".control",
        30,
        True,
        True,
        "report",
        (),
        "look at its log; go_on without its links, or stop the run",
    ),
    Kind(
        "supervisor",
        ("farm", "supervise"),
        "farm.supervisor",
        ".control",
        25,
        True,
        True,
        "supervisor",
        ("events", "in"),
        "no event is assigned any more: look at its log, stop the run",
    ),
    Kind(
        "router",
        ("route",),
        "router",
        ".router",
        20,
        report="router_report",
        do="look at its log; its readouts get nothing: stop the run, then recover",
    ),
    Kind(
        "emulator",
        ("emulate",),
        "emulator",
        ".emulator",
        10,
        held=True,
        report="emulator",
        do="look at its log; in a run choose stop, or go_on if other cards are left, then recover",
    ),
)
KINDS = {kind.name: kind for kind in _ALL}
FARM = ("supervisor", "node", "recorder")
NEEDED = (
    "emulator",
    "router",
    "readout",
    *FARM,
)  # data taking needs one process of each of these kinds that the system has, whatever their roles are
UNKNOWN = Kind("")


def kind_of(name):
    """The Kind of this name; an empty Kind if the name is unknown, which problems_of() reports."""
    return KINDS.get(name, UNKNOWN)
