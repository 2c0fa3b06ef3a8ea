"""Executors of runs: processes of this machine, or the workers of a Dask cluster (Slurm and HTCondor through dask-jobqueue).

All have submit(task) -> future, wait(futures) -> (done, not done), close(). A laboratory run needs the whole machine: two of them never
overlap, and the local executor runs nothing else at the same time.
"""

import concurrent.futures
import contextlib
import ctypes
import fcntl
import multiprocessing
import multiprocessing.forkserver
import os
import signal
import threading

from rodeo.control.paths import runtime_directory
from rodeo.signals import heard

from . import methods

CLUSTERS = ("local", "dask", "dask-local", "slurm", "htcondor")


@contextlib.contextmanager
def laboratory_lock():
    """Lock of a laboratory run on this host; other sweeps wait here."""
    with open(runtime_directory() / "laboratory.lock", "w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def work(task):
    """One run in the current process: (result, seconds, host)."""
    if task.method in ("laboratory", "farm"):
        with laboratory_lock():
            return methods.timed(task)
    return methods.timed(task)


def end_with_parent(number):
    """Makes the kernel send this process the signal when its parent ends for any reason."""
    ctypes.CDLL(None).prctl(1, number)  # PR_SET_PDEATHSIG


def _begin_worker(ends_on_interrupt):
    """Workers get Ctrl-C, too, unless the sweep ignores it: they end without a traceback, because the sweep reports it. The fork server ends with the
    sweep, and the workers end with the fork server."""
    if ends_on_interrupt:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    end_with_parent(signal.SIGKILL)
    if not multiprocessing.parent_process().is_alive():  # the parent died before prctl()
        os._exit(1)


def _start_server():
    """Starts the fork server of the workers with Ctrl-C ignored from the start."""
    if threading.current_thread() is not threading.main_thread():
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        multiprocessing.forkserver.ensure_running()
    finally:
        signal.signal(signal.SIGINT, before)


@contextlib.contextmanager
def _uninterrupted():
    """Delays Ctrl-C until the block ends: a worker that is just starting is not yet registered, so close() would not end it."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    came = []
    before = {
        number: signal.signal(number, lambda *_: came.append(True)) for number in heard(signal.SIGINT, signal.SIGTERM)
    }
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    if came:
        raise KeyboardInterrupt


class Local:
    """Processes of this machine. Laboratory runs wait until the others are done, and the others wait for them."""

    def __init__(self, workers=0):
        self.workers = workers or len(os.sched_getaffinity(0))
        _start_server()
        self.pool = concurrent.futures.ProcessPoolExecutor(
            self.workers,
            mp_context=multiprocessing.get_context("forkserver"),
            initializer=_begin_worker,
            initargs=(bool(heard(signal.SIGINT)),),
        )
        self.running = set()
        self.queued = []  # laboratory runs

    def submit(self, task):
        if task.method in ("laboratory", "farm"):
            future = concurrent.futures.Future()
            self.queued.append((future, task))
            return future
        with _uninterrupted():
            future = self.pool.submit(work, task)
            self.running.add(future)
        return future

    def wait(self, futures):
        pooled = {future for future in futures if future in self.running}
        if pooled:
            done, _ = concurrent.futures.wait(pooled, return_when=concurrent.futures.FIRST_COMPLETED)
            self.running -= done
        else:
            future, task = self.queued.pop(0)
            try:
                future.set_result(work(task))
            except Exception as failed:
                future.set_exception(failed)
            done = {future}
        return done, futures - done

    def close(self):
        if self.running:  # after an error or Ctrl-C, the results of running tasks are not needed
            for worker in multiprocessing.active_children():
                worker.terminate()
        self.pool.shutdown(wait=True, cancel_futures=True)


class Dask:
    """Workers of a cluster; close() closes `cluster`, too. Laboratory runs need the resource `laboratory`; start workers that may do
    them with: dask worker --resources laboratory=1."""

    def __init__(self, client, cluster=None):
        self.client, self.cluster = client, cluster

    def submit(self, task):
        return self.client.submit(
            work, task, pure=False, resources={"laboratory": 1} if task.method == "laboratory" else None
        )

    def wait(self, futures):
        import distributed

        done = distributed.wait(futures, return_when="FIRST_COMPLETED").done
        return done, futures - done

    def close(self):
        self.client.close()
        if self.cluster is not None:
            self.cluster.close()


def make(
    kind="local",
    *,
    workers=0,
    scheduler="",
    queue="",
    cores=1,
    memory="2GB",
    walltime="01:00:00",
    directives=(),
    prologue=(),
    interface=None,
):
    """kind: local; dask (a running scheduler at `scheduler`); dask-local (a cluster of processes on this machine); slurm, htcondor
    (`workers` jobs of `cores`, `memory`, `walltime` in `queue`; `directives` are lines for the job script)."""
    if kind == "local":
        return Local(workers)
    try:
        import distributed
    except ImportError as missing:
        raise RuntimeError(
            f"executor {kind} needs Dask: pip install distributed dask-jobqueue (see tools/requirements-test.txt)"
        ) from missing
    if kind == "dask":
        if not scheduler:
            raise ValueError('executor dask needs the address of a scheduler: scheduler = "tcp://host:8786"')
        return Dask(distributed.Client(scheduler, timeout="30s"))
    if kind == "dask-local":
        cluster = distributed.LocalCluster(
            n_workers=workers or len(os.sched_getaffinity(0)),
            threads_per_worker=1,
            dashboard_address=None,
            resources={"laboratory": 1} if workers == 1 else None,
        )
        return Dask(distributed.Client(cluster), cluster)
    if kind in ("slurm", "htcondor"):
        cluster = batch_cluster(kind, queue, cores, memory, walltime, directives, prologue, interface)
        cluster.scale(jobs=workers or 1)
        return Dask(distributed.Client(cluster), cluster)
    raise ValueError(f"there is no executor {kind}; use one of {', '.join(CLUSTERS)}")


def batch_cluster(kind, queue, cores, memory, walltime, directives, prologue, interface):
    """A cluster whose workers are jobs, before any is submitted. Jobs use this process's PYTHONPATH."""
    import dask_jobqueue

    environment = [f"export PYTHONPATH={os.environ['PYTHONPATH']}"] if os.environ.get("PYTHONPATH") else []
    options = {
        "cores": cores,
        "processes": cores,
        "memory": memory,
        "job_script_prologue": [*environment, *prologue],
        "interface": interface,
        "scheduler_options": {"dashboard_address": None},
    }
    if kind == "slurm":
        return dask_jobqueue.SLURMCluster(
            queue=queue or None, walltime=walltime, job_extra_directives=list(directives), **options
        )
    wrong = [line for line in directives if "=" not in line]
    if wrong:
        raise ValueError(f"a directive of HTCondor is NAME = VALUE, not {wrong[0]}")
    named = {name.strip(): value.strip() for name, value in (line.split("=", 1) for line in directives)}
    if queue:
        named["accounting_group"] = queue
    return dask_jobqueue.HTCondorCluster(disk="1GB", job_extra_directives=named, **options)
