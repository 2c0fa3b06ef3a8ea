"""A Slurm cluster of two nodes on this machine: slurmctld, two slurmd and munged of Debian's packages, in a temporary directory on free ports."""

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import time
from pathlib import Path

from conftest import scaled

PROGRAMS = {"munged": "munge", "slurmctld": "slurmctld", "slurmd": "slurmd", "sbatch": "slurm-client"}
PATH = os.environ["PATH"] + ":/usr/sbin:/sbin"
MISSING = [package for program, package in PROGRAMS.items() if shutil.which(program, path=PATH) is None]
FREEZER = Path("/sys/fs/cgroup/freezer")
KILL_WAIT_S = round(scaled(10))


def tracker():
    """How Slurm tracks a job's processes here: by a cgroup (version 1) if we may make one, else by parent processes."""
    try:
        probe = FREEZER / f"rodeo-{os.getpid()}"
        probe.mkdir()
        probe.rmdir()
        return "proctrack/cgroup"
    except OSError:
        return "proctrack/linuxproc"


class Cluster:
    """Nodes `n1` and `n2`. `environment` lets Slurm's commands use this cluster."""

    def __init__(self, home):
        self.home, self.running, self.tracker = home, {}, tracker()
        for name in ("state", "spool-n1", "spool-n2", "munge"):
            (home / name).mkdir(mode=0o755)
        self.environment = {**os.environ, "PATH": PATH, "SLURM_CONF": str(home / "slurm.conf")}
        controller, *daemons = free_ports(3)
        node = socket.gethostname().split(".")[0]
        self.munge = home / "munge" / "socket"
        key = home / "munge" / "key"
        key.write_bytes(os.urandom(128))
        key.chmod(0o400)
        (home / "cgroup.conf").write_text(
            "CgroupPlugin=cgroup/v1\nCgroupMountpoint=/sys/fs/cgroup\nCgroupAutomount=no\nConstrainCores=no\nConstrainRAMSpace=no\n"
        )
        (home / "slurm.conf").write_text(f"""
ClusterName=rodeo
SlurmctldHost={node}(127.0.0.1)
SlurmctldPort={controller}
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={self.munge}
CredType=cred/munge
MpiDefault=none
ProctrackType={self.tracker}
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
SchedulerType=sched/builtin
SlurmctldPidFile={home}/slurmctld.pid
SlurmdPidFile={home}/slurmd-%n.pid
SlurmdSpoolDir={home}/spool-%n
StateSaveLocation={home}/state
JobCompType=jobcomp/none
AccountingStorageType=accounting_storage/none
JobAcctGatherType=jobacct_gather/none
ReturnToService=2
InactiveLimit=0
KillWait={KILL_WAIT_S}
SlurmdTimeout=0
MailProg=/bin/true
NodeName=n1 NodeHostname={node} NodeAddr=127.0.0.1 Port={daemons[0]} CPUs=1 RealMemory=500 State=UNKNOWN
NodeName=n2 NodeHostname={node} NodeAddr=127.0.0.1 Port={daemons[1]} CPUs=1 RealMemory=500 State=UNKNOWN
PartitionName=readout Nodes=n1,n2 Default=YES MaxTime=INFINITE State=UP
""")

    def start(self, name, *arguments):
        """Starts a daemon by name: `slurmctld`, `n1`, `n2`."""
        program = {"n1": "slurmd", "n2": "slurmd"}.get(name, name)
        if program == "slurmd":
            arguments = ("-D", "-f", str(self.home / "slurm.conf"), "-N", name)
        with open(self.home / f"{name}.log", "ab") as log:
            self.running[name] = subprocess.Popen(
                [shutil.which(program, path=PATH), *arguments],
                env=self.environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def open(self):
        directory = self.home / "munge"
        self.start(
            "munged",
            "--foreground",
            "--force",
            f"--socket={self.munge}",
            f"--key-file={directory}/key",
            f"--pid-file={directory}/pid",
            f"--log-file={directory}/log",
            f"--seed-file={directory}/seed",
        )
        self.until(self.munge.exists)
        self.start("slurmctld", "-D", "-f", str(self.home / "slurm.conf"))
        for node in ("n1", "n2"):
            self.start(node)
        self.until(lambda: all(self.node_state(node).startswith("idle") for node in ("n1", "n2")))

    def said(self, *argv):
        return subprocess.run(
            argv, env=self.environment, text=True, capture_output=True, stdin=subprocess.DEVNULL, timeout=scaled(60)
        ).stdout.strip()

    def node_state(self, node):
        return self.said("sinfo", "--noheader", f"--nodes={node}", "--format=%T")

    def jobs(self):
        """Returns (id, state) of all unfinished jobs."""
        return [tuple(line.split("|")) for line in self.said("squeue", "--noheader", "--format=%i|%T").splitlines()]

    def note(self):
        """The saved state of slurmctld's jobs."""
        try:
            return (self.home / "state" / "job_state").read_bytes()
        except OSError:
            return b""

    def kill(self, name, number=signal.SIGKILL):
        self.running[name].send_signal(number)
        self.running.pop(name).wait(timeout=scaled(60))

    def cgroups(self):
        """Cgroups of job steps on our nodes, with their pids."""
        found = {}
        for node in ("n1", "n2"):
            for tasks in (FREEZER / f"slurm_{node}").rglob("cgroup.procs"):
                if "step_" in str(tasks):
                    with contextlib.suppress(OSError):
                        found[str(tasks.parent)] = tasks.read_text().split()
        return found

    def until(self, condition, seconds=60):
        deadline = time.monotonic() + scaled(seconds)
        while not condition():
            assert time.monotonic() < deadline, self.words()
            time.sleep(0.1)

    def words(self):
        return "\n".join(f"{log.name}: {log.read_text()[-1500:]}" for log in sorted(self.home.glob("*.log")))

    def close(self):
        """Ends jobs at once, then the daemons; removes the cgroups that they leave."""
        with contextlib.suppress(subprocess.TimeoutExpired, AssertionError):
            self.said("scancel", "--signal=KILL", "--full", "--name=", "--user=" + str(os.geteuid()))
            for number, _ in self.jobs():
                self.said("scancel", "--signal=KILL", "--full", number)
                self.said("scancel", number)
            self.until(lambda: not self.jobs())
        for name in [name for name in ("n1", "n2", "slurmctld", "munged") if name in self.running]:
            process = self.running.pop(name)
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(timeout=scaled(60))
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        for node in ("n1", "n2"):
            above = FREEZER / f"slurm_{node}"
            for directory in sorted(
                (each for each in above.rglob("*") if each.is_dir()), key=lambda each: len(str(each)), reverse=True
            ):
                with contextlib.suppress(OSError):
                    directory.rmdir()
            with contextlib.suppress(OSError):
                above.rmdir()


def free_ports(count):
    with contextlib.ExitStack() as held:
        sockets = [held.enter_context(socket.socket()) for _ in range(count)]
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]
