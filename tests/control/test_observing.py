"""The controller's view of the answers of hosts and processes, with its real observer and scripted hosts."""

import asyncio
from dataclasses import replace
from types import SimpleNamespace

import looking
import pytest
from conftest import scaled
from rodeo.control.processes.host import AgentProcess
from rodeo.control.refused import Refused
from rodeo.control.run.adoption import adopt
from rodeo.control.run.command_lock import cancelled
from rodeo.control.run.controller import Controller
from rodeo.control.run.observer import Observer
from rodeo.control.run.open_run import OpenRun
from rodeo.control.run.run_transitions import go_on, relaunch, stop
from rodeo.control.state.alarms import RESTORED_LOOKS, Alarm
from rodeo.control.state.reactions import Reaction, react
from rodeo.control.state.snapshots import Choice, Memory
from rodeo.control.state.system_state import derive


class Host:
    """A scripted host; `processes` None: it is silent."""

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
    """Looks of the system after these successive answers of its host."""

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
    """A writer whose file is on a disk that does not answer."""

    async def remember(self, key, value):
        await asyncio.Event().wait()

    audit = remember


def controller(system=looking.SYSTEM, writer=None):
    database = SimpleNamespace(writer=writer or Silent(), reads=None, here=writer)
    return Controller(system, rodeo="rodeo", hosts={"local": Host()}, database=database)


class Silent:
    """A writer that accepts everything."""

    async def remember(self, *_, **__):
        """Accepts the value."""

    audit = remember


def test_the_patience_of_the_system_file_counts_where_nothing_else_is_said(monkeypatch):
    patient = replace(looking.SYSTEM, patience=3.0)
    monkeypatch.setenv("RODEO_CONTROL_PATIENCE", "5")
    assert controller(patient).patience == 5.0
    monkeypatch.delenv("RODEO_CONTROL_PATIENCE")
    assert controller(patient).patience == controller(patient).observer.patience == 3.0


def test_an_abort_whose_controller_was_killed_is_gone_on_with_as_an_abort(monkeypatch):
    async def main():
        done = []

        async def abort(c, act, arguments):
            done.append((act.name, act.actor))

        monkeypatch.setattr("rodeo.control.run.system_transitions.abort", abort)
        room = controller()
        room.publish = lambda: None
        room.acts.changed = room.publish
        room.run = OpenRun.from_json(OpenRun(number=7, stopping=True, aborting=True).as_json())
        await room._act_by_rule(Reaction("stop", "run 7 stops"))
        assert done == [("abort", "rule")]

    asyncio.run(main())


def test_a_loss_that_comes_while_somebody_goes_on_without_another_is_not_agreed_to():
    async def main():
        room = controller()
        room.run, room.memory = (
            OpenRun(number=7, state="PAUSED", first_event_ns=1),
            Memory("ready", Choice("readout-1", 0.0)),
        )
        room.looks = looking.seen("running", "failed", "running", held=True)
        room.derived = derive(room.looks, room.run.row(), memory=room.memory)

        async def release(wait_for=None):
            room.derived = replace(room.derived, broken={**room.derived.broken, "readout-2": "signal 9"})

        room.trigger.release = release
        room.derive = room.trigger.authorities = lambda: ()
        room.trigger.declared = lambda: False
        room.transition = Silent().remember
        await go_on(room, None, {})
        assert room.memory.without == {"readout-1"}

    asyncio.run(main())


def test_hosts_are_opened_side_by_side():
    async def main():
        room, opening = controller(), []

        class Slow:
            async def open(self):
                opening.append(self)
                while len(opening) < 2:
                    await asyncio.sleep(0.01)
                raise Refused("control.launcher", "enough is seen", "")

        room.hosts, room.folders, room.database = (
            {"near": Slow(), "far": Slow()},
            SimpleNamespace(make=lambda: None),
            SimpleNamespace(open=Silent().remember),
        )
        with pytest.raises(Refused):
            await asyncio.wait_for(room.open(), scaled(20))

    asyncio.run(main())


def test_a_stop_after_which_nothing_gets_ready_is_done_and_says_so(monkeypatch):
    async def close_row(*_, **__):
        return {"run": 7, "condition": "GOOD"}

    async def main():
        room = controller()
        room.run, room.memory = OpenRun(number=7, state="RUNNING", first_event_ns=1), Memory("ready")
        room.trigger.hold = room.launching.end_in_order = room.transition = Silent().remember
        room.trigger.authorities = lambda: ()

        async def prepare(members):
            raise Refused("control.configuration", "readout.toml cannot be read", "")

        room.launching.prepare = prepare
        assert await stop(room, None, {}) == {"run": 7, "condition": "GOOD", "not_ready": "readout.toml cannot be read"}

    monkeypatch.setattr("rodeo.control.run.run_transitions.close_row", close_row)
    asyncio.run(main())


