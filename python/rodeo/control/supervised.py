"""One process of the system as the controller has it: what was launched, what its launcher and the process itself said last, and when."""

import os
import time

from rodeo.control import sound
from rodeo.control.looks import Exit, Look, phase_of


class Supervised:
    """Of the controller's loop. Ages are of the monotonic clock; `patience` stretches the time after which silence counts, for slow machines."""

    def __init__(self, member, patience=1.0):
        self.member = member
        self.patience = patience
        self.launches = 0  # lives so far; each has its own report
        self.restarts = 0  # of them, those that the rules made in a run
        self.writers = []  # names of its consumers that write files
        self.settings = []  # KEY=VALUE of this life
        self.report = None  # where this life writes its report
        self.expected_sha256 = None
        self.remembered = (None, None)  # pid and expected_sha256 of the process that the controller before this one had
        self.expected_build = None
        self.said = ""  # the last words of what ended badly
        self.ever_listed = False  # its launcher has said whether it is there
        self.forget()

    @property
    def name(self):
        return self.member.name

    def forget(self):
        """There is no process: before a launch, and after the record of one that ended has been taken away."""
        self.alive, self.pid, self.exit, self.left = False, None, None, ()
        self.started_ns = None
        self.launched_s = None
        self.cpu = self.rss_bytes = None
        self._cpu_before = None
        self.status, self.raw, self.problems = None, None, ()
        self.answered_s, self.seen_ns, self.unanswered = None, None, 0
        self.phase, self.since_ns = "absent", time.time_ns()
        self.said = ""
        self.ended_here = False  # by TERM or KILL of an abort: then its exit is no news

    def listed(self, process, now_s):
        """What the launcher says: an AgentProcess, or None if it does not know the name. Returns whether it is another life or has ended since."""
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
                status = 0  # nobody saw its end, for its agent was killed before; it has left its report, so it came to its end
            self.exit = Exit(status, process.signal, process.core or None, process.said if isinstance(process.said, str) else "")
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
        """Nobody knows whether it lives, unless the host has said that it does not."""
        if self.exit is None and (self.launched_s is not None or not self.ever_listed):
            self.alive = None

    def answered(self, status, now_s, now_ns):
        """Its control socket has answered. What does not come from the process that was launched is not its word."""
        left, problems = sound.checked(self.member.kind, status)
        process = left.get("process") if isinstance(left.get("process"), dict) else {}
        if self.pid is not None and isinstance(process.get("pid"), int) and process["pid"] != self.pid:
            self.problems = (f"process {process['pid']} answers on its control socket, and {self.pid} was launched",)
            self.unanswered += 1
            return
        self.raw, self.status, self.problems = status, left, tuple(problems)
        self.answered_s, self.seen_ns, self.unanswered = now_s, now_ns, 0

    def not_answered(self, counts):
        """It did not answer; `counts`: a poll of the full time, of which three make it lost."""
        if counts:
            self.unanswered += 1

    @property
    def process(self):
        """What the status says of the process itself."""
        found = (self.status or {}).get("process")
        return found if isinstance(found, dict) else {}

    @property
    def said_sha256(self):
        """Of the configuration that it shall be started with: the one that it had when it was ready."""
        return self.expected_sha256 or self.process.get("configuration_sha256") or ""

    def look(self, now_s):
        """What the deciding modules are given."""
        process, status = self.process, self.status or {}
        phase_said = process.get("phase") or status.get("phase")
        run = status.get("run") if isinstance(status.get("run"), dict) else {}
        number = (run.get("number") or None) if phase_said in ("running", "draining") else None  # 0: a node that has not heard of its run yet

        def age(since):
            return None if since is None else max(0.0, now_s - since) / self.patience

        look = Look(
            member=self.member, alive=self.alive, phase_said=phase_said, exit=self.exit, answered_age_s=age(self.answered_s), unanswered=self.unanswered,
            launched_age_s=age(self.launched_s), status=self.status, problems=self.problems, pid=self.pid, build=process.get("build"),
            configuration_sha256=process.get("configuration_sha256"), expected_sha256=self.expected_sha256, expected_build=self.expected_build,
            run_number=number, restarts=self.restarts, since_ns=self.since_ns, seen_ns=self.seen_ns, cpu=self.cpu if self.alive else None,
            rss_bytes=self.rss_bytes if self.alive else None, left=self.left)
        phase = phase_of(look)
        if phase != self.phase:
            self.phase, self.since_ns = phase, time.time_ns()
            look = Look(**{**look.__dict__, "since_ns": self.since_ns})
        return look
