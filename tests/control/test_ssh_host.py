"""A host reached by ssh, with a real sshd on a free port: launched processes survive the connection, the server and the controller."""

import asyncio
import contextlib
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest
from conftest import BUILD, scaled
from rodeo.control import paths
from rodeo.control.processes import kernel
from rodeo.control.processes.host import LaunchSpec
from rodeo.control.processes.hosts.ssh_host import SshHost
from rodeo.control.refused import Refused

SSHD = shutil.which("sshd", path=os.environ["PATH"] + ":/usr/sbin:/sbin")
PATIENCE = scaled(6)

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        SSHD is None or shutil.which("ssh-keygen") is None,
        reason="Debian packages are missing: openssh-server openssh-client",
    ),
]


class Server:
    """sshd of this user in a directory; it accepts only the key of this test."""

    def __init__(self, directory):
        self.directory, self.process, self.port = directory, None, None
        for name in ("host", "user"):
            subprocess.run(
                ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(directory / name)],
                check=True,
                timeout=scaled(60),
                stdin=subprocess.DEVNULL,
            )
        shutil.copy(directory / "user.pub", directory / "authorized")
        with contextlib.suppress(
            PermissionError
        ):  # only root's sshd needs this directory; without an init process it does not exist
            Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)

    def start(self):
        self.port = self.port or free_port()
        (self.directory / "sshd.conf").write_text(
            f"Port {self.port}\nListenAddress 127.0.0.1\nHostKey {self.directory}/host\nAuthorizedKeysFile {self.directory}/authorized\nPidFile none\nStrictModes no\n"
            "PasswordAuthentication no\nKbdInteractiveAuthentication no\nUsePAM no\nPermitRootLogin prohibit-password\nPrintMotd no\n"
        )
        with open(self.directory / "sshd.log", "ab") as log:
            self.process = subprocess.Popen(
                [SSHD, "-D", "-e", "-f", str(self.directory / "sshd.conf")],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        (self.directory / "known").write_text(f"[127.0.0.1]:{self.port} {(self.directory / 'host.pub').read_text()}")
        (self.directory / "ssh.conf").write_text(
            f"Host far\n  HostName 127.0.0.1\n  Port {self.port}\n  User {user()}\n  IdentityFile {self.directory}/user\n  IdentitiesOnly yes\n"
            f"  UserKnownHostsFile {self.directory}/known\n  GlobalKnownHostsFile /dev/null\n  StrictHostKeyChecking yes\n"
        )
        deadline = time.monotonic() + scaled(60)
        while True:
            with (
                contextlib.suppress(OSError),
                socket.create_connection(("127.0.0.1", self.port), timeout=scaled(5)) as one,
            ):
                if one.recv(4) == b"SSH-":
                    return
            assert self.process.poll() is None and time.monotonic() < deadline, (
                self.directory / "sshd.log"
            ).read_text()
            time.sleep(0.05)

    def sessions(self):
        """Pids of the server's processes, one or two per connection."""
        return [
            int(entry.name)
            for entry in Path("/proc").iterdir()
            if entry.name.isdigit()
            and (found := kernel.seen(int(entry.name))) is not None
            and self.process.pid in (found.parent, *parents_of(found.parent))
        ]

    def stop(self):
        """Stops the server and all its connections."""
        for pid in (*self.sessions(), self.process.pid):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.process.wait(timeout=scaled(60))

    def close(self):
        if self.process is not None and self.process.poll() is None:
            self.stop()


def parents_of(pid):
    found = kernel.seen(pid)
    return (found.parent,) if found is not None else ()


def user():
    import pwd

    return pwd.getpwuid(os.geteuid()).pw_name


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


@pytest.fixture
def server(monkeypatch):
    directory = Path(tempfile.mkdtemp(prefix="rc-", dir="/tmp"))
    (directory / "run").mkdir(mode=0o700)
    monkeypatch.setenv("RODEO_RUNTIME_DIR", str(directory / "run"))
    server = Server(directory)
    monkeypatch.setenv("RODEO_SSH", f"ssh -F {directory}/ssh.conf")
    try:
        server.start()
        yield server
    finally:
        server.close()
        shutil.rmtree(directory, ignore_errors=True)


@contextlib.asynccontextmanager
async def host_of(server):
    """A host. At the end all its processes are ended, and its agent has ended."""
    host = SshHost("lab", server.directory / "agent", "node", "far", patience=PATIENCE)
    try:
        yield host
    finally:
        for each in await until(lambda: tried(host.list())):
            await host.end(each.name, 0.1)
            await host.forget(each.name)
        await host.close()
        await until(lambda: not paths.is_held(server.directory / "run" / "lab.node.agent.lock"))


async def tried(work):
    """A list that contains the answer, because an empty list is an answer, too."""
    with contextlib.suppress(Refused):
        return Answer(await work)


class Answer(list):
    def __bool__(self):
        return True


async def until(condition, seconds=60):
    deadline = time.monotonic() + scaled(seconds)
    while True:
        found = condition()
        if asyncio.iscoroutine(found):
            found = await found
        if found:
            return found
        assert time.monotonic() < deadline, "the condition did not become true"
        await asyncio.sleep(0.05)


def spec(name, *argv, **options):
    return LaunchSpec(name=name, argv=list(argv), environment={"PATH": os.environ["PATH"]}, directory="/tmp", **options)


async def process(host, name):
    return next(each for each in await host.list() if each.name == name)


async def ended(host, name):
    async def look():
        found = await process(host, name)
        return found if found.state == "exited" else None

    return await until(look)


def test_a_real_process_is_launched_asked_and_ended_over_ssh(server):
    (server.directory / "card.toml").write_text(
        '[emulator]\nname = "lab-card"\n[[emulator.card]]\ntype = "felix"\naddress = "e0a1:00:00.0"\nlinks = 1\nelinks_per_link = 2\n'
    )

    async def test():
        async with host_of(server) as host:
            assert await host.list() == []
            await host.launch(
                spec(
                    "card",
                    str(BUILD / "rodeo"),
                    "emulate",
                    str(server.directory / "card.toml"),
                    socket="lab-card.emulator",
                )
            )

            async def status():
                with contextlib.suppress(Refused):
                    return await host.ask("card", {"command": "status"}, 20.0)

            assert "trigger" in await until(status)
            await host.signal("card", signal.SIGTERM)
            assert (await ended(host, "card")).exit_status == 0
            assert await host.tail("card", 5) != []

    asyncio.run(test())


def test_processes_outlive_the_connection_and_the_server(server):
    async def test():
        async with host_of(server) as host:
            before = await host.launch(spec("long", "sleep", "1000", tag={"launch": 7}))
            server.stop()
            assert kernel.seen(before.pid) is not None

            async def is_silent():
                try:
                    await host.list()
                except Refused as refused:
                    return refused.code

            assert await until(is_silent) == "control.host_silent"
            server.start()
            found = (await until(lambda: tried(host.list())))[0]
            assert (found.pid, found.state, found.tag) == (before.pid, "running", {"launch": 7})
            await host.signal("long", signal.SIGTERM)
            assert (await ended(host, "long")).signal == signal.SIGTERM  # the agent has started it

    asyncio.run(test())


def test_processes_outlive_the_controller_and_the_next_one_finds_them(server):
    async def test():
        async with host_of(server) as host:
            before = await host.launch(spec("long", "sleep", "1000"))
            await host.close()
            assert kernel.seen(before.pid) is not None
            found = await until(lambda: tried(host.list()))
            assert [(each.name, each.pid, each.state) for each in found] == [("long", before.pid, "running")]

    asyncio.run(test())


def test_a_host_that_is_not_reached_says_why_and_refuses_no_controller(server, monkeypatch):
    async def test():
        stranger = server.directory / "stranger"
        subprocess.run(
            ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(stranger)],
            check=True,
            timeout=scaled(60),
            stdin=subprocess.DEVNULL,
        )
        monkeypatch.setenv(
            "RODEO_SSH",
            f"ssh -F {server.directory}/ssh.conf -i {stranger} -o IdentityFile={stranger} -o User=nobody-of-this-name",
        )
        host = SshHost("lab", server.directory / "agent", "node", "far", patience=PATIENCE)
        await host.open()
        with pytest.raises(Refused) as refused:
            await host.list()
        assert refused.value.code == "control.host_silent" and "ermission denied" in refused.value.what
        await host.close()
        monkeypatch.setenv("RODEO_SSH", str(server.directory / "no such command").replace(" ", "-"))
        host = SshHost("lab", server.directory / "agent", "node", "far", patience=PATIENCE)
        await host.open()
        with pytest.raises(Refused) as refused:
            await host.list()
        assert refused.value.code == "control.launcher"
        await host.close()

    asyncio.run(test())


