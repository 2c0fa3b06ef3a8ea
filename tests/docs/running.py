"""Runs the steps of a page (page.py) as a reader does: in an empty folder, with terminals and one python3 session."""

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from conftest import BUILD, ROOT, scaled
from page import CtrlC, commands, is_excerpt, missing_line, steps

LONGEST_BLOCK_S = 240
LONGEST_START_S = 60
UNREACHABLE = 4  # the exit status of `rodeo` if what it asks is not there
LAST_END_S = 10  # for processes that end after the page
SESSION = """
import json, sys
names = {"__name__": "__main__"}
for line in sys.stdin:
    code, place, done = json.loads(line)
    exec(compile(code, place, "exec"), names)
    sys.stdout.flush()
    open(done, "w").write("0")
"""


# A process that Ctrl-C ends: in order, or by the signal; in the second case bash ends, too.
ENDS = (0, -signal.SIGINT, 128 + signal.SIGINT)


class PageError(AssertionError):
    """A step of a page did not do what the page says."""


class Terminal:
    """A shell, or python3 with SESSION. What it runs writes into one file, and says in another that a block is done."""

    def __init__(self, reader, name, command):
        self.reader, self.output, self.seen, self.done = reader, reader.base / f"{name}.output", 0, None
        self.number = 0
        with open(self.output, "wb") as output:
            # A new session: Ctrl-C goes to all that runs in this terminal, and to nothing else.
            self.process = subprocess.Popen(
                command,
                cwd=reader.place(),
                env=reader.environment,
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=subprocess.STDOUT,
                text=True,
                start_new_session=True,
            )

    def type(self, block, text):
        """Begins a block."""
        if self.busy():
            raise PageError(f"line {block.line}: the block before still runs in this terminal")
        self.seen, self.number = self.output.stat().st_size, self.number + 1
        self.done = self.output.with_suffix(f".{self.number}")
        source = self.output.with_suffix(f".{self.number}.source")
        if block.language == "python":
            self.process.stdin.write(json.dumps([text, f"line {block.line}", str(self.done)]) + "\n")
        else:
            source.write_text("trap 'return $?' ERR\n" + text)  # the first command that fails ends the block
            self.process.stdin.write(
                f"source {source} < /dev/null; status=$?; trap - ERR; echo $status > {self.done}.new; mv {self.done}.new {self.done}\n"
            )
        self.process.stdin.flush()

    def busy(self):
        return self.done is not None and not self.done.exists() and self.process.poll() is None

    def said(self):
        """The output of the last block."""
        with open(self.output, "rb") as output:
            output.seek(self.seen)
            return output.read().decode(errors="replace")

    def wait(self, block):
        """Waits for the end of a block, and returns its exit status."""
        deadline = time.monotonic() + scaled(LONGEST_BLOCK_S)
        while self.busy():
            if time.monotonic() > deadline:
                raise PageError(f"line {block.line}: the block does not end\n{block.text}\n{self.said()}")
            time.sleep(0.02)
        return self.status()

    def status(self):
        """The exit status of the last block, which has ended."""
        return int(self.done.read_text()) if self.done.exists() else self.process.wait()

    def shows(self, block):
        """Waits until all lines of a `text` block were in the output; what runs on writes them when it is ready."""
        deadline = time.monotonic() + scaled(LONGEST_BLOCK_S)
        while (missing := missing_line(block.text, self.said())) is not None:
            if not self.busy():
                missing = missing_line(block.text, self.said())  # what it wrote at its end
                if missing is None:
                    return
                raise PageError(f"line {block.line}: the output has no line `{missing}`:\n{self.said()}")
            if time.monotonic() > deadline:
                raise PageError(f"line {block.line}: no line `{missing}` comes:\n{self.said()}")
            time.sleep(0.05)

    def interrupt(self, line):
        """Ctrl-C. What runs must end in order, or by the signal itself."""
        if not self.busy():
            raise PageError(f"line {line}: nothing runs that Ctrl-C could end:\n{self.said()}")
        os.killpg(self.process.pid, signal.SIGINT)
        deadline = time.monotonic() + scaled(LONGEST_BLOCK_S)
        while self.busy():
            if time.monotonic() > deadline:
                raise PageError(f"line {line}: Ctrl-C does not end it:\n{self.said()}")
            time.sleep(0.02)
        if self.status() not in ENDS:
            raise PageError(f"line {line}: after Ctrl-C it ended with {self.status()}:\n{self.said()}")


def plugin_sources():
    return "".join(path.read_text() for path in sorted((ROOT / "plugins").rglob("*")) if path.suffix in (".h", ".cpp"))


def command_line(process):
    with contextlib.suppress(OSError):
        return Path(f"/proc/{process}/cmdline").read_text().replace("\0", " ").strip()


