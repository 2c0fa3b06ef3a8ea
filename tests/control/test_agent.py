"""The agent and the local host with real processes: start, end, logs, remaining processes, and the state that the next agent takes over after a kill."""

import asyncio
import contextlib
import json
import os
import resource
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "python"))

from rodeo.control import paths  # noqa: E402
from rodeo.control.processes import agent_logs, file_modes, json_lines, kernel  # noqa: E402
from rodeo.control.processes.agent import SOCKET  # noqa: E402
from rodeo.control.processes.host import LaunchSpec  # noqa: E402
from rodeo.control.processes.hosts.local import LocalHost  # noqa: E402
from rodeo.control.refused import Refused  # noqa: E402

SCALE = float(os.environ.get("RODEO_TEST_TIMEOUT_SCALE", "1"))
PATIENCE = 6 * SCALE  # long, so that a loaded machine causes no failure


@pytest.fixture
def runtime(monkeypatch):
    directory = tempfile.mkdtemp(prefix="rc-", dir="/tmp")
    monkeypatch.setenv("RODEO_RUNTIME_DIR", directory)
    yield Path(directory)
    shutil.rmtree(directory, ignore_errors=True)


@contextlib.asynccontextmanager
async def host_of(directory, system="lab"):
    """A local host. At the end all its processes are ended, and its agent ends."""
    host = LocalHost(system, directory / "agent", patience=PATIENCE, leash_s=30 * SCALE)
    try:
        yield host
    finally:
        for process in await host.list():
            await host.end(process.name, 0.1)
            await host.forget(process.name)
        await host.close()
        await until(lambda: not paths.is_held(f"{paths.runtime_socket(system + SOCKET)}.lock"))


async def until(condition, seconds=60):
    deadline = time.monotonic() + seconds * SCALE
    while True:
        found = condition()
        if asyncio.iscoroutine(found):
            found = await found
        if found:
            return found
        assert time.monotonic() < deadline, "the condition did not become true"
        await asyncio.sleep(0.02)


def spec(name, *argv, directory=None, **options):
    return LaunchSpec(
        name=name,
        argv=list(argv),
        environment={"PATH": os.environ["PATH"]},
        directory=str(directory or os.environ["RODEO_RUNTIME_DIR"]),
        **options,
    )


async def process(host, name):
    return next((each for each in await host.list() if each.name == name), None)


async def ended(host, name):
    async def look():
        found = await process(host, name)
        return found if found is not None and found.state == "exited" else None

    return await until(look)


def agent_pid(runtime):
    with contextlib.suppress(OSError, ValueError, IndexError):
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit():
                with contextlib.suppress(OSError):
                    words = (entry / "cmdline").read_bytes().split(b"\0")
                    environment = (entry / "environ").read_bytes()
                    if (
                        b"rodeo.control.processes.agent" in words
                        and f"RODEO_RUNTIME_DIR={runtime}".encode() in environment
                    ):
                        return int(entry.name)
    return None


def children_of(parent):
    return [
        int(entry.name)
        for entry in Path("/proc").iterdir()
        if entry.name.isdigit() and (found := kernel.seen(int(entry.name))) is not None and found.parent == parent
    ]


def run(coroutine):
    return asyncio.run(coroutine)


def test_a_process_is_launched_listed_and_its_exit_is_known(runtime):
    async def test():
        async with host_of(runtime) as host:
            launched = await host.launch(
                spec("one", "sh", "-c", "echo hello; exit 3", tag={"class": "x"}, socket="one.control")
            )
            assert launched.pid > 0 and launched.started_ns > 0
            found = await ended(host, "one")
            assert (found.exit_status, found.signal, found.core, found.tag, found.socket) == (
                3,
                None,
                "",
                {"class": "x"},
                "one.control",
            )
            assert await host.tail("one", 10) == ["hello"]
            await host.forget("one")
            assert await process(host, "one") is None

    run(test())


def test_a_process_gets_its_environment_and_no_more(runtime, monkeypatch):
    monkeypatch.setenv("SECRET_OF_THE_CONTROLLER", "1")

    async def test():
        async with host_of(runtime) as host:
            await host.launch(spec("env", "env"))
            await ended(host, "env")
            said = await host.tail("env", 100)
            assert f"RODEO_PROCESS={runtime}:lab@local/env" in said and not any(
                line.startswith("SECRET") for line in said
            )

    run(test())


