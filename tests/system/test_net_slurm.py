"""A sweep as jobs of a real Slurm: slurmctld, slurmd and munged of Debian's packages, in a temporary directory on free ports."""

import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time

import pytest

from conftest import BUILD, scaled
from test_net_sweep import SWEEP

PROGRAMS = {"munged": "munge", "slurmctld": "slurmctld", "slurmd": "slurmd", "sbatch": "slurm-client"}
PATH = os.environ["PATH"] + ":/usr/sbin:/sbin"

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(os.geteuid() != 0, reason="host: slurmd needs root"),
    pytest.mark.skipif(
        any(shutil.which(name, path=PATH) is None for name in PROGRAMS),
        reason="Debian packages are missing: "
        + " ".join(PROGRAMS[name] for name in PROGRAMS if shutil.which(name, path=PATH) is None),
    ),
]


def free_ports(count):
    with contextlib.ExitStack() as held:
        sockets = [held.enter_context(socket.socket()) for _ in range(count)]
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]


@pytest.fixture
def slurm(tmp_path):
    """The environment in which sbatch uses a cluster with one node, this machine."""
    home = tmp_path / "slurm"
    for name in (".", "state", "spool", "munge"):
        (home / name).mkdir(mode=0o755, exist_ok=True)
    environment = {**os.environ, "PATH": PATH, "SLURM_CONF": str(home / "slurm.conf")}
    controller, daemon = free_ports(2)
    host = socket.gethostname().split(".")[0]
    munge = home / "munge" / "socket"
    key = home / "munge" / "key"
    key.write_bytes(os.urandom(128))
    key.chmod(0o400)
    (home / "slurm.conf").write_text(f"""
ClusterName=rodeo
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={controller}
SlurmdPort={daemon}
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={munge}
CredType=cred/munge
MpiDefault=none
ProctrackType=proctrack/pgid
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SchedulerType=sched/builtin
SlurmctldPidFile={home}/slurmctld.pid
SlurmdPidFile={home}/slurmd.pid
StateSaveLocation={home}/state
SlurmdSpoolDir={home}/spool
JobCompType=jobcomp/none
AccountingStorageType=accounting_storage/none
JobAcctGatherType=jobacct_gather/none
ReturnToService=2
InactiveLimit=0
KillWait=5
MailProg=/bin/true
NodeName={host} NodeAddr=127.0.0.1 CPUs={os.cpu_count()} RealMemory=4000 State=UNKNOWN
PartitionName=readout Nodes={host} Default=YES MaxTime=INFINITE State=UP
""")
    running = []

    def start(name, *arguments):
        log = open(home / f"{name}.log", "w")
        running.append(
            subprocess.Popen(
                [shutil.which(name, path=PATH), *arguments],
                env=environment,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        )
        log.close()

    try:
        start(
            "munged",
            "--foreground",
            "--force",
            f"--socket={munge}",
            f"--key-file={key}",
            f"--pid-file={home}/munge/pid",
            f"--log-file={home}/munge/log",
            f"--seed-file={home}/munge/seed",
        )
        wait_for(munge.exists, "munged", home)
        start("slurmctld", "-D", "-f", str(home / "slurm.conf"))
        start("slurmd", "-D", "-f", str(home / "slurm.conf"), "-N", host)

        def idle():
            told = subprocess.run(
                ["sinfo", "-h", "-o", "%T"], env=environment, text=True, capture_output=True, timeout=scaled(20)
            )
            return told.stdout.strip() == "idle"

        wait_for(idle, "sinfo", home)
        yield environment
    finally:
        subprocess.run(["scancel", "--user=root"], env=environment, capture_output=True, timeout=scaled(20))
        time.sleep(1)
        for process in reversed(running):
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(timeout=scaled(15))
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()


def wait_for(ready, what, home):
    deadline = time.monotonic() + scaled(40)
    while not ready():
        assert time.monotonic() < deadline, (
            what + ": " + "\n".join(f"{log.name}: {log.read_text()[-1500:]}" for log in home.glob("*.log"))
        )
        time.sleep(0.2)


def test_a_sweep_runs_as_jobs_of_slurm(slurm, rodeo):
    rodeo.environment |= {name: slurm[name] for name in ("PATH", "SLURM_CONF")} | {"RODEO_PYTHON": sys.executable}
    (rodeo.directory / "network.toml").write_text(SWEEP)
    as_jobs = [
        word
        for setting in ("kind=slurm", "workers=1", "queue=readout", "interface=lo", "memory=1GB")
        for word in ("--set", f"network.executor.{setting}")
    ]
    by_jobs = json.loads(
        rodeo("net", "sweep", "network.toml", *as_jobs, "--json", "-", "--out", "jobs", timeout=240).stdout
    )
    local = json.loads(rodeo("net", "sweep", "network.toml", "--json", "-", "--out", "local").stdout)
    assert by_jobs["rows"] == local["rows"] and by_jobs["runs"]["done"] > 50
    # A job did the run: Slurm knows the job, and its log exists.
    told = subprocess.run(
        ["scontrol", "show", "jobs", "-o"], env=slurm, text=True, capture_output=True, timeout=scaled(20)
    ).stdout
    assert "JobName=dask-worker" in told and "Partition=readout" in told
