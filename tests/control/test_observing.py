"""What the controller makes of the answers of hosts and processes, with its real observer and hosts that say what a test wants."""

import asyncio
from types import SimpleNamespace

import looking
from conftest import scaled
from rodeo.control.acts import cancelled
from rodeo.control.controller import Controller
from rodeo.control.derive import derive
from rodeo.control.host import AgentProcess
from rodeo.control.observing import Observer
from rodeo.control.reactions import react
from rodeo.control.refused import Refused
from rodeo.control.run_keeping import OpenRun


class Host:
    """`processes` None: it is silent."""

    name, launcher = "local", "ssh"

    def __init__(self, processes=None):
        self.processes = processes

    async def list(self):
        if self.processes is None:
            raise Refused("control.host_silent", "local does not answer", "")
        return self.processes

    async def ask(self, name, request, timeout_s):
        raise Refused("control.unreachable", f"{name} does not answer", "")


def process(name, state="running", **more):
    return AgentProcess(name=name, pid=100, started_ns=1, state=state, **more)


def looks(*answers):
    """Looks of the system after its host has answered so, one time after the other."""

    async def all_of_them():
        observer = Observer(looking.SYSTEM, {"local": (host := Host())})
        for host.processes in answers:
            await observer.look()
        return observer.looks(), tuple(observer.silent_hosts)

    return asyncio.run(all_of_them())


def test_a_new_controller_does_nothing_to_a_run_while_its_host_is_silent():
    seen, silent = looks(None)
    derived = derive(seen, looking.row(), silent_hosts=silent)
    assert (derived.state, derived.flags, derived.heal) == ("RUNNING", ("BLIND",), None)
    reactions, memory = react(derived, seen, run=looking.row(), now_s=10.0)
    assert reactions == () and react(derived, seen, run=looking.row(), memory=memory, now_s=10_000.0)[0] == ()


def test_a_process_that_its_host_has_said_to_be_gone_is_gone_when_the_host_falls_silent():
    seen, silent = looks([], None)
    assert [look.alive for look in seen] == [False] * 3
    assert derive(seen, looking.row(), silent_hosts=silent).heal == "stop"


def test_nobody_knows_of_a_process_that_lived_when_its_host_fell_silent():
    seen, _ = looks([process("cards"), process("readout-1", "exited", exit_status=0)], None)
    assert [look.alive for look in seen] == [None, False, False]


class Stuck:
    """Writer of a database whose journal lies on a disk that does not answer."""

    async def remember(self, key, value):
        await asyncio.Event().wait()

    audit = remember


def test_the_trigger_is_held_for_what_was_lost_before_anything_is_written():
    async def main():
        controller = Controller(looking.SYSTEM, rodeo="rodeo", hosts={"local": Host()}, database=SimpleNamespace(writer=Stuck(), reads=None))
        controller.run = OpenRun(number=7, state="RUNNING", first_event_ns=1)
        controller.looks = looking.seen("running", "failed", "running", held=False)
        controller.derived = derive(controller.looks, controller.run.row())
        held = asyncio.Event()

        async def hold():
            held.set()

        controller.trigger.hold = hold
        reacting = asyncio.ensure_future(controller._react())
        await asyncio.wait_for(held.wait(), scaled(20))
        await cancelled([reacting, *controller._tasks])
        assert controller.memory.choice.process == "readout-1"

    asyncio.run(main())
