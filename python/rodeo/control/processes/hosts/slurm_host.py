"""A host from Slurm: one job on it runs the agent, and a step of this job connects to the agent, so that no process listens on the network.

no job ──launch()──► pending ──► running ──no process for a while, or leave──► no job
                                    └── cancelled, or node dead ──► no job: its processes have ended, and the agent's last note has their exits
"""

import asyncio
import contextlib
import json
import os
import shlex
import time

from rodeo.control.processes import agent_logs
from rodeo.control.processes.agent import LEASH_S, LONGEST_READ_OF_LOGS, end_of, sha256_of
from rodeo.control.processes.disks import free_and_total
from rodeo.control.processes.host import process_of
from rodeo.control.processes.hosts.remote import RemoteHost, said, with_environment
from rodeo.control.processes.log_records import newest
from rodeo.control.refused import Refused

COMMAND_S = 20.0  # time-out of squeue, sbatch and scancel; a busy slurmctld is slow
GRANTED_S = 60.0  # limit from the submission until the agent answers
LOOK_S = 0.25  # pause between two looks at a job that has not begun
IDLE_S = 30.0  # a job that has no process for this time is given back
ALIVE = ("RUNNING", "SUSPENDED", "STOPPED", "SIGNALING")
ENDING = ("COMPLETING", "STAGE_OUT")
WAITING = ("PENDING", "CONFIGURING", "REQUEUED", "RESIZING")


class NoJob(Refused):
    """The host has no job, so no process runs there."""


HOPELESS_S = 3.0  # a hopeless reason counts after this time: a node that comes back is briefly unavailable, too
HOPELESS = (
    "ReqNodeNotAvail",
    "DOWN, DRAINED",
    "NodeDown",
    "PartitionDown",
    "InvalidAccount",
    "InvalidQOS",
)  # a job with such a reason will not start soon


def job_of(answer):
    """Returns (id, state, why) of a living job from squeue's lines `id|state|reason`; None if there is no job. Of several jobs it prefers a running one, then a
    waiting one, then an ending one. Pure."""
    found = []
    for line in answer.splitlines():
        number, state, why = (line.strip().split("|", 2) + ["", ""])[:3]
        for rank, states in enumerate((ALIVE, WAITING, ENDING)):
            if number.isdigit() and state in states:
                found.append((rank, -int(number), (number, state, why)))
    return min(found)[2] if found else None


def script(argv):
    """The script of the job: the agent replaces the shell, so that the job ends with the agent."""
    return "#!/bin/sh\nexec " + shlex.join(argv) + "\n"