def test_what_cannot_be_launched_is_refused_by_name(runtime):
    async def test():
        async with host_of(runtime) as host:
            for bad, code in (
                (spec("x", "/no/such/program"), "control.launch"),
                (spec("../x", "true"), "control.argument"),
                (spec("y", "true", directory="/no/such/place"), "control.launch"),
                (LaunchSpec("z", [], {}, "/tmp"), "control.argument"),
            ):
                with pytest.raises(Refused) as refused:
                    await host.launch(bad)
                assert refused.value.code == code
            await host.launch(spec("twice", "sleep", "1000"))
            with pytest.raises(Refused) as refused:
                await host.launch(spec("twice", "sleep", "1000"))
            assert refused.value.code == "control.launched"
            with pytest.raises(Refused) as refused:
                await host.forget("twice")
            assert refused.value.code == "control.runs"

    run(test())


def test_a_signal_and_an_end_by_force_are_told_apart_from_an_exit(runtime):
    async def test():
        async with host_of(runtime) as host:
            await host.launch(spec("killed", "sleep", "1000"))
            with pytest.raises(Refused) as refused:
                await host.signal("killed", 1000)
            assert refused.value.code == "control.argument"
            await host.signal("killed", signal.SIGKILL)
            found = await ended(host, "killed")
            assert (found.exit_status, found.signal, found.core) == (None, signal.SIGKILL, "")
            with pytest.raises(Refused):
                await host.signal("killed", signal.SIGTERM)
            await host.launch(
                spec(
                    "stubborn",
                    sys.executable,
                    "-c",
                    "import signal,time; signal.signal(15, signal.SIG_IGN); print('up', flush=True); time.sleep(1000)",
                )
            )

            async def is_up():
                return await host.tail("stubborn", 1) == ["up"]

            await until(is_up)
            assert await host.request("end", name="stubborn", grace_s=0.1, timeout_s=60) == []
            assert (await ended(host, "stubborn")).signal == signal.SIGKILL
            await host.launch(spec("stopped", "sleep", "1000"))
            await host.signal("stopped", signal.SIGSTOP)
            await host.end("stopped", 60 * SCALE)
            assert (await ended(host, "stopped")).signal == signal.SIGTERM

    run(test())


def test_what_a_process_started_and_left_is_found_and_ended_with_it(runtime):
    async def test():
        async with host_of(runtime) as host:
            await host.launch(spec("parent", "sh", "-c", "setsid sleep 1000 & exec sleep 1001"))

            async def both():
                return len(kernel.processes_with("RODEO_PROCESS", f"{runtime}:lab@local/parent")) == 2

            await until(both)
            await host.signal("parent", signal.SIGKILL)
            found = await ended(host, "parent")
            assert len(found.left) == 1
            with pytest.raises(Refused) as refused:
                await host.forget("parent")
            assert refused.value.code == "control.runs"
            await host.end("parent", 5.0)
            await until(lambda: not kernel.processes_with("RODEO_PROCESS", f"{runtime}:lab@local/parent"))
            await host.forget("parent")

    run(test())


def test_an_orphan_without_the_mark_is_found_all_the_same(runtime):
    async def test():
        async with host_of(runtime) as host:
            script = "import os, time\nif os.fork() == 0:\n os.setsid()\n os.execve('/bin/sleep', ['sleep', '1000'], {})\nprint('up', flush=True)\ntime.sleep(1000)"
            await host.launch(spec("parent", sys.executable, "-c", script))

            async def is_up():
                return await host.tail("parent", 1) == ["up"]

            await until(is_up)
            parent = (await process(host, "parent")).pid
            await until(lambda: any(kernel.variable_of(pid, "PATH") is None for pid in children_of(parent)))
            await host.signal("parent", signal.SIGKILL)
            found = await ended(host, "parent")
            assert len(found.left) == 1 and kernel.variable_of(found.left[0], "PATH") is None
            with pytest.raises(Refused) as refused:
                await host.forget("parent")
            assert refused.value.code == "control.runs"
            assert await host.request("end", name="parent", grace_s=60 * SCALE, timeout_s=120) == []
            assert kernel.seen(found.left[0]) is None

    run(test())