def test_what_a_login_writes_first_is_passed_over(server):
    async def test():
        async with host_of(server) as host:
            way = await host.way()
            noisy = [*way[:-1], "echo welcome; echo '{'; " + way[-1]]

            async def loud():
                return noisy

            host.way = loud
            assert await host.list() == []
            await host.close()

    asyncio.run(test())


def test_a_run_over_ssh_is_taken_counted_and_closed(server):
    from running_room import RunningRoom
    from small_systems import elsewhere, one_card

    file = elsewhere(one_card(server.directory / "s"), name="node", launcher="ssh", address="far")
    with RunningRoom(file) as room:
        room.command("launch")
        assert {each["host"] for each in room.document()["processes"]} == {"node"}
        room.command("start")
        room.until(lambda document: (document["numbers"]["events"] or 0) > 20, "events are built")
        server.stop()  # this cuts all connections: the host is not visible, and the run continues
        room.until(lambda document: "BLIND" in document["flags"], "the host is not seen")
        assert room.state == "RUNNING"
        server.start()
        room.until(lambda document: "BLIND" not in document["flags"], "the host is seen again")
        number = room.document()["run"]["number"]
        room.command("stop")
        row = room.row(number)
        assert (row["state"], row["condition"]) == ("CLOSED", "GOOD"), row
        room.command("close")
        assert room.state == "OFF"
    deadline = time.monotonic() + scaled(60)
    while paths.is_held(server.directory / "run" / "t.node.agent.lock"):
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_the_package_that_a_relay_runs_is_this_one(server):
    done = subprocess.run(
        [sys.executable, "-B", "-m", "rodeo.control.processes.relay", "--system", "lab", "--host", "none"],
        capture_output=True,
        text=True,
        timeout=scaled(60),
        stdin=subprocess.DEVNULL,
    )
    assert done.returncode == 4 and '"control.host_silent"' in done.stdout