def test_a_pause_that_one_of_two_authorities_does_not_answer_changes_nothing():
    class Two(Host):
        asked = []

        async def ask(self, name, request, timeout_s):
            self.asked.append((name, request["command"]))
            if name == "deaf":
                raise Refused("control.no_answer", "no answer within 2 s", "")
            return {}

    room = controller()
    room.trigger.authorities = lambda: ["good", "deaf"]
    room.observer.host_of = lambda name: host
    host = Two()
    with pytest.raises(Refused) as refused:
        asyncio.run(room.trigger.hold(or_none=True))
    assert "deaf" in refused.value.what and "good" not in refused.value.what
    assert host.asked == [("good", "trigger_hold"), ("deaf", "trigger_hold"), ("good", "trigger_release")]


def test_nothing_is_launched_for_the_next_run_after_an_abort():
    room = controller()
    room.memory, room.launching = Memory(wanted="off"), None
    asyncio.run(relaunch(room, None))


class Remembering(Silent):
    """A writer with the database of an earlier controller."""

    def __init__(self, **kept):
        self.kept = kept

    async def recall(self, key):
        return self.kept.get(key)

    async def nothing(self, *_, **__):
        return []

    open_runs = alarms_standing = runs = nothing

    def health(self):
        return {"state": "good", "journal": 0}


def test_what_was_remembered_of_a_process_counts_when_its_silent_host_is_there_again():
    async def main():
        room = controller(
            writer=Remembering(
                launched={
                    "lines": [],
                    "processes": {
                        "cards": {"pid": 100, "sha256": "a" * 64, "settings": ["emulator.name=lab-cards"]},
                        "readout-1": {"pid": 99, "sha256": "b" * 64, "writers": ["writer"]},
                    },
                }
            )
        )
        prepared = []

        async def prepare(members):
            prepared.extend(members)

        room.launching.prepare = prepare
        await adopt(room)
        assert prepared, "configurations are read, because processes may exist"
        cards, readout = room.observer.members["cards"], room.observer.members["readout-1"]
        assert (cards.alive, readout.alive) == (None, None) and cards.settings == ["emulator.name=lab-cards"]
        await room.keep_launched()
        room.observer.hosts["local"].processes = [process("cards"), process("readout-1")]
        await room.observer.look()
        assert (cards.expected_sha256, readout.expected_sha256, readout.writers) == ("a" * 64, None, ["writer"])

    asyncio.run(main())


@pytest.mark.parametrize("acked_by", ["ana", None])
def test_the_alarm_on_a_file_that_was_left_open_outlives_the_room_until_the_file_is_gone(tmp_path, acked_by):
    folder, cause = tmp_path / "runs" / "000007" / "readout-1", "file.left_open:readout-1/x._0001.writing"
    folder.mkdir(parents=True)
    for name in ("x._0001.writing", "x._0002.writing", "x._0003.recovered._0001.writing", "x._0004.data"):
        (folder / name).write_text("")
    said = "readout-1/x._0001.writing was left open, and could not be recovered: no whole event"
    writer = Remembering()

    async def alarms_standing():
        return [Alarm(cause, "warning", 5, said, acked_by=acked_by).as_json()]

    async def runs(**_):
        return [{"number": 7, "type": "test", "state": "CLOSED"}, {"number": 6, "type": "test", "state": "CLOSED"}]

    async def main():
        room = controller(replace(looking.SYSTEM, directory=tmp_path), writer)
        room.observer.hosts["local"].processes = []
        writer.alarms_standing, writer.runs = alarms_standing, runs
        await adopt(room)
        for _ in range(RESTORED_LOOKS + 1):
            room.evaluate(changed=True)
        found = {one.cause: one for one in room.telling.book.standing() if one.cause.startswith("file")}
        first, second = found[cause], found[cause.replace("1.w", "2.w")]
        assert len(found) == 2 and (first.what, first.acked_by, first.raised_ns, first.cleared_ns) == (
            said,
            acked_by,
            5,
            None,
        )
        assert second.what == "readout-1/x._0002.writing of run 7 was left open"
        (folder / "x._0001.writing").unlink()
        await room.telling.look_at_left_open()
        assert [path.name for path in room.telling.left_open] == ["x._0002.writing"]

    asyncio.run(main())


def test_the_trigger_is_held_for_what_was_lost_before_anything_is_written():
    async def main():
        room = controller(writer=Stuck())
        room.run = OpenRun(number=7, state="RUNNING", first_event_ns=1)
        room.looks = looking.seen("running", "failed", "running", held=False)
        room.derived = derive(room.looks, room.run.row())
        held = asyncio.Event()

        async def hold():
            held.set()

        room.trigger.hold = hold
        reacting = asyncio.ensure_future(room._react())
        await asyncio.wait_for(held.wait(), scaled(20))
        await cancelled([reacting, *room._tasks])
        assert room.memory.choice.process == "readout-1"

    asyncio.run(main())