def test_where_a_core_is_said(runtime, tmp_path):
    pattern = Path("/proc/sys/kernel/core_pattern").read_text().strip()

    async def test():
        async with host_of(runtime) as host:
            for name, core in (("with", True), ("without", False)):
                directory = tmp_path / name
                directory.mkdir()
                await host.launch(
                    spec(
                        name,
                        sys.executable,
                        "-c",
                        "import os, time; print('up', flush=True); time.sleep(1000)",
                        directory=directory,
                        core=core,
                    )
                )

                async def is_up():
                    return await host.tail(name, 1) == ["up"]

                await until(is_up)
                await host.signal(name, signal.SIGSEGV)
                found = await ended(host, name)
                assert (found.exit_status, found.signal) == (None, signal.SIGSEGV)
                if pattern.startswith("|"):
                    assert found.core in ("", f"given to {pattern[1:].split()[0]}")
                elif not core or resource.getrlimit(resource.RLIMIT_CORE)[1] == 0:
                    assert found.core == "" and not list(directory.iterdir())
                elif "/" not in pattern:
                    assert [Path(found.core)] == list(directory.iterdir()) and Path(found.core).stat().st_size > 0

    run(test())


def test_a_flood_of_words_stops_nobody_and_fills_no_disk(runtime):
    async def test():
        async with host_of(runtime) as host:
            size = agent_logs.LONGEST_LOG + (1 << 20)
            await host.launch(
                spec("flood", "sh", "-c", f"yes flood | head -c {size}; echo; echo over; exec sleep 1000")
            )
            log = runtime / "agent" / "logs" / "flood.log"

            async def over():
                return (
                    await host.tail("flood", 1) == ["over"] or (runtime / "agent" / "logs" / "flood.log.1").exists()
                ) and log.stat().st_size < agent_logs.LONGEST_LOG // 2

            await until(over)
            assert (runtime / "agent" / "logs" / "flood.log.1").stat().st_size == agent_logs.KEPT
            assert (await process(host, "flood")).state == "running"

    run(test())


def test_several_controllers_are_served_and_one_that_waits_holds_up_nobody(runtime):
    async def test():
        async with host_of(runtime) as host:
            directory = runtime / "deaf"
            await host.launch(
                spec(
                    "deaf",
                    sys.executable,
                    "-c",
                    f"import socket, time; s = socket.socket(socket.AF_UNIX); s.bind('{directory}'); s.listen(99); print('up', flush=True); time.sleep(1000)",
                    socket="deaf",
                )
            )

            async def is_up():
                return await host.tail("deaf", 1) == ["up"]

            await until(is_up)
            others = [LocalHost("lab", runtime / "agent", patience=PATIENCE) for _ in range(3)]
            waiting = [
                asyncio.ensure_future(host.request("ask", name="deaf", request={}, within_s=500, timeout_s=500))
                for _ in range(20)
            ]
            answers = await asyncio.gather(*(other.request("list") for other in (*others, host) for _ in range(100)))
            assert len(answers) == 400 and all([each["name"] for each in answer] == ["deaf"] for answer in answers)
            assert not any(task.done() for task in waiting)
            for other in others:
                await other.close()  # a process runs, so the agent stays; an idle agent ends with its last client
            await host.signal("deaf", signal.SIGKILL)
            for found in await asyncio.gather(*waiting, return_exceptions=True):
                assert isinstance(found, Refused) and found.code == "control.unreachable"

    run(test())


def test_the_error_that_ended_a_process_is_told_with_its_exit_status(runtime):
    async def test():
        async with host_of(runtime) as host:
            for name, status in (("bad", 4), ("well", 0)):
                await host.launch(
                    spec(
                        name, "sh", "-c", f"echo 'error[card.gone]: the card is away\033[2J'; echo more; exit {status}"
                    )
                )
            assert (await ended(host, "bad")).said == "error[card.gone]: the card is away?[2J"
            assert (await ended(host, "well")).said == ""

    run(test())


