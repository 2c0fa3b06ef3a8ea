"""Common parts of this package's programs: exit status, form of errors, progress on stderr, output files that appear only when complete."""

import contextlib
import os
import signal
import sys
import time

from rodeo import saying
from rodeo.missing import remedy

DONE, FAILED, USAGE, REFUSED, NOT_VERIFIED = 0, 1, 2, 5, 7

# Exit status of the error codes that are not plain failures.
_STATUS = {
    "file.exists": REFUSED,
    "cli.bad_value": USAGE,
    "cli.usage": USAGE,
    "data.recording": USAGE,
    "data.other_run": USAGE,
}


class Refused(Exception):
    """An error that ends the work: code, what, where, what to do next."""

    def __init__(self, code, what, where="", next=""):
        super().__init__(what)
        self.code, self.what, self.where, self.next = code, what, where, next

    def __str__(self):
        where = f"{_text(self.where)}: " if self.where else ""
        return f"error[{self.code}]: {where}{self.what}" + (f"\n  {self.next}" if self.next else "")


def _text(path):
    """A printable name, also if its bytes are not UTF-8."""
    return os.fsencode(path).decode("utf-8", "backslashreplace")


def say(text):
    saying.say(text.encode("utf-8", "backslashreplace").decode())


def names():
    """The command's files, read from stdin and separated by NUL: a command line may be too short for them."""
    return [os.fsdecode(name) for name in sys.stdin.buffer.read().split(b"\0")]


def needed(module, wanted_by):
    """Imports a package on use."""
    import importlib

    try:
        return importlib.import_module(module)
    except ImportError as missing:
        raise Refused(
            "cli.python",
            f"{wanted_by} needs the Python package {module}, which is missing ({missing})",
            sys.executable,
            f"{remedy(module)}, or name an interpreter that has it: RODEO_PYTHON=/path/to/python3",
        ) from missing


def run(work, *arguments):
    """Calls work(*arguments), prints its error to stderr and returns the exit status. Prints a traceback only with `--log debug`."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    if os.environ.get("RODEO_LOG") != "debug":
        sys.unraisablehook = sys.excepthook = lambda *_: (
            None
        )  # silences libraries that clean up after an error that is reported
    try:
        return work(*arguments) or DONE
    except KeyboardInterrupt:
        say("interrupted: the unfinished output was removed")
        return FAILED
    except BrokenPipeError:
        return FAILED  # the reader has ended and reports the reason
    except Exception as error:
        if os.environ.get("RODEO_LOG") == "debug":
            import traceback

            traceback.print_exc()
        text, code = _said(error)
        say(text)
        return _STATUS.get(code, FAILED)


def end(status):
    """Ends the process without exit handlers of libraries: they would try again to write a file that could not be written."""
    with contextlib.suppress(OSError):
        sys.stdout.flush()
        sys.stderr.flush()
    os._exit(status)


def _said(error):
    if isinstance(error, Refused):
        return str(error), error.code
    if isinstance(error, ValueError) and str(error).startswith("error["):  # rodeo.data has raised this error
        return str(error), getattr(error, "code", "")
    if isinstance(error, MemoryError):
        return (
            "error[data.memory]: there is not enough memory\n  end other programs, or convert fewer files at a time",
            "",
        )
    if isinstance(error, OSError):
        where = _text(error.filename) + ": " if error.filename else ""
        return f"error[file.write]: {where}{error.strerror or error}", "file.write"
    return f"error[data.failed]: {type(error).__name__}: {error}\n  the whole traceback: --log debug", ""


class Progress:
    """A progress line on stderr: on a terminal it is redrawn once a second, else a new line is printed every five seconds."""

    def __init__(self, doing, total):
        self.doing, self.total, self.start = doing, total, time.monotonic()
        self.terminal = sys.stderr.isatty() and os.environ.get("TERM") != "dumb"
        self.shown = self.start
        self.drawn = False

    def __call__(self, done):
        now = time.monotonic()
        if now - self.shown < (1 if self.terminal else 5):
            return
        self.shown = now
        rate = done / (now - self.start)
        share = f" of {self.total} ({100 * done // self.total} %)" if self.total else ""
        left = f", {(self.total - done) / rate:.0f} s left" if self.total > done and rate > 0 else ""
        text = f"{self.doing}: {done}{share} events, {rate:.0f} a second{left}"
        if self.terminal:
            saying.say(f"\r\x1b[K{text}", end="")
            self.drawn = True
        else:
            saying.say(text)

    def finish(self):
        if self.drawn:
            saying.say("\r\x1b[K", end="")


@contextlib.contextmanager
def new_file(path):
    """Yields the name of a temporary file next to `path`. If all goes well it becomes `path`, else it is removed. Never overwrites a file."""
    path = os.fspath(path)
    if os.path.lexists(path):
        raise Refused("file.exists", "is there already", path, "remove it, or name another file")
    directory = os.path.dirname(path) or "."
    if not os.path.isdir(directory):
        raise Refused("file.write", "there is no such directory", directory, "make it, or name another file")
    part = f"{path}.{os.getpid()}.part"
    try:
        yield part
        with open(part, "rb") as written:
            os.fsync(written.fileno())
        try:
            os.link(part, path)  # a link, unlike a rename, does not overwrite a file created in the meantime
        except FileExistsError:
            raise Refused(
                "file.exists", "is there already", path, "it was created during the conversion: name another file"
            ) from None
        except OSError:  # the file system has no links
            if os.path.lexists(path):
                raise Refused(
                    "file.exists", "is there already", path, "it was created during the conversion: name another file"
                ) from None
            os.rename(part, path)
    except BrokenPipeError:
        raise
    except OSError as error:  # the error names the output, not the temporary file
        if error.filename is not None and os.fspath(error.filename) != part:
            raise
        raise Refused(
            "file.write",
            error.strerror or str(error),
            path,
            "free space there, raise the limit (ulimit -f), or name another file",
        ) from error
    finally:
        with contextlib.suppress(OSError):
            os.unlink(part)
