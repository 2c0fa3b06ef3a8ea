"""Hosts allocated by Slurm, with a real slurmctld and two slurmd: drain, scancel, a dead node, a crash with a core file, and a clean end."""

import asyncio
import contextlib
import os
import resource
import signal
import sys
import time
from pathlib import Path

import pytest
from conftest import BUILD, scaled
from rodeo.control.processes import kernel
from rodeo.control.processes.host import LaunchSpec
from rodeo.control.processes.hosts.slurm_host import SlurmHost, job_of
from rodeo.control.refused import Refused
from slurm_cluster import MISSING, Cluster

PATIENCE = scaled(6)

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(os.geteuid() != 0, reason="host: slurmd needs root"),
    pytest.mark.skipif(bool(MISSING), reason="Debian packages are missing: " + " ".join(MISSING)),
]


@pytest.fixture(scope="module")
def cluster(place):
    home = place / "slurm"
    home.mkdir()
    cluster = Cluster(home)
    before = {name: os.environ.get(name) for name in ("PATH", "SLURM_CONF")}
    try:
        cluster.open()
        os.environ.update({name: cluster.environment[name] for name in before})
        yield cluster
    finally:
        cluster.close()
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


@contextlib.asynccontextmanager
async def host_of(place, cluster, name, node="n1", **options):
    """A host. At the end all its processes are ended, and the job is released."""
    host = SlurmHost("lab", place / "hosts" / name, name, node, patience=PATIENCE, **options)
    try:
        yield host
    finally:
        for each in await until(lambda: tried(host.list())):
            await host.end(each.name, 0.1)
            await host.forget(each.name)
        await host.close()
        await until(lambda: node not in cluster.said("squeue", "--noheader", "--format=%N"))
        assert_nothing_left(cluster, node)


def assert_nothing_left(cluster, node):
    if cluster.tracker == "proctrack/cgroup":
        assert {name: pids for name, pids in cluster.cgroups().items() if f"slurm_{node}/" in name and pids} == {}


class Answer(list):
    """A list that is true as an answer, even if it is empty."""

    def __bool__(self):
        return True


async def tried(work):
    with contextlib.suppress(Refused):
        return Answer(await work)


async def until(condition, seconds=90):
    deadline = time.monotonic() + scaled(seconds)
    while True:
        found = condition()
        if asyncio.iscoroutine(found):
            found = await found
        if found:
            return found
        assert time.monotonic() < deadline, "the condition did not become true"
        await asyncio.sleep(0.1)


def spec(name, *argv, directory="/tmp", **options):
    return LaunchSpec(
        name=name, argv=list(argv), environment={"PATH": os.environ["PATH"]}, directory=str(directory), **options
    )


async def ended(host, name):
    async def look():
        for each in await tried(host.list()) or ():
            if each.name == name and each.state == "exited":
                return each

    return await until(look)


async def says(host, name, words):
    async def look():
        with contextlib.suppress(Refused):
            return words in await host.tail(name, 20)

    await until(look)


def test_a_real_process_is_launched_on_a_node_asked_and_ended_and_the_next_controller_finds_it(place, cluster):
    (place / "card.toml").write_text(
        '[emulator]\nname = "lab-card"\n[[emulator.card]]\ntype = "felix"\naddress = "e0a1:00:00.0"\nlinks = 1\nelinks_per_link = 2\n'
    )

    async def test():
        async with host_of(place, cluster, "one") as host, host_of(place, cluster, "two", "n2") as other:
            assert await host.list() == [] and cluster.jobs() == []
            launched = await host.launch(
                spec("card", str(BUILD / "rodeo"), "emulate", str(place / "card.toml"), socket="lab-card.emulator")
            )
            await other.launch(spec("plain", "sleep", "1000"))
            assert len(cluster.jobs()) == 2

            async def status():
                with contextlib.suppress(Refused):
                    return await host.ask("card", {"command": "status"}, 20.0)

            assert "trigger" in await until(status)
            await host.close()  # as if the controller had ended
            again = SlurmHost("lab", host.directory, "one", "n1", patience=PATIENCE)
            found = await until(lambda: tried(again.list()))
            assert [(each.name, each.pid, each.state) for each in found] == [("card", launched.pid, "running")]
            assert [each.name for each in await until(lambda: tried(other.list()))] == ["plain"] and len(
                cluster.jobs()
            ) == 2
            await again.signal("card", signal.SIGTERM)
            assert (await ended(again, "card")).exit_status == 0
            await again.close()

    asyncio.run(test())