def test_what_ran_before_the_machine_was_started_anew_is_not_taken_for_running(runtime):
    (runtime / "agent").mkdir()
    one = {
        "name": "one",
        "pid": os.getpid(),
        "start_ticks": kernel.seen(os.getpid()).start_ticks,
        "started_ns": 1,
        "directory": "/",
        "log": "/x",
        "socket": "",
        "tag": {},
        "exited": False,
        "exit_status": None,
        "signal": None,
        "core": "",
        "cpu_seconds": None,
    }
    (runtime / "agent" / "agent.json").write_text(json.dumps({"boot": "another", "processes": [one]}))

    async def test():
        async with host_of(runtime) as host:
            assert [(each.name, each.state, each.exit_status, each.signal) for each in await host.list()] == [
                ("one", "exited", None, None)
            ]

    run(test())


def test_an_agent_of_another_runtime_directory_keeps_its_own_processes(runtime):
    async def test():
        async with host_of(runtime) as host:
            await host.launch(spec("mine", "sleep", "1000"))
            (runtime / "other").mkdir(mode=0o700)
            done = await asyncio.to_thread(
                subprocess.run,
                [
                    sys.executable,
                    "-B",
                    "-m",
                    "rodeo.control.processes.agent",
                    "--system",
                    "lab",
                    "--directory",
                    str(runtime / "agent"),
                ],
                capture_output=True,
                text=True,
                env={**os.environ, "PYTHONPATH": str(ROOT / "python"), "RODEO_RUNTIME_DIR": str(runtime / "other")},
                timeout=60 * SCALE,
            )
            assert done.returncode == 5 and "another RODEO_RUNTIME_DIR" in done.stderr
            assert list((runtime / "other").iterdir()) == []
            assert (await process(host, "mine")).state == "running"

    run(test())


def test_processes_outlive_a_killed_agent_and_the_next_one_finds_them(runtime):
    async def test():
        async with host_of(runtime) as host:
            before = await host.launch(spec("long", "sh", "-c", "echo begun; exec sleep 1000", tag={"launch": 7}))
            await host.launch(spec("short", "false"))
            await ended(host, "short")
            first = agent_pid(runtime)
            os.kill(first, signal.SIGKILL)
            await until(lambda: kernel.seen(first) is None)

            async def again():
                with contextlib.suppress(Refused):
                    return await process(host, "long")

            found = await until(again)
            assert (found.pid, found.state, found.tag, found.started_ns) == (
                before.pid,
                "running",
                {"launch": 7},
                before.started_ns,
            )
            assert agent_pid(runtime) != first
            gone = await process(host, "short")
            assert (gone.state, gone.exit_status) == ("exited", 1)
            await host.signal("long", signal.SIGTERM)
            found = await ended(host, "long")
            assert (found.exit_status, found.signal) == (None, None)  # the agent of "long" was killed

    run(test())


def test_a_launch_that_the_killed_agent_had_not_noted_is_found_by_its_mark(runtime):
    async def test():
        async with host_of(runtime) as host:
            before = await host.launch(spec("noted", "sleep", "1000"))
            first = agent_pid(runtime)
            os.kill(first, signal.SIGKILL)
            await until(lambda: kernel.seen(first) is None)
            (runtime / "agent" / "agent.json").write_text("{broken")

            async def again():
                with contextlib.suppress(Refused):
                    return await process(host, "noted")

            assert (await until(again)).pid == before.pid

    run(test())


def test_an_agent_with_nothing_to_run_leaves_and_one_with_something_stays(runtime):
    async def test():
        async with host_of(runtime) as host:
            await host.launch(spec("stay", "sleep", "1000"))
            pid = agent_pid(runtime)
            await host.close()
            again = LocalHost("lab", runtime / "agent", patience=PATIENCE)
            assert [each.name for each in await again.list()] == ["stay"]
            assert agent_pid(runtime) == pid
            await again.close()

    run(test())


def test_an_agent_that_is_to_end_with_its_controller_leaves_nothing(runtime):
    async def test():
        host = LocalHost("lab", runtime / "agent", patience=PATIENCE, end_after_s=0.5)
        await host.launch(spec("alone", "sleep", "1000"))
        await host.close()
        await until(
            lambda: (
                not kernel.processes_with("RODEO_PROCESS", f"{runtime}:lab@local/alone")
                and not paths.is_held(f"{runtime}/lab.agent.lock")
            )
        )

    run(test())