class SlurmHost(RemoteHost):
    """`node` is the name of a node; the job takes the whole node. Slurm's own variables set partition, account, time limit and the like
    (SBATCH_PARTITION, SBATCH_ACCOUNT, SBATCH_TIMELIMIT, SBATCH_RESERVATION). The system's directory must be on a file system shared with the node."""

    def __init__(self, system, directory, name, node="", *, patience=1.0, leash_s=LEASH_S, idle_s=IDLE_S):
        super().__init__(system, directory, name, "slurm", patience)
        self.node, self.leash_s, self.idle_s = node or name, leash_s, idle_s
        self._granting, self._idle_since, self._launching = asyncio.Lock(), None, 0

    @property
    def job_name(self):
        return f"rodeo-{self.system}-{self.name}"

    # The job

    async def job(self):
        """Returns (id, state, why) of our job, or None. Refused(control.host_silent) if Slurm does not answer."""
        status, out, complaint = await said(
            "squeue",
            "--noheader",
            "--me",
            f"--name={self.job_name}",
            "--states=all",
            "--format=%i|%T|%r",
            seconds=COMMAND_S * self.patience,
        )
        if status != 0:
            raise Refused("control.host_silent", f"{self.name}: Slurm does not answer: {last_line(complaint)}", "")
        return job_of(out)

    async def way(self):
        job = await self.job()
        if job is None:
            raise NoJob("control.host_silent", f"there is no job on {self.name}", "")
        number, state, why = job
        if state in WAITING:
            raise Refused("control.host_silent", f"{self.name}: job {number} waits: {why or state}", "")
        if state in ENDING:
            if any(isinstance(each, dict) and not each.get("exited") for each in self._note()["processes"]):
                raise Refused("control.host_silent", f"{self.name}: job {number} is ending", "")
            raise NoJob("control.host_silent", f"job {number} on {self.name} has ended", "")
        return [
            "srun",
            f"--jobid={number}",
            f"--nodelist={self.node}",
            "--nodes=1",
            "--ntasks=1",
            "--overlap",
            "--unbuffered",
            "--quiet",
            "--mpi=none",
            "--input=all",
            "--immediate=20",
            "--export=RODEO_HOST=" + self.name,
            "--propagate=NONE",
            "--job-name=relay",
            "/usr/bin/env",
            *with_environment(self.relay())[1:],
        ]

    async def submit(self):
        """Submits a new job. Returns its id. Refused(control.launch) with sbatch's message."""
        self.directory.mkdir(parents=True, exist_ok=True)
        agent = [
            "/usr/bin/env",
            *with_environment(
                [
                    "-m",
                    "rodeo.control.processes.agent",
                    "--system",
                    self.system,
                    "--host",
                    self.name,
                    "--directory",
                    str(self.directory.absolute()),
                    "--leash",
                    f"{self.leash_s:g}",
                    "--to-the-end",
                ]
            )[1:],
        ]
        log = str(self.directory.absolute() / "agent.log").replace("%", "%%")
        status, out, complaint = await said(
            "sbatch",
            "--parsable",
            f"--job-name={self.job_name}",
            "--nodes=1",
            "--ntasks=1",
            f"--nodelist={self.node}",
            "--exclusive",
            "--mem=0",
            "--no-requeue",
            "--export=RODEO_HOST=" + self.name,
            "--propagate=NONE",
            "--chdir=/",
            f"--output={log}",
            "--open-mode=append",
            seconds=COMMAND_S * self.patience,
            input=script(agent).encode(),
        )
        number = out.split(";")[0].strip()
        if status != 0 or not number.isdigit():
            raise Refused("control.launch", f"{self.name}: sbatch: {last_line(complaint) or out}", "")
        return number

    async def granted(self):
        """Returns when the agent answers; submits a job if there is none. Refused(control.launch) names what the job waits for; a job that has not begun
        is then cancelled."""
        async with self._granting:
            began = time.monotonic()
            deadline = began + GRANTED_S * self.patience
            job = hopeless_since = None
            while True:
                self.try_again()
                try:
                    await self.reached()
                    return
                except NoJob:
                    if job is not None:
                        raise Refused(
                            "control.launch",
                            f"{self.name}: job {job} has ended at once: {self._last_words()}",
                            f"its log is {self.directory / 'agent.log'}",
                        ) from None
                    job = await self.submit()
                except Refused as refused:
                    now = time.monotonic()
                    if not any(word in refused.what for word in HOPELESS):
                        hopeless_since = None
                    elif hopeless_since is None:
                        hopeless_since = now
                    if (
                        now > deadline
                        or hopeless_since is not None
                        and now - hopeless_since > HOPELESS_S * self.patience
                    ):
                        await self._cancel_waiting_job()
                        raise Refused(
                            "control.launch",
                            f"{self.name} has no agent after {time.monotonic() - began:.0f} s: {refused.what}",
                            "sinfo -R, scontrol show node",
                        ) from None
                await asyncio.sleep(LOOK_S)

    async def _cancel_waiting_job(self):
        with contextlib.suppress(Refused):
            if (job := await self.job()) is not None and job[1] in WAITING:
                await said("scancel", job[0], seconds=COMMAND_S * self.patience)

    def _last_words(self):
        return (agent_logs.tail(self.directory / "agent.log", 1) or ["its log is empty"])[0][:300]

    # Answers from the agent's last note, without an agent

    def _note(self):
        try:
            found = json.loads((self.directory / "agent.json").read_text())
            return found if isinstance(found, dict) and isinstance(found.get("processes"), list) else {"processes": []}
        except (OSError, ValueError):
            return {"processes": []}

    def _remains(self):
        found = []
        for each in self._note()["processes"]:
            with contextlib.suppress(Refused, TypeError):
                found.append(process_of({**each, "state": "exited"}))
        return found

    async def _without_a_job(self, work, otherwise):
        try:
            return await work
        except NoJob:
            return await asyncio.to_thread(otherwise)

    # The calls of every host

    async def launch(self, spec):
        self._launching += 1
        try:
            await self.granted()
            try:
                return await super().launch(spec)
            except Refused as refused:
                if refused.code != "control.agent_leaves" and (
                    refused.code != "control.host_silent" or self._writer is not None
                ):
                    raise
            await self._disconnect()  # the job was given back at this moment
            await self.granted()
            return await super().launch(spec)
        finally:
            self._launching -= 1

    async def list(self):
        found = await self._without_a_job(super().list(), self._remains)
        if found or self._writer is None or self._launching:
            self._idle_since = None
        elif self._idle_since is None:
            self._idle_since = time.monotonic()
        elif time.monotonic() - self._idle_since > self.idle_s:
            self._idle_since = None
            with contextlib.suppress(Refused):
                await self.request("leave")
        return found

    async def forget(self, name):
        def otherwise():
            note = self._note()
            note["processes"] = [
                each for each in note["processes"] if not (isinstance(each, dict) and each.get("name") == name)
            ]
            part = self.directory / "agent.part"
            with contextlib.suppress(OSError):
                part.write_text(json.dumps(note))
                os.replace(part, self.directory / "agent.json")

        await self._without_a_job(super().forget(name), otherwise)

    async def signal(self, name, number):
        def otherwise():
            raise Refused("control.not_launched", f"{name} has ended with its job", "")

        await self._without_a_job(super().signal(name, number), otherwise)

    async def end(self, name, grace_s):
        await self._without_a_job(super().end(name, grace_s), lambda: None)

    async def ask(self, name, request, timeout_s):
        def otherwise():
            raise Refused("control.unreachable", f"{name} has ended with its job", "")

        return await self._without_a_job(super().ask(name, request, timeout_s), otherwise)

    async def tail(self, name, lines, search=""):
        def otherwise():
            log = next((each.log for each in self._remains() if each.name == name), None)
            return agent_logs.tail(log, int(lines), search) if log else []

        return await self._without_a_job(super().tail(name, lines, search), otherwise)

    async def records(self, names, wanted):
        names = list(names)

        def otherwise():
            logs = {
                name: (
                    self.directory / "agent.log" if name == "agent" else self.directory / "logs" / f"{name}.log",
                    ((), ()),
                )
                for name in names
            }
            return newest(logs, wanted, LONGEST_READ_OF_LOGS)

        return await self._without_a_job(super().records(names, wanted), otherwise)

    async def disk(self, path):
        def otherwise():
            found = free_and_total(os.fspath(path))
            if found is None:
                raise Refused("control.disk", f"the file system of {path} cannot be read", "")
            return found

        return await self._without_a_job(super().disk(path), otherwise)

    async def sha256(self, paths):
        paths = [os.fspath(path) for path in paths]
        return await self._without_a_job(
            super().sha256(paths), lambda: {path: sum for path in paths if (sum := sha256_of(path)) is not None}
        )

    async def read(self, path, most):
        return await self._without_a_job(super().read(path, most), lambda: end_of(os.fspath(path), int(most)))


def last_line(text):
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1][:300] if lines else ""