def test_a_job_in_which_nothing_runs_any_more_is_given_back(place, cluster):
    async def test():
        async with host_of(place, cluster, "idle", idle_s=0.5) as host:
            await host.launch(spec("short", "true"))
            assert (await ended(host, "short")).exit_status == 0
            await host.forget("short")

            async def is_given_back():
                await tried(host.list())
                return cluster.jobs() == []

            await until(is_given_back)
            assert await until(lambda: tried(host.list())) == []
            await host.launch(spec("short", "true"))  # the host gets a new job
            assert (await ended(host, "short")).exit_status == 0

    asyncio.run(test())


def test_acceptance_22_a_drained_node_finishes_what_runs_and_gets_nothing_new(place, cluster):
    async def test():
        try:
            async with host_of(place, cluster, "drained") as host:
                await host.launch(spec("run", "sleep", "1000"))
                cluster.said("scontrol", "update", "nodename=n1", "state=drain", "reason=test")
                await until(lambda: cluster.node_state("n1").startswith("drain"))
                again = SlurmHost("lab", host.directory, "drained", "n1", patience=PATIENCE)
                assert [each.state for each in await until(lambda: tried(again.list()))] == ["running"]
                await again.close()
            assert cluster.jobs() == []
            async with host_of(place, cluster, "drained") as host:
                with pytest.raises(Refused) as refused:
                    await host.launch(spec("run", "sleep", "1000"))
                assert refused.value.code == "control.launch" and "waits" in refused.value.what
                await until(lambda: cluster.jobs() == [])
                assert await until(lambda: tried(host.list())) == []
        finally:
            cluster.said("scontrol", "update", "nodename=n1", "state=resume")
            cluster.until(lambda: cluster.node_state("n1") == "idle")

    asyncio.run(test())


def test_acceptance_22_a_cancelled_job_lets_its_processes_end_and_their_exits_are_known(place, cluster):
    script = "import signal, sys, time\nsignal.signal(15, lambda *_: (print('draining', flush=True), time.sleep(0.5), sys.exit(4)))\nprint('up', flush=True)\nwhile True: time.sleep(0.1)"

    async def test():
        async with host_of(place, cluster, "cancelled") as host:
            await host.launch(spec("orderly", sys.executable, "-c", script))
            await host.launch(
                spec("stray", "sh", "-c", "trap '' TERM; setsid sleep 1000 & trap - TERM; echo up; exec sleep 1000")
            )
            await says(host, "orderly", "up")
            await says(host, "stray", "up")
            number = cluster.jobs()[0][0]
            cluster.said("scancel", number)
            assert (await ended(host, "orderly")).exit_status == 4
            assert (await ended(host, "stray")).signal == signal.SIGTERM
            await until(lambda: cluster.jobs() == [])
            found = await until(lambda: tried(host.list()))
            assert {each.name: (each.exit_status, each.signal) for each in found} == {
                "orderly": (4, None),
                "stray": (None, signal.SIGTERM),
            }
            assert "draining" in await host.tail("orderly", 10)  # the log survives the agent: the disk is shared
            with pytest.raises(Refused) as refused:
                await host.signal("orderly", signal.SIGTERM)
            assert refused.value.code == "control.not_launched"
            if cluster.tracker == "proctrack/cgroup":
                assert not any(cluster.cgroups().values())
                assert kernel.processes_with("RODEO_PROCESS", f"{place}/run:lab@cancelled/stray") == []
            for name in ("orderly", "stray"):
                await host.forget(name)
            assert await until(lambda: tried(host.list())) == []

    asyncio.run(test())


def test_acceptance_22_a_crash_leaves_a_core_file_that_is_named(place, cluster):
    pattern = Path("/proc/sys/kernel/core_pattern").read_text().strip()

    async def test():
        async with host_of(place, cluster, "crash") as host:
            directory = place / "cores"
            directory.mkdir()
            await host.launch(
                spec(
                    "crash",
                    sys.executable,
                    "-c",
                    "import os, time; print('up', flush=True); time.sleep(1000)",
                    directory=directory,
                )
            )
            await says(host, "crash", "up")
            await host.signal("crash", signal.SIGSEGV)
            found = await ended(host, "crash")
            assert (found.exit_status, found.signal) == (None, signal.SIGSEGV)
            if not pattern.startswith("|") and "/" not in pattern and resource.getrlimit(resource.RLIMIT_CORE)[1] != 0:
                assert [Path(found.core)] == list(directory.iterdir())

    asyncio.run(test())