def test_an_agent_of_a_job_asks_all_to_end_and_stays_until_they_have(runtime):
    script = (
        "import signal, sys, time\nsignal.signal(10, lambda *_: sys.exit(4))\nsignal.signal(15, lambda *_: print('asked', flush=True))\nprint('up', flush=True)\n"
        "while True: time.sleep(0.1)"
    )

    async def test():
        host = LocalHost("lab", runtime / "agent", patience=PATIENCE)
        host.options.append("--to-the-end")
        await host.launch(spec("orderly", sys.executable, "-c", script))

        async def is_up():
            return await host.tail("orderly", 1) == ["up"]

        await until(is_up)
        os.kill(agent_pid(runtime), signal.SIGTERM)

        async def is_leaving():
            with contextlib.suppress(Refused):
                return await host.tail("orderly", 1) == ["asked"]

        await until(is_leaving)
        with pytest.raises(Refused) as refused:
            await host.launch(spec("late", "true"))
        assert refused.value.code == "control.agent_leaves"
        await host.signal("orderly", signal.SIGUSR1)
        await until(lambda: not paths.is_held(f"{runtime}/lab.agent.lock"))
        note = json.loads((runtime / "agent" / "agent.json").read_text())
        assert [(each["name"], each["exited"], each["exit_status"]) for each in note["processes"]] == [
            ("orderly", True, 4)
        ]
        await host.close()

    run(test())


def test_any_bytes_are_answered(runtime):
    async def test():
        async with host_of(runtime) as host:
            await host.list()
            reader, writer = await asyncio.open_unix_connection(str(runtime / ("lab" + SOCKET)), limit=1 << 20)
            for line in (
                b"nonsense",
                b"[1]",
                b'{"do": "fly", "id": 1}',
                b'{"do": "launch", "id": 2}',
                b'{"do": "tail", "name": {}, "lines": [], "id": 3}',
                b"[" * 100000,
            ):
                writer.write(line + b"\n")
                answer = json.loads(await asyncio.wait_for(reader.readline(), 60 * SCALE))
                assert answer["ok"] is False and answer["code"], line[:40]
            writer.close()
            assert await host.list() == []

    run(test())


def test_the_control_socket_of_a_real_process_is_asked_through_the_agent_and_straight(runtime, tmp_path):
    command = Path(os.environ.get("RODEO_BUILD_DIR", ROOT / "build")) / "rodeo"
    (tmp_path / "card.toml").write_text(
        '[emulator]\nname = "lab-card"\n[[emulator.card]]\ntype = "felix"\naddress = "e0a1:00:00.0"\nlinks = 1\nelinks_per_link = 2\n'
    )

    async def test():
        async with host_of(runtime) as host:
            environment = {"PATH": os.environ["PATH"], "RODEO_RUNTIME_DIR": str(runtime)}
            await host.launch(
                LaunchSpec(
                    "card",
                    [str(command), "emulate", str(tmp_path / "card.toml")],
                    environment,
                    str(tmp_path),
                    socket="lab-card.emulator",
                )
            )

            async def status(ask):
                with contextlib.suppress(Refused):
                    return await ask()

            await until(lambda: status(lambda: host.ask("card", {"command": "status"}, 20.0)))
            relayed = await host.request("ask", name="card", request={"command": "status"}, within_s=20.0)
            assert "trigger" in relayed
            with pytest.raises(Refused) as refused:
                await host.ask("card", {"command": "nonsense"}, 20.0)
            assert refused.value.code
            await host.signal("card", signal.SIGSTOP)
            with pytest.raises(Refused) as refused:
                await host.ask("card", {"command": "status"}, 0.5)
            assert refused.value.code == "control.no_answer"
            await host.signal("card", signal.SIGCONT)
            await until(lambda: status(lambda: host.ask("card", {"command": "status"}, 20.0)))
            await host.signal("card", signal.SIGTERM)
            assert (await ended(host, "card")).exit_status == 0
            with pytest.raises(Refused) as refused:
                await host.ask("card", {"command": "status"}, 5.0)
            assert refused.value.code == "control.unreachable"

    run(test())


