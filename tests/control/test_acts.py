"""One command at a time, on one loop: which command is refused as busy, which may interrupt another; a caller that leaves stops nothing."""

import asyncio

import pytest
from conftest import scaled
from rodeo.control.refused import Refused
from rodeo.control.run.command_lock import Acts


def run(work):
    return asyncio.run(asyncio.wait_for(work, scaled(60)))


async def turns(count=10):
    for _ in range(count):
        await asyncio.sleep(0)


def code(refused):
    return refused.value.code


def test_of_two_commands_at_once_one_is_busy():
    async def work():
        acts, go = Acts(lambda: None), asyncio.Event()

        async def body(act):
            await go.wait()
            return {"run": 1}

        first = asyncio.ensure_future(acts.do("start", "ana", 60.0, body))
        second = asyncio.ensure_future(acts.do("start", "ben", 60.0, body))
        await turns()
        assert isinstance(second.exception(), Refused) and second.exception().code == "control.busy"
        assert "start by ana" in second.exception().what
        go.set()
        assert await first == {"run": 1}
        assert acts.now is None

    run(work())


def test_an_act_goes_on_when_its_caller_is_gone():
    async def work():
        acts, go, done = Acts(lambda: None), asyncio.Event(), []

        async def body(act):
            await go.wait()
            done.append(True)

        caller = asyncio.ensure_future(acts.do("stop", "ana", 60.0, body))
        await turns()
        caller.cancel()
        await turns()
        assert acts.now is not None and not done
        go.set()
        await acts.finished()
        assert done and acts.now is None

    run(work())


def test_a_stop_takes_the_place_of_a_start_where_that_waits():
    async def work():
        acts, order = Acts(lambda: None), []

        async def start(act):
            while True:
                await asyncio.sleep(0)
                act.check()

        async def stop(act):
            order.append("stop")

        starting = asyncio.ensure_future(acts.do("start", "ana", 60.0, start, may_be_overtaken_by=("stop", "abort")))
        await turns()
        await acts.do("stop", "ben", 60.0, stop, may_be_overtaken_by=("abort",))
        with pytest.raises(Refused) as refused:
            await starting
        assert code(refused) == "control.overtaken" and order == ["stop"]

    run(work())


def test_what_is_sealed_is_done_to_its_end_before_another_takes_the_place():
    async def work():
        acts, order, go = Acts(lambda: None), [], asyncio.Event()

        async def stop(act):
            act.sealed = True
            await go.wait()
            act.check()
            order.append("closed")
            act.sealed = False
            return {"run": 3}

        async def abort(act):
            order.append("aborted")

        stopping = asyncio.ensure_future(acts.do("stop", "ana", 60.0, stop, may_be_overtaken_by=("abort",)))
        await turns()
        aborting = asyncio.ensure_future(acts.do("abort", "ben", 60.0, abort))
        await turns()
        assert order == []
        go.set()
        assert await stopping == {"run": 3}
        await aborting
        assert order == ["closed", "aborted"]

    run(work())


def test_an_abort_reaches_through_a_stop_that_waits_for_a_start():
    async def work():
        acts, order, go = Acts(lambda: None), [], asyncio.Event()

        async def start(act):
            await go.wait()  # between two steps that belong together
            act.check()

        async def stop(act):
            order.append("stop")

        async def abort(act):
            order.append("abort")

        starting = asyncio.ensure_future(acts.do("start", "ana", 60.0, start, may_be_overtaken_by=("stop", "abort")))
        await turns()
        stopping = asyncio.ensure_future(acts.do("stop", "ben", 60.0, stop, may_be_overtaken_by=("abort",)))
        await turns()
        aborting = asyncio.ensure_future(acts.do("abort", "eve", 60.0, abort))
        await turns()
        go.set()
        await aborting
        with pytest.raises(Refused):
            await starting
        with pytest.raises(Refused) as refused:
            await stopping
        assert code(refused) == "control.overtaken" and order == ["abort"]

    run(work())


def test_an_act_that_fails_leaves_the_place_free():
    async def work():
        acts = Acts(lambda: None)

        async def body(act):
            raise Refused("control.launch", "no", "")

        with pytest.raises(Refused):
            await acts.do("launch", "ana", 60.0, body)
        assert acts.now is None and acts.refusal("launch") is None

    run(work())
