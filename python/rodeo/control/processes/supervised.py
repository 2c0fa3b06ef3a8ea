"""The controller's view of one process: its launch, and the last answers of its launcher and of the process itself, with their times."""

import os
import time

from rodeo.control.state import status_schema
from rodeo.control.state.snapshots import Exit, Look, phase_of


class Supervised:
    """Used by the controller's loop. Ages are of the monotonic clock; `patience` multiplies the times after which silence counts, for slow machines."""

    def __init__(self, member, patience=1.0):
        self.member = member
        self.patience = patience
        self.launches = 0  # launches so far; each has its own report
        self.restarts = 0  # launches by rules in the open run
        self.writers = []  # names of the process's consumers that write files
        self.settings = []  # KEY=VALUE of this launch
        self.report = None  # path of the report of this launch
        self.expected_sha256 = None
        self.remembered = (None, None)  # pid and expected_sha256 of the former controller's process
        self.expected_build = None
        self.said = ""  # the last log lines of a process that ended badly
        self.ever_listed = False  # whether the launcher has answered once
        self.forget()

    @property
    def name(self):
        return self.member.name

    def forget(self):
        """Resets to no process: before a launch, and after the launcher has forgotten an ended one."""
        self.alive, self.pid, self.exit, self.left = False, None, None, ()
        self.started_ns = None
        self.launched_s = None
        self.cpu = self.rss_bytes = None
        self._cpu_before = None
        self.status, self.raw, self.problems = None, None, ()
        self.answered_s, self.seen_ns, self.unanswered = None, None, 0
        self.phase, self.since_ns = "absent", time.time_ns()
        self.said = ""
        self.ended_here = False  # an abort ended the process by TERM or KILL: its exit raises no alarm

    def listed(self, process, now_s):
        """Takes the launcher's answer: an AgentProcess, or None if it does not know the name. Returns whether the process was replaced or has ended since."""
        before = (self.alive, self.pid)
        self.ever_listed = True
        if process is None:
            if self.launched_s is None or self.pid is not None:
                self.forget()
            return before != (self.alive, self.pid)
        if self.pid is not None and process.pid != self.pid:
            self.forget()
        self.pid, self.started_ns = process.pid, process.started_ns
        if self.expected_sha256 is None and self.pid == self.remembered[0]:
            self.expected_sha256 = self.remembered[1]
        if self.launched_s is None:
            self.launched_s = now_s
        tag = process.tag if isinstance(process.tag, dict) else {}
        self.report = tag.get("report") or self.report
        if isinstance(tag.get("launch"), int):
            self.launches = max(self.launches, tag["launch"])
        if process.state == "exited":
            self.alive = False
            status = process.exit_status if process.signal is None else None
            if status is None and process.signal is None and self.report and os.path.exists(self.report):
                status = (
                    0  # the agent that would have seen its end was killed; the report shows that the process finished
                )
            self.exit = Exit(
                status, process.signal, process.core or None, process.said if isinstance(process.said, str) else ""
            )
        else:
            self.alive, self.exit = True, None
        self.left = tuple(process.left) if process.state == "exited" else ()
        self.rss_bytes = process.rss_bytes
        self._use_of_cpu(process.cpu_seconds, now_s)
        return before != (self.alive, self.pid)

    def _use_of_cpu(self, seconds, now_s):
        if seconds is None:
            self.cpu = None
            return
        if self._cpu_before and now_s - self._cpu_before[0] >= 0.9:
            self.cpu = max(0.0, (seconds - self._cpu_before[1]) / (now_s - self._cpu_before[0]))
            self._cpu_before = (now_s, seconds)
        elif self._cpu_before is None:
            self._cpu_before = (now_s, seconds)

    def host_silent(self):
        """The host does not answer: whether the process lives is unknown, unless the host has reported its exit."""
        if self.exit is None and (self.launched_s is not None or not self.ever_listed):
            self.alive = None

    def answered(self, status, now_s, now_ns):
        """Takes an answer of the control socket. Ignores answers of another process than the launched one."""
        left, problems = status_schema.checked(self.member.kind, status)
        process = left.get("process") if isinstance(left.get("process"), dict) else {}
        if self.pid is not None and isinstance(process.get("pid"), int) and process["pid"] != self.pid:
            self.problems = (f"process {process['pid']} answers on its control socket, but {self.pid} was launched",)
            self.unanswered += 1
            return
        self.raw, self.status, self.problems = status, left, tuple(problems)
        self.answered_s, self.seen_ns, self.unanswered = now_s, now_ns, 0

    def not_answered(self, counts):
        """The process has not answered; `counts`: the poll had its full time. Three such polls make the process lost."""
        if counts:
            self.unanswered += 1

    @property
    def process(self):
        """The table `process` of the status."""
        found = (self.status or {}).get("process")
        return found if isinstance(found, dict) else {}

    @property
    def said_sha256(self):
        """The checksum of the configuration to start with: the one of the ready process."""
        return self.expected_sha256 or self.process.get("configuration_sha256") or ""

    def snapshot(self, now_s):
        """The Look for the deciding modules."""
        process, status = self.process, self.status or {}
        phase_said = process.get("phase") or status.get("phase")
        run = status.get("run") if isinstance(status.get("run"), dict) else {}
        number = (
            (run.get("number") or None) if phase_said in ("running", "draining") else None
        )  # 0: the node does not know its run yet

        def age(since):
            return None if since is None else max(0.0, now_s - since) / self.patience

        look = Look(
            member=self.member,
            alive=self.alive,
            phase_said=phase_said,
            exit=self.exit,
            answered_age_s=age(self.answered_s),
            unanswered=self.unanswered,
            launched_age_s=age(self.launched_s),
            status=self.status,
            problems=self.problems,
            pid=self.pid,
            build=process.get("build"),
            configuration_sha256=process.get("configuration_sha256"),
            expected_sha256=self.expected_sha256,
            expected_build=self.expected_build,
            run_number=number,
            restarts=self.restarts,
            since_ns=self.since_ns,
            seen_ns=self.seen_ns,
            cpu=self.cpu if self.alive else None,
            rss_bytes=self.rss_bytes if self.alive else None,
            left=self.left,
        )
        phase = phase_of(look)
        if phase != self.phase:
            self.phase, self.since_ns = phase, time.time_ns()
            look = Look(**{**look.__dict__, "since_ns": self.since_ns})
        return look
