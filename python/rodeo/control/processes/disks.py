"""Where runs are written: a folder for each run, and for each process a link to its folder in the current run.

A readout is prepared before its run has a number. So it writes to the link `next/NAME`, which leads to a waiting place while the readout is held,
and to `runs/NNNNNN/NAME` from just before its start. This does not move open files."""

import contextlib
import logging
import os
import shutil
from pathlib import Path

from rodeo.control.processes import file_modes
from rodeo.control.refused import Refused

LOG = logging.getLogger("rodeo.control")


class Folders:
    """The directory of a system. All calls block for operations on names in the file system; no call reads or removes data."""

    def __init__(self, directory, group=""):
        self.directory, self.group = Path(directory), group
        self.runs = self.directory / "runs"
        self.next = self.directory / "next"
        self.waiting = self.directory / "waiting"
        self.reports = self.directory / "reports"
        self.logs = self.directory / "logs"

    def make(self):
        """Makes the directories. Refused(control.directory) if one cannot be made, control.group."""
        try:
            for each in (self.directory, self.runs, self.next, self.waiting, self.reports, self.logs):
                each.mkdir(mode=0o755, parents=True, exist_ok=True)
                if self.group:
                    file_modes.give_group(each, self.group)
        except OSError as error:
            raise Refused(
                "control.directory",
                f"cannot make {error.filename}: {error.strerror}",
                "set control.directory to a directory that you may write to",
            ) from None

    def run(self, number):
        return self.runs / f"{number:06d}"

    def place(self, process):
        """The path to which a process writes."""
        return self.next / process

    def report(self, process, launch):
        """The path of a process's report at its end; `launch` distinguishes its launches."""
        return self.reports / f"{process}.{launch}.json"

    def hold(self, process, writers):
        """Before a launch: links the place to an empty waiting place, with a directory for each of several writers."""
        waiting = self.waiting / process
        shutil.rmtree(
            waiting, ignore_errors=True
        )  # the waiting place has only empty directories: files are opened when a run starts
        self._lead(process, waiting, writers)

    def assign(self, number, process, writers, name=None):
        """Before a start: links the place to the folder `name` (default: the process's name) in the folder of the run. Returns this folder."""
        folder = self.run(number) / (name or process)
        self._lead(process, folder, writers)
        return folder

    def free_number_of_folder(self):
        """The largest run number with a folder, 0 without folders: no run is ever written into the folder of another."""
        numbers = [int(each.name) for each in self.runs.iterdir() if each.name.isdigit()] if self.runs.is_dir() else []
        return max(numbers, default=0)

    def collect_report(self, number, process, report):
        """Moves a report into the folder of its run, and returns its path (None without a report). A report that cannot be moved stays."""
        folder = self.run(number)
        try:
            folder.mkdir(parents=True, exist_ok=True)
            target = self.report_of(number, process)
            os.replace(report, target)
        except FileNotFoundError:
            return None
        except OSError as error:  # the disk is full, or is another one: readers use the old path
            LOG.warning("%s stays where it is: %s", report, error)
            return report
        return target

    def report_of(self, number, process):
        return self.run(number) / f"{process}.report.json"

    def _lead(self, process, target, writers):
        try:
            target.mkdir(parents=True, exist_ok=True)
            if len(writers) > 1:
                for each in writers:
                    (target / each).mkdir(exist_ok=True)
            part = self.next / f".{process}.part"
            with contextlib.suppress(FileNotFoundError):
                part.unlink()
            part.symlink_to(os.path.relpath(target, self.next))
            os.replace(part, self.next / process)
        except OSError as error:
            raise Refused(
                "control.directory",
                f"cannot make {error.filename or target}: {error.strerror}",
                "check that the disk is writable",
            ) from None


def free_and_total(path):
    """Bytes that this user may still write, and the size of the file system; None if statvfs() fails."""
    try:
        found = os.statvfs(path)
    except OSError:
        return None
    return {"free": found.f_bavail * found.f_frsize, "total": found.f_blocks * found.f_frsize}