class Reader:
    """A reader of one page. `left_out(command)`: the reason not to run a command here, or None."""

    def __init__(self, left_out=lambda command: None, paths=()):
        self.left_out, self.terminals, self.last = left_out, {}, None
        self.base = Path(tempfile.mkdtemp(prefix="page-"))  # short: sockets have short names
        self.folder, runtime = self.base / "folder", self.base / "run"
        self.folder.mkdir()
        runtime.mkdir(mode=0o700)
        places = [str(BUILD), str(Path(sys.executable).parent), os.environ["PATH"], *map(str, paths)]
        inherited = {name: os.environ[name] for name in ("LANG", "TMPDIR", "USER", "LOGNAME") if name in os.environ}
        self.environment = {
            **inherited,
            "HOME": str(self.base),
            "PATH": ":".join(places),
            "PYTHONPATH": str(BUILD / "python"),
            "XDG_RUNTIME_DIR": str(runtime),
            "NO_COLOR": "1",
            "CMAKE_BUILD_TYPE": "None",  # builds fastest: without optimisation and symbols
            "CMAKE_BUILD_PARALLEL_LEVEL": "2",
            "READER": str(self.base),  # what runs on is found by this
        }

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for process in self.running():
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
        for terminal in self.terminals.values():
            terminal.process.kill()
            terminal.process.wait()
            terminal.process.stdin.close()
        shutil.rmtree(self.base, ignore_errors=True)

    def terminal(self, name):
        """A new terminal opens in the folder in which the first one is now."""
        known = self.terminals.get(name)
        if known is None or (known.process.poll() is not None and name != 1):
            command = [sys.executable, "-B", "-c", SESSION] if name == "python" else ["bash", "--norc", "--noprofile"]
            known = self.terminals[name] = Terminal(self, name, command)
            if name != "python":
                known.process.stdin.write("set -o pipefail\n")
        return known

    def place(self):
        first = self.terminals.get(1)
        return os.readlink(f"/proc/{first.process.pid}/cwd") if first is not None else self.folder

    def read(self, text):
        """Takes all steps of a page. Returns the number of commands that ran; raises PageError where the page is wrong."""
        ran = 0
        for step in steps(text):
            if isinstance(step, CtrlC):
                self.terminals[step.terminal].interrupt(step.line)
                self.last = self.terminals[step.terminal]
            elif step.file is not None and step.language not in ("sh", "text"):
                path = Path(self.place()) / Path(step.file.replace("~", str(self.base), 1))
                with open(path, "a" if step.appends else "w") as file:
                    file.write(step.text)
            elif step.language == "sh":
                ran += self.type(step)
            elif step.language == "python":
                session = self.terminal("python")
                session.type(step, step.text)
                self.check(step, session.wait(step), session)
                self.last, ran = session, ran + 1
            elif step.language == "text":
                shown = self.terminals[step.terminal] if step.terminal else self.last
                shown.shows(step)
            elif step.language == "cpp" and is_excerpt(step.text, plugin_sources()):
                pass
            elif step.language:
                raise PageError(f"line {step.line}: what the reader does with this `{step.language}` is not said")
        self.end()
        return ran

    def type(self, block):
        """Types the commands of a `sh` block, except those left out. Returns their number. A block whose command does not reach what another terminal has
        just started is typed again."""
        typed = [each for each in commands(block.text) if self.left_out(each) is None]
        if typed:
            terminal = self.last = self.terminal(block.terminal or 1)
            terminal.type(block, "".join(typed))
            if block.terminal in (None, 1):
                deadline = time.monotonic() + scaled(LONGEST_START_S)
                while (status := terminal.wait(block)) == UNREACHABLE and time.monotonic() < deadline:
                    if block.exit_status or not any(each.busy() for each in self.terminals.values()):
                        break
                    time.sleep(0.3)
                    terminal.type(block, "".join(typed))
                self.check(block, status, terminal)
        return len(typed)

    @staticmethod
    def check(block, status, terminal):
        if status != block.exit_status:
            raise PageError(f"line {block.line}: ended with {status}\n{block.text}\n{terminal.said()}")

    def end(self):
        """Presses Ctrl-C in all terminals where something runs, and finds processes that run on."""
        for name, terminal in reversed(self.terminals.items()):  # what was started last asks what was started before
            if name != "python" and terminal.busy():
                terminal.interrupt(0)
            elif name != "python" and name != 1 and terminal.status() not in ENDS:
                raise PageError(f"what ran in terminal {name} ended with {terminal.status()}:\n{terminal.said()}")
        for terminal in self.terminals.values():
            terminal.process.stdin.close()
            terminal.process.wait(scaled(60))
        deadline = time.monotonic() + scaled(LAST_END_S)
        while on := self.running():
            if time.monotonic() > deadline:
                raise PageError(f"at the end of the page these still run: {[command_line(each) for each in on]}")
            time.sleep(0.05)

    def running(self):
        """Processes that began with this reader."""
        mark, found = f"READER={self.base}".encode(), []
        for path in Path("/proc").glob("[0-9]*/environ"):
            with contextlib.suppress(OSError):
                if mark in path.read_bytes().split(b"\0"):
                    found.append(int(path.parent.name))
        return found