def test_a_slurmctld_that_is_killed_stops_nothing(place, cluster):
    async def test():
        async with host_of(place, cluster, "alone") as host:
            await host.launch(spec("run", "sleep", "1000"))
            cluster.said(
                "scontrol", "update", f"jobid={cluster.jobs()[0][0]}", "comment=noted-by-now"
            )  # slurmctld remembers only saved jobs after a restart
            cluster.until(lambda: b"noted-by-now" in cluster.note())
            cluster.kill("slurmctld")
            try:
                assert [each.state for each in await until(lambda: tried(host.list()))] == ["running"]
                await host.launch(spec("more", "true"))
                assert (await ended(host, "more")).exit_status == 0
                again = SlurmHost("lab", host.directory, "alone", "n1", patience=0.05)
                with pytest.raises(Refused) as refused:  # the agent cannot know where the job is
                    await again.list()
                assert refused.value.code == "control.host_silent"
                await again.close()
            finally:
                cluster.start("slurmctld", "-D", "-f", str(cluster.home / "slurm.conf"))
                cluster.until(lambda: "n1" in cluster.said("squeue", "--noheader", "--format=%N"))
            assert {each.name: each.state for each in await until(lambda: tried(host.list()))} == {
                "run": "running",
                "more": "exited",
            }

    asyncio.run(test())


def test_a_run_on_a_node_is_taken_counted_and_closed(place, cluster):
    from running_room import RunningRoom
    from small_systems import elsewhere, one_card

    file = elsewhere(one_card(place / "s"), name="node", launcher="slurm", address="n1")
    with RunningRoom(file) as room:
        assert cluster.jobs() == []
        room.command("launch")
        assert len(cluster.jobs()) == 1
        room.command("start")
        number = room.document()["run"]["number"]
        room.until(lambda document: (document["numbers"]["events"] or 0) > 20, "events are built")
        room.command("stop")
        row = room.row(number)
        assert (row["state"], row["condition"]) == ("CLOSED", "GOOD"), row
        room.command("close")
        assert room.state == "OFF"
    cluster.until(lambda: cluster.jobs() == [])
    assert_nothing_left(cluster, "n1")


def test_what_ran_on_a_node_that_died_has_ended_and_nobody_saw_how(place, cluster):
    async def test():
        async with host_of(place, cluster, "dead", "n2") as host:
            launched = await host.launch(spec("run", "sleep", "1000"))
            steps = [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit() and is_of_job(entry)]
            assert steps != []
            cluster.kill("n2")
            for pid in (*steps, launched.pid, *kernel.processes_with("RODEO_HOST", "dead")):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            try:
                cluster.said("scontrol", "update", "nodename=n2", "state=down", "reason=dead")
                found = await ended(host, "run")
                assert (found.pid, found.exit_status, found.signal) == (launched.pid, None, None)
            finally:
                cluster.start("n2")
                cluster.until(
                    lambda: (
                        cluster.said("scontrol", "update", "nodename=n2", "state=resume") is not None
                        and cluster.node_state("n2") == "idle"
                    )
                )

    asyncio.run(test())


def is_of_job(entry):
    with contextlib.suppress(OSError):
        return (entry / "cmdline").read_bytes().startswith(b"slurmstepd") and kernel.variable_of(
            entry.name, "SLURM_CONF"
        ) == os.environ["SLURM_CONF"]
    return False


def test_the_most_alive_of_several_jobs_is_ours():
    assert job_of("") is None and job_of("7|COMPLETED|None\nx|RUNNING|None") is None
    assert job_of("7|COMPLETING|None\n8|PENDING|Resources") == ("8", "PENDING", "Resources")
    assert job_of("7|PENDING|Resources\n6|RUNNING|None\n9|COMPLETING|None") == ("6", "RUNNING", "None")
    assert job_of("7|PENDING|a|b") == ("7", "PENDING", "a|b")
