"""What kinds of process a system may have, and what is true of all processes of a kind. A new kind is one entry here, and a shape in sound.py."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Kind:
    """`table`: of its configuration; its key `name` names the process. `socket`: how its control socket is called in the runtime directory, after the
    name. `order`: larger starts first and stops last, so sinks have the larger. `per_run`: its processes live one run: launched held, started once, and
    they end with the run. `held`: it waits for an order when it was launched. `report`: shape in sound.py of what it leaves at its end.
    `counted`: path in its status of what it has done so far, from which its rate is taken where numbers.py knows nothing better."""

    name: str
    verb: tuple = ()
    table: str = ""
    socket: str = ""
    order: int = 0
    per_run: bool = False
    held: bool = False
    report: str = ""
    counted: tuple = ()
    do: str = "look at its log"  # what an operator does when one is gone

    @property
    def named_by(self):
        """The key that names a process; empty for a program."""
        return f"{self.table}.name" if self.table else ""


# At the end of a run: triggers are held, the supervisor has all decided and cleared, readouts have nothing left to keep, nodes have been told that the run is
# over, and the recorder closes its files last.
_ALL = (
    Kind("program", order=40),
    Kind("recorder", ("farm", "record"), "farm.recorder", ".control", 38, True, True, "recorder", ("events", "recorded"),
         "nodes keep what it did not acknowledge: restart it, or stop the run"),
    Kind("node", ("farm", "filter"), "farm.node", ".control", 35, True, True, "node", ("events", "assigned"),
         "its events go to other nodes; look at its log"),
    Kind("readout", ("readout",), "readout", ".control", 30, True, True, "report", (), "look at its log; go_on without its links, or stop the run"),
    Kind("supervisor", ("farm", "supervise"), "farm.supervisor", ".control", 25, True, True, "supervisor", ("events", "in"),
         "no event is assigned any more: look at its log, stop the run"),
    Kind("router", ("route",), "router", ".router", 20, report="router_report", do="look at its log; its readouts get nothing: stop the run, then recover"),
    Kind("emulator", ("emulate",), "emulator", ".emulator", 10, held=True, report="emulator",
         do="look at its log; in a run choose go_on or stop, then recover"),
)
KINDS = {kind.name: kind for kind in _ALL}
FARM = ("supervisor", "node", "recorder")
NEEDED = (*FARM, "readout")  # no event flows without one of each of these kinds that a system has, whatever their roles are
UNKNOWN = Kind("")


def kind_of(name):
    """The Kind of this name; one without anything if there is none, which problems_of() says."""
    return KINDS.get(name, UNKNOWN)