def test_files_are_hashed_read_and_disks_looked_at(runtime, tmp_path):
    (tmp_path / "a").write_bytes(b"abc")

    async def test():
        async with host_of(runtime) as host:
            assert await host.sha256([tmp_path / "a", tmp_path / "none"]) == {
                str(tmp_path / "a"): "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
            }
            assert await host.read(tmp_path / "a", 2) == "bc"
            os.mkfifo(tmp_path / "pipe")
            assert await host.sha256([tmp_path / "pipe", "/dev/zero"]) == {}
            for none in (tmp_path / "none", tmp_path / "pipe", "/dev/zero"):
                with pytest.raises(Refused) as refused:
                    await host.read(none, 2)
                assert refused.value.code == "control.file"
            disk = await host.disk(tmp_path)
            assert 0 < disk["free"] <= disk["total"]
            with pytest.raises(Refused):
                await host.disk("/no/such/place")

    run(test())


def test_a_program_that_writes_lines_of_json_without_bounds_fills_no_disk(runtime):
    async def test():
        async with host_of(runtime) as host:
            size = agent_logs.LONGEST_LOG + (1 << 20)
            await host.launch(
                spec("writer", "sh", "-c", f"yes '{{}}' | head -c {size} >> $RODEO_LOG_JSON; exec sleep 1000")
            )
            lines = runtime / "agent" / "logs" / "writer.jsonl"
            await until(lambda: Path(f"{lines}.1").exists() and lines.stat().st_size < agent_logs.LONGEST_LOG // 2)
            assert Path(f"{lines}.1").stat().st_size <= agent_logs.KEPT
            await host.end("writer", 1.0)

    run(test())


def test_log_lines_of_all_processes_are_told_as_records_and_how_the_host_is(runtime):
    from rodeo.control.processes.log_records import Wanted

    async def test():
        async with host_of(runtime) as host:
            json_line = '{"time_ns": 5, "level": "warning", "audience": "operator", "run": 7, "message": "from inside"}'
            await host.launch(
                spec("talker", "sh", "-c", f"echo '{json_line}' >> $RODEO_LOG_JSON; echo to people; exec sleep 1000")
            )
            await until(lambda: has(host, "talker", "to people"))
            found = await host.records(["talker", "agent", "nobody"], Wanted())
            assert {each["process"] for each in found} == {"talker", "agent"}
            inside = next(each for each in found if each["message"] == "from inside")
            assert (inside["process"], inside["run"], inside["level"]) == ("talker", 7, "warning")
            assert any(each["process"] == "agent" and each["message"].startswith("talker launched") for each in found)
            assert [each["message"] for each in await host.records(["talker"], Wanted(run=7))] == ["from inside"]
            await host.end("talker", 1.0)
            await host.forget("talker")
            assert [each["message"] for each in await host.records(["talker"], Wanted(level="warning"))] == [
                "from inside"
            ], "its lines are kept after its end"
            before = time.time_ns()
            health = await host.health()
            assert before <= health["time_ns"] <= time.time_ns() and isinstance(health["temperatures"], dict)

    async def has(host, name, line):
        return line in await host.tail(name, 10)

    run(test())


def test_a_second_agent_of_a_system_is_refused(runtime):
    async def test():
        async with host_of(runtime) as host:
            await host.list()
            done = await asyncio.to_thread(
                subprocess.run,
                [
                    sys.executable,
                    "-B",
                    "-m",
                    "rodeo.control.processes.agent",
                    "--system",
                    "lab",
                    "--directory",
                    str(runtime / "other"),
                ],
                capture_output=True,
                text=True,
                env={**os.environ, "PYTHONPATH": str(ROOT / "python")},
                timeout=60 * SCALE,
            )
            assert done.returncode == 5 and "runs on this host already" in done.stderr

    run(test())


def test_two_hosts_of_one_machine_keep_their_processes_apart(runtime):
    async def test():
        async with host_of(runtime) as one:
            await one.launch(spec("p", "sleep", "1000"))
            other = LocalHost("lab", runtime / "other", name="other", patience=PATIENCE)
            assert await other.list() == []
            await other.launch(spec("p", "true"))
            assert (await ended(other, "p")).exit_status == 0
            assert (await process(one, "p")).state == "running"
            await other.forget("p")
            await other.close()

    run(test())


def test_a_log_stays_small_and_says_what_was_left_out(tmp_path, monkeypatch):
    monkeypatch.setattr(agent_logs, "LONGEST_LOG", 1000)
    monkeypatch.setattr(agent_logs, "KEPT", 100)
    log = tmp_path / "x.log"
    log.write_text("".join(f"line {number:04}\n" for number in range(200)))
    assert agent_logs.bound(log)
    assert (tmp_path / "x.log.1").read_text().endswith("line 0199\n")
    assert agent_logs.tail(log, 5) == [
        "... 1900 bytes of this log were left out; the 100 bytes before this line are in x.log.1"
    ]
    assert not agent_logs.bound(log)
    assert agent_logs.tail(tmp_path / "none", 5) == [] and agent_logs.tail(log, 0) == []


def test_a_tail_is_searched_without_regard_to_case(tmp_path):
    (tmp_path / "x.log").write_text("One\ntwo\nONE more\n")
    assert agent_logs.tail(tmp_path / "x.log", 10, "one") == ["One", "ONE more"]
    assert agent_logs.tail(tmp_path / "x.log", 1) == ["ONE more"]


def test_nobody_listening_and_no_json_are_refused_by_name(tmp_path):
    directory = tempfile.mkdtemp(prefix="rc-", dir="/tmp")
    answers = iter((b"nonsense\n", b'{"ok": 1}\n', b"", b'{"ok": false, "code": "a.b", "what": "no"}\n'))

    async def talk(reader, writer):
        await reader.readline()
        writer.write(next(answers))
        writer.close()

    async def test():
        path = f"{directory}/s"
        codes = []
        server = await asyncio.start_unix_server(talk, path)
        for _ in range(4):
            with pytest.raises(Refused) as refused:
                await json_lines.ask(path, {}, 30 * SCALE)
            codes.append(refused.value.code)
        server.close()
        with pytest.raises(Refused) as refused:
            await json_lines.ask(f"{directory}/none", {}, 30 * SCALE)
        return [*codes, refused.value.code]

    try:
        assert run(test()) == [
            "control.bad_answer",
            "control.bad_answer",
            "control.unreachable",
            "a.b",
            "control.unreachable",
        ]
    finally:
        shutil.rmtree(directory)


def test_the_agent_of_another_directory_is_not_taken_over_while_it_runs_something(runtime):
    """The new system file has another control.directory; the processes of the old agent write reports and data to the old one."""

    async def work():
        async with host_of(runtime) as first:
            await first.open()
            await first.launch(spec("sleeper", "sleep", "1000"))
            other = LocalHost("lab", runtime / "other", patience=PATIENCE, leash_s=30 * SCALE)
            with pytest.raises(Refused) as refused:
                await other.open()
            assert (
                refused.value.code == "control.agent_runs"
                and str(runtime / "agent") in refused.value.what
                and "sleeper" in refused.value.what
            )
            await first.end("sleeper", 0.1)
            await first.forget("sleeper")
            other.try_again()
            await other.open()
            assert (await other.request("hello"))["directory"] == str(runtime / "other")
            await other.close()

    asyncio.run(work())


def test_an_agent_and_what_it_starts_have_the_umask_of_the_room(runtime, monkeypatch):
    async def work():
        async with host_of(runtime) as host:
            await host.open()
            await host.launch(spec("writer", "sh", "-c", "umask > mask; touch data; mkdir folder", directory=runtime))
            await ended(host, "writer")

    monkeypatch.setenv(file_modes.VARIABLE, "0027")
    asyncio.run(work())
    assert (runtime / "mask").read_text().strip() == "0027"
    said = {path.relative_to(runtime).as_posix(): stat.S_IMODE(path.stat().st_mode) for path in runtime.rglob("*")}
    assert (
        said["data"] == said["agent/agent.json"] == said["agent/logs/writer.log"] == 0o640
        and said["folder"] == said["agent/logs"] == 0o750
    )
