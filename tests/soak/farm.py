"""The processes of a soak: two emulated cards, a router, two readouts, supervisor, filter nodes and recorders. A killed process is started again."""

import ctypes
import dataclasses
import os
import signal
import subprocess
import time
from pathlib import Path

PR_SET_PDEATHSIG = 1
SYSTEM = "soak"
SEED = 1


@dataclasses.dataclass
class Part:
    name: str
    command: list  # verb and arguments, without the configuration
    configuration: Path
    process: subprocess.Popen = None
    lives: int = 0
    stopped: bool = False
    kills: int = 0


class Farm:
    """Writes the configurations of all parts to `directory`; `rodeo` is the command. close() ends all processes."""

    def __init__(self, rodeo, directory, configurations):
        self.rodeo, self.directory = str(rodeo), Path(directory)
        self.environment = {
            **os.environ,
            "XDG_RUNTIME_DIR": str(self.directory),
            "TMPDIR": str(self.directory),
            "NO_COLOR": "1",
        }
        self.environment.pop("RODEO_RUNTIME_DIR", None)
        self.parts = {}
        for name, (command, text) in configurations.items():
            path = self.directory / f"{name}.toml"
            path.write_text(text)
            self.parts[name] = Part(name, command, path)

    def start(self, name):
        part = self.parts[name]
        part.lives += 1
        log = self.directory / f"{name}.{part.lives}.log"
        report = [] if name == "emulator" else ["--json", str(self.directory / f"{name}.{part.lives}.json")]
        with log.open("wb") as out:
            part.process = subprocess.Popen(
                [self.rodeo, *part.command, *report, str(part.configuration)],
                cwd=self.directory,
                env=self.environment,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                start_new_session=True,
                preexec_fn=die_with_us,
            )
        part.stopped = False

    def alive(self, name):
        process = self.parts[name].process
        return process is not None and process.poll() is None

    def kill(self, name):
        part = self.parts[name]
        if self.alive(name):
            os.killpg(part.process.pid, signal.SIGKILL)
            part.process.wait()
            part.kills += 1

    def stop(self, name, stopped):
        part = self.parts[name]
        if self.alive(name):
            os.kill(part.process.pid, signal.SIGSTOP if stopped else signal.SIGCONT)
            part.stopped = stopped

    def end(self, name, patience):
        """Ends a process by SIGINT; returns its exit code, or None if it had to be killed."""
        part = self.parts[name]
        if part.process is None:
            return None
        if part.process.poll() is None:
            if part.stopped:
                self.stop(name, False)
            part.process.send_signal(signal.SIGINT)
            try:
                part.process.wait(patience)
            except subprocess.TimeoutExpired:
                self.kill(name)
                return None
        return part.process.returncode

    def close(self):
        for name in self.parts:
            self.kill(name)

    def ask(self, *arguments):
        return subprocess.run(
            [self.rodeo, *map(str, arguments)],
            cwd=self.directory,
            env=self.environment,
            capture_output=True,
            text=True,
            stdin=subprocess.DEVNULL,
            timeout=60,
        )

    def resident_bytes(self, name):
        """The process's memory without the rings of cards, which are shared with readers and grow until they are used once. 0: it is not running."""
        try:
            status = Path(f"/proc/{self.parts[name].process.pid}/status").read_text()
        except (OSError, AttributeError):
            return 0
        kib = {
            line.split(":")[0]: int(line.split()[1])
            for line in status.splitlines()
            if line.startswith(("RssAnon", "RssFile"))
        }
        return sum(kib.values()) * 1024

    def descriptors(self, name):
        try:
            return len(os.listdir(f"/proc/{self.parts[name].process.pid}/fd"))
        except (OSError, AttributeError):
            return 0

    def last_words(self, name, lines=5):
        part = self.parts[name]
        log = self.directory / f"{name}.{part.lives}.log"
        return "\n".join(log.read_text(errors="replace").splitlines()[-lines:]) if log.exists() else ""


def die_with_us():
    """In the child: the farm ends if the checker is killed."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def wait_until(condition, seconds):
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True
