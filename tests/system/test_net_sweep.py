"""`rodeo net sweep`, `plot` and `size`: from a user's file to numbers; continued after a kill; wrong files."""

import concurrent.futures
import contextlib
import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from conftest import BUILD, ROOT, scaled

if not list((BUILD / "python" / "rodeo").glob("_network*.so")):
    pytest.skip(
        "this build has no Python modules (sanitizers, or python3-dev or nanobind is missing)", allow_module_level=True
    )
sys.path.insert(0, str(BUILD / "python"))
from rodeo.network import executors, fit, journal, search  # noqa: E402
from rodeo.network.methods import Task  # noqa: E402
from rodeo.network.runner import Runner  # noqa: E402

NETWORK = """
[network.topology]
readouts = 4
nodes = 4
readout_link = "25Gbps"
uplink = "40Gbps"
uplinks = 4
node_link = "10Gbps"
[network.traffic]
event_size = "100kB"
rate = "20kHz"
[network.simulation]
engine = "train"
duration = "5ms"
"""
SWEEP = (
    NETWORK
    + """
[network.executor]
workers = 2
[network.sweep]
repeats = 2
search = "buffer"
low = "10kB"
high = "2MB"
[[network.sweep.axis]]
key = "event_size"
values = ["50kB", "100kB", "200kB"]
[[network.sweep.axis]]
key = "rate"
from = "2kHz"
to = "10kHz"
steps = 3
"""
)


@pytest.fixture
def net(rodeo):
    rodeo.environment["RODEO_PYTHON"] = sys.executable

    def run(verb, text, *arguments, **options):
        (rodeo.directory / "network.toml").write_text(text)
        return rodeo("net", verb, "network.toml", *arguments, **options)

    return run


def test_a_search_finds_the_buffer_that_holds_and_the_surface_through_it(net, rodeo):
    found = json.loads(net("sweep", SWEEP, "--json", "-", "--at", "200kB,10kHz").stdout)
    assert len(found["rows"]) == 18
    for row in found["rows"]:
        assert row["buffer_bytes_with_drops"] < row["buffer_bytes"] <= row["buffer_bytes_with_drops"] * 1.011 + 1
    largest = max(row["buffer_bytes"] for row in found["rows"])
    assert found["fit"]["value_mb"] == pytest.approx(largest * 1e-6, rel=0.1)
    assert {"surface", "large load"} <= set(found["fit"]["models"])
    rows = journal.read_parquet(rodeo.directory / "sweep" / "results.parquet")
    assert [row["buffer_bytes"] for row in rows] == [row["buffer_bytes"] for row in found["rows"]]
    assert len(journal.read_parquet(rodeo.directory / "sweep" / "runs.parquet")) == found["runs"]["done"]
    # At the second sweep, the journal has all runs.
    again = json.loads(net("sweep", SWEEP, "--json", "-", "--at", "200kB,10kHz").stdout)
    assert again["rows"] == found["rows"] and again["runs"]["done"] == 0
    rodeo("net", "plot", "sweep", "--x", "rate", "--by", "event_size", "--out", "picture.png")
    assert (rodeo.directory / "picture.png").read_bytes().startswith(b"\x89PNG")
    assert "no column size" in rodeo("net", "plot", "sweep", "--x", "size", exit_code=2).stderr


@pytest.mark.parametrize("example", sorted(path.name for path in (ROOT / "examples" / "network").glob("*.toml")))
def test_the_examples_are_valid(rodeo, example):
    assert "valid" in rodeo("check", ROOT / "examples" / "network" / example).stdout


def test_the_example_of_a_sweep_runs(rodeo):
    rodeo.environment["RODEO_PYTHON"] = sys.executable
    quick = [word for one in ("sweep.repeats=1", "simulation.duration=5ms") for word in ("--set", f"network.{one}")]
    found = json.loads(
        rodeo(
            "net", "sweep", ROOT / "examples" / "network" / "sweep.toml", *quick, "--at", "800kB,20kHz", "--json", "-"
        ).stdout
    )
    assert len(found["rows"]) == 16 and found["fit"]["value_mb"] == pytest.approx(
        found["rows"][-1]["buffer_bytes"] * 1e-6, rel=0.1
    )


def test_a_buffer_that_was_found_is_the_largest_occupancy(net):
    """Two ways to the same number: bisection with a finite buffer, and the occupancy of an infinite one."""
    text = SWEEP.replace("repeats = 2", "repeats = 1")
    searched = json.loads(net("sweep", text, "--json", "-").stdout)["rows"]
    measured = json.loads(net("sweep", text.replace('search = "buffer"', 'search = "none"'), "--json", "-").stdout)[
        "rows"
    ]
    assert [row["buffer_bytes"] for row in searched] == pytest.approx(
        [row["max_buffer_bytes"] for row in measured], rel=0.015
    )


def test_a_search_for_the_rate_ends_where_the_formula_does(net):
    text = (
        NETWORK
        + '[network.switch]\nbuffer = "120kB"\n[network.sweep]\nmethod = "formula"\nsearch = "rate"\nlow = "100Hz"\nhigh = "40kHz"\ntolerance = 0.001\n'
    )
    row = json.loads(net("sweep", text, "--json", "-").stdout)["rows"][0]
    from rodeo import network

    exact = network.highest_rate("120kB", "100kB", input="40Gbps", output="10Gbps", ports=4, mtu=1500, readouts=4)
    assert row["rate_hz"] == pytest.approx(exact, rel=0.002)


def semaphores_of_session(leader):
    """The files of semaphores that processes of a session have mapped; other sessions may make some at the same time."""
    found = set()
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if os.getsid(int(process.name)) == leader:
                found.update(
                    Path(line.split(maxsplit=5)[5])
                    for line in (process / "maps").read_text().splitlines()
                    if "/dev/shm/sem.mp-" in line
                )
    return found


def test_a_sweep_that_was_killed_goes_on_where_it_stopped(rodeo, net):
    text = SWEEP.replace('duration = "5ms"', 'duration = "200ms"').replace("workers = 2", "workers = 1")
    (rodeo.directory / "network.toml").write_text(text)
    journal_file = rodeo.directory / "sweep" / "journal.sqlite"

    def written():
        try:
            with sqlite3.connect(f"file:{journal_file}?mode=ro", uri=True) as database:
                return database.execute("SELECT COUNT(*) FROM runs").fetchone()[0]
        except sqlite3.Error:
            return 0

    process = rodeo.start("net", "sweep", "network.toml", start_new_session=True)
    deadline = time.monotonic() + scaled(60)
    while written() < 5:
        assert process.poll() is None and time.monotonic() < deadline
        time.sleep(0.05)
    semaphores = semaphores_of_session(process.pid)
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate(timeout=scaled(20))
    for left in semaphores:
        left.unlink(missing_ok=True)  # the kill also ended Python's tracker of semaphores
    before = written()
    assert before >= 5 and not (rodeo.directory / "sweep" / "results.parquet").exists()
    found = json.loads(net("sweep", text.replace("workers = 1", "workers = 2"), "--json", "-").stdout)
    assert found["runs"]["known"] >= before and len(found["rows"]) == 18


def test_a_fit_is_not_evaluated_where_the_network_would_be_overloaded(net):
    done = net("sweep", SWEEP, "--json", "-", "--at", "5MB,12kHz")
    assert "models" not in json.loads(done.stdout)["fit"] and "carries 40" in json.loads(done.stdout)["fit"]["refused"]
    assert "no fit at 5 MB and 12 kHz" in done.stderr


def processes_of(session):
    """Running processes with their command lines."""
    found = []
    for directory in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            state, _, _, one = (directory / "stat").read_text().rpartition(")")[2].split()[:4]
            if int(one) == session and state != "Z":
                found.append((directory / "cmdline").read_bytes().replace(b"\0", b" ").decode())
    return found


def started(rodeo):
    """A long sweep that has started its runs."""
    (rodeo.directory / "network.toml").write_text(SWEEP.replace('duration = "5ms"', 'duration = "200s"'))
    process = rodeo.start("net", "sweep", "network.toml", start_new_session=True)
    journal_file, deadline = rodeo.directory / "sweep" / "journal.sqlite", time.monotonic() + scaled(60)
    while not journal_file.exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    assert journal_file.exists() and process.poll() is None
    return process


def nobody_is_left(session):
    deadline = time.monotonic() + scaled(30)
    while processes_of(session) and time.monotonic() < deadline:
        time.sleep(0.05)
    return not processes_of(session)


@pytest.mark.parametrize("killed", ["rodeo", "python"])
def test_a_sweep_that_is_killed_leaves_no_process_behind(rodeo, killed):
    process = started(rodeo)
    try:
        victim = (
            process.pid
            if killed == "rodeo"
            else int(Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()[0])
        )
        while not any("forkserver" in line for line in processes_of(process.pid)):
            assert process.poll() is None
            time.sleep(0.05)
        os.kill(victim, signal.SIGKILL)
        process.communicate(timeout=scaled(60))
        assert nobody_is_left(process.pid)
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)


def test_a_folder_belongs_to_one_sweep_at_a_time(rodeo):
    process = started(rodeo)
    job = (rodeo.directory / "sweep" / "job.json").read_text()
    for verb in ("sweep", "size"):
        done = rodeo(
            "net", verb, "network.toml", "--out", "sweep", "--set", "network.simulation.duration=1ms", exit_code=None
        )
        assert "network.folder_in_use" in done.stderr and done.returncode == 5
    assert (rodeo.directory / "sweep" / "job.json").read_text() == job
    process.terminate()
    process.communicate(timeout=scaled(60))
    assert nobody_is_left(process.pid)


@pytest.mark.parametrize(
    "interrupt",
    [lambda process: os.killpg(process.pid, signal.SIGINT), lambda process: process.terminate()],
    ids=["ctrl_c", "sigterm"],
)
def test_a_sweep_is_ended_with_a_word_and_no_traceback(rodeo, interrupt):
    (rodeo.directory / "network.toml").write_text(SWEEP.replace('duration = "5ms"', 'duration = "20s"'))
    with rodeo.start("net", "sweep", "network.toml", start_new_session=True) as process:
        journal_file, deadline = rodeo.directory / "sweep" / "journal.sqlite", time.monotonic() + scaled(60)
        while not journal_file.exists() and time.monotonic() < deadline:
            time.sleep(0.05)
        time.sleep(0.5)
        interrupt(process)
        _, said = process.communicate(timeout=scaled(60))
    assert process.returncode == 6 and said.startswith("interrupted; ")
    assert "Traceback" not in said and "KeyboardInterrupt" not in said
    deadline = time.monotonic() + scaled(10)
    while processes_of(process.pid) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not processes_of(process.pid), "no process of the sweep is left"


def test_a_sweep_that_ignores_ctrl_c_goes_on(rodeo):
    """The background of a script ignores Ctrl-C. So do the sweep's workers then."""
    (rodeo.directory / "network.toml").write_text(SWEEP.replace('duration = "5ms"', 'duration = "20ms"'))
    process = rodeo.start(
        "net",
        "sweep",
        "network.toml",
        start_new_session=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_IGN),
    )
    with process:
        deadline = time.monotonic() + scaled(60)
        while (
            not any("spawn_main" in line or "forkserver" in line for line in processes_of(process.pid))
            and time.monotonic() < deadline
        ):
            time.sleep(0.01)
        assert process.poll() is None, "it has ended before the first signal"
        deadline = time.monotonic() + scaled(120)
        while process.poll() is None:
            if time.monotonic() > deadline:
                os.killpg(process.pid, signal.SIGKILL)
                pytest.fail("the sweep does not end")
            os.killpg(process.pid, signal.SIGINT)
            time.sleep(0.1)
        _, said = process.communicate(timeout=scaled(60))
    assert process.returncode == 0, said


def test_points_that_ask_for_too_much_say_so_and_the_others_go_on(net):
    text = NETWORK + '[network.sweep]\n[[network.sweep.axis]]\nkey = "rate"\nvalues = ["10kHz", "90kHz"]\n'
    rows = json.loads(net("sweep", text, "--json", "-").stdout)["rows"]
    assert rows[0]["max_buffer_bytes"] > 0 and "carries 40" in rows[1]["overload"]


@pytest.mark.parametrize(
    "change, code, says",
    [
        (("readouts = 4", "readouts = 0"), "network.zero", "readouts is 0"),
        (('event_size = "100kB"', 'event_size = "0"'), "network.zero", "event size is 0"),
        (('rate = "20kHz"', 'rate = "90kHz"'), "network.overload", "carries 40"),
        (('node_link = "10Gbps"', 'node_link = "10GB"'), "base.bad_bit_rate", "network.toml:"),
        (("nodes = 4", "nodes = 4\nracks = 3"), "network.topology", "rack"),
        (("nodes = 4", "node = 4"), "config.unknown_key", "did you mean `nodes`"),
        (('engine = "train"', 'engine = "plane"'), "config.", "network.toml:"),
    ],
)
def test_a_network_that_cannot_be_is_refused_with_its_place(net, rodeo, change, code, says):
    for verb in ("size", "sweep"):
        done = net(
            verb, (NETWORK if verb == "size" else NETWORK + "[network.sweep]\n").replace(*change), exit_code=None
        )
        if verb == "sweep" and code == "network.overload":
            continue  # a sweep accepts points with overload
        assert done.returncode == 3 and code in done.stderr and says in done.stderr, done.stderr
    if code != "network.overload":
        assert code in rodeo("check", "network.toml", exit_code=3).stderr


@pytest.mark.parametrize(
    "sweep, says",
    [
        ('[[network.sweep.axis]]\nkey = "evnt_size"\nvalues = ["1MB"]\n', "event_size"),
        ('[[network.sweep.axis]]\nkey = "rate"\nvalues = ["fast"]\n', "fast"),
        ('[[network.sweep.axis]]\nkey = "rate"\nfrom = "1kHz"\n', "steps"),
        ('[[network.sweep.axis]]\nkey = "rate"\nfrom = "0"\nto = "1kHz"\nsteps = 3\nscale = "log"\n', "above 0"),
        ('search = "rate"\nlow = "2kHz"\n', "high"),
        ('search = "rate"\nlow = "2kHz"\nhigh = "1kHz"\n', "low < high"),
        (
            'search = "rate"\nlow = "2kHz"\nhigh = "4kHz"\n[[network.sweep.axis]]\nkey = "rate"\nvalues = ["1kHz"]\n',
            "searched for",
        ),
    ],
)
def test_a_sweep_that_cannot_be_is_refused(net, sweep, says):
    assert says in net("sweep", NETWORK + "[network.sweep]\n" + sweep, exit_code=3).stderr


def test_a_file_without_a_network_or_a_sweep_is_refused(net):
    assert "no [network]" in net("size", '[run]\nnumber = 2\n[readout.input]\ntype = "generator"\n', exit_code=3).stderr
    assert "network.sweep" in net("sweep", NETWORK, exit_code=3).stderr


def test_a_python_that_lacks_something_is_named(net, rodeo):
    rodeo.environment["RODEO_PYTHON"] = "/nowhere/python3"
    (rodeo.directory / "network.toml").write_text(NETWORK)
    assert "cli.python" in rodeo("net", "size", "network.toml", exit_code=1).stderr
    rodeo.environment["RODEO_PYTHON"] = "/usr/bin/python3"  # the distribution's interpreter lacks this project's NumPy
    if subprocess.run(["/usr/bin/python3", "-c", "import scipy, pyarrow"], capture_output=True).returncode != 0:
        assert "cli.python" in rodeo("net", "size", "network.toml", exit_code=1).stderr


@pytest.mark.slow
@pytest.mark.parametrize("executor", ["dask-local"])
def test_other_executors_give_the_same_numbers(net, executor):
    local = json.loads(net("sweep", SWEEP, "--json", "-", "--out", "local").stdout)["rows"]
    other = json.loads(
        net(
            "sweep", SWEEP, "--set", f"network.executor.kind={executor}", "--json", "-", "--out", "other", timeout=170
        ).stdout
    )["rows"]
    assert other == local


def test_bisection_asks_for_as_few_runs_as_it_takes():
    def drive(task, edge, quantity, **limits):
        asked = []
        generator = search.bisect(task, quantity, **limits)
        try:
            probe = generator.send(None)
            while True:
                asked.append(probe.settings[quantity])
                bad = asked[-1] > edge if quantity == "rate" else asked[-1] < edge
                probe = generator.send({"drops": int(bad), "packets_data": 1000})
        except StopIteration as end:
            return end.value, asked

    task = Task("simulation", {"seed": 1})
    found, asked = drive(task, 12345, "rate", low=1000, high=20000, tolerance=0.001)
    assert (
        found.good <= 12345 < found.bad
        and found.bad - found.good <= 0.0011 * found.bad
        and len(asked) == found.probes < 20
    )
    assert drive(task, 10**9, "rate", low=1000, high=20000)[0] == search.Found(20000, None, 1)
    assert drive(task, 1, "rate", low=1000, high=20000)[0] == search.Found(None, 1000, 2)
    found, _ = drive(task, 777, "buffer", low=10, high=20000, tolerance=0.0001)
    assert (found.good, found.bad) == (777, 776)
    for wrong in (dict(low=0, high=1), dict(low=2, high=1), dict(low=1, high=2, tolerance=0)):
        with pytest.raises(ValueError):
            next(search.bisect(task, "rate", **wrong))


def test_a_fit_finds_the_surface_that_made_its_points():
    truth = np.array([0.5, 1.0, 0.2, 0.05, 0.1, 0.14])
    size, rate = (axis.ravel() for axis in np.meshgrid(np.arange(1, 9), np.arange(1, 20, 3)))
    random = np.random.default_rng(4)
    exact = fit.design(fit.MODELS["surface"], size.astype(float), rate.astype(float)) @ truth
    error = np.full(len(size), 0.3)
    points = (size, rate, exact + random.normal(0, 0.3, len(size)), error)
    found = fit.fit(*points)
    assert np.all(np.abs(found.parameters - truth) < 4 * np.sqrt(np.diag(found.covariance)))
    assert found.r2 > 0.99 and 0.4 < found.chi2 / found.degrees < 1.8
    for (low, high), sigma in zip(found.minos, np.sqrt(np.diag(found.covariance))):
        assert -low == pytest.approx(sigma, rel=0.05) == high
    # The closed solution in another way: by the pseudo-inverse of the weighted design matrix.
    matrix = fit.design(fit.MODELS["surface"], size.astype(float), rate.astype(float)) / error[:, None]
    assert found.parameters == pytest.approx(np.linalg.pinv(matrix) @ (points[2] / error), rel=1e-4, abs=1e-5)
    extrapolated, _ = fit.extrapolate(points, 10, 25)
    wanted = (fit.design(fit.MODELS["surface"], np.array([10.0]), np.array([25.0])) @ truth)[0]
    assert abs(extrapolated.value - wanted) < 4 * extrapolated.statistical
    assert extrapolated.model > 0 and set(extrapolated.by_model) == set(fit.MODELS)


@pytest.mark.parametrize(
    "points, says",
    [
        (([1, 2], [1, 2], [1, 2], [1, 1]), "cannot fix"),
        ((range(1, 9), [3] * 8, range(8), [1] * 8), "apart"),
        ((range(1, 9), range(1, 9), range(8), [0] * 8), "above 0"),
    ],
)
def test_a_fit_that_cannot_be_says_why(points, says):
    with pytest.raises(ValueError, match=says):
        fit.fit(*points)


def test_a_formula_is_drawn_against_time(rodeo):
    rodeo.environment["RODEO_PYTHON"] = sys.executable
    rodeo("net", "formula", "--plot", "even.svg")
    assert "bound, any arrivals" in (rodeo.directory / "even.svg").read_text()
    done = rodeo("net", "formula", "--arrivals", "poisson", "--plot", "poisson.png", "--json", "-")
    assert json.loads(done.stdout)["superposition"]["events"] == 10000
    assert (rodeo.directory / "poisson.png").read_bytes().startswith(b"\x89PNG")
    assert "a picture ends in" in rodeo("net", "formula", "--plot", "picture.txt", exit_code=3).stderr
    assert not list(rodeo.directory.glob("rodeo-formula-*"))


@pytest.mark.parametrize("there", ["missing", "file", "foreign"])
def test_laboratory_runs_need_no_directory_of_a_session(there, tmp_path, monkeypatch):
    """XDG_RUNTIME_DIR may name the directory of another user (after `sudo`), or of a session that has ended (in a batch job)."""
    session = tmp_path / there
    if there == "file":
        session.write_text("")
    if there == "foreign":
        session = Path("/") if os.geteuid() else tmp_path / there
        if not os.geteuid():
            session.mkdir()
            os.chown(session, 65534, 65534)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(session))
    monkeypatch.delenv("RODEO_RUNTIME_DIR", raising=False)
    with executors.laboratory_lock():
        own = Path(f"/tmp/rodeo-{os.geteuid()}")
        assert (
            (own / "laboratory.lock").exists() and own.stat().st_uid == os.geteuid() and not own.stat().st_mode & 0o022
        )


def test_laboratory_runs_never_overlap_with_anything(tmp_path, monkeypatch):
    """A script in place of the command records when it ran. Two sweeps run at once, with simulations in between."""
    log = tmp_path / "log"
    command = tmp_path / "rodeo"
    command.write_text(
        f"#!{sys.executable}\nimport json, time\nstart = time.time()\ntime.sleep(0.2)\nopen({str(log)!r}, 'a').write(f'{{start}} {{time.time()}}\\n')\n"
        "print(json.dumps(dict(failed=False, max_buffer_bytes=100.0, drops=0, retransmits=0, timeouts=0, events_completed=1, vetoes=0)))\n"
    )
    command.chmod(0o755)
    monkeypatch.setenv("RODEO", str(command))
    monkeypatch.setenv("RODEO_RUNTIME_DIR", str(tmp_path))

    def sweep(name):
        local = executors.Local(2)
        try:
            with journal.Journal(tmp_path / name) as book:
                tasks = [Task("laboratory", {"seed": seed, "rate": 1000}) for seed in range(4)]
                tasks += [
                    Task("simulation", {"seed": seed, "rate": 2000, "duration": 0.05, "engine": "train"})
                    for seed in range(4)
                ]
                return Runner(book, local).all(tasks)
        finally:
            local.close()

    with concurrent.futures.ThreadPoolExecutor() as both:
        results = list(both.map(sweep, ("a.sqlite", "b.sqlite")))
    assert all(one["max_buffer_bytes"] == pytest.approx(1000) for result in results for one in result[:4])
    times = sorted(tuple(map(float, line.split())) for line in log.read_text().splitlines())
    assert len(times) == 8
    assert all(end <= start for (_, end), (start, _) in zip(times, times[1:]))


@pytest.mark.parametrize(
    "kind, directives, wanted",
    [
        (
            "slurm",
            ["--account=tdaq"],
            ["#SBATCH -p daq", "#SBATCH --account=tdaq", "#SBATCH -t 00:20:00", "#SBATCH --cpus-per-task=2"],
        ),
        ("htcondor", ["+JobFlavour = workday"], ["+JobFlavour = workday", "accounting_group = daq", "RequestCpus"]),
    ],
)
def test_jobs_of_batch_systems_ask_for_what_was_configured(kind, directives, wanted, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", "/somewhere/python")
    with executors.batch_cluster(kind, "daq", 2, "1GB", "00:20:00", directives, ["ulimit -c 0"], "lo") as cluster:
        script = cluster.job_script()
    for line in [*wanted, "export PYTHONPATH=/somewhere/python", "ulimit -c 0", "distributed.cli.dask_worker"]:
        assert line in script, script


def test_a_laboratory_run_that_was_vetoed_is_not_journalled(tmp_path):
    class Vetoed:
        def submit(self, task):
            future = concurrent.futures.Future()
            future.set_result(({"failed": "vetoed"}, 0.1, "here"))
            return future

        def wait(self, futures):
            return futures, set()

    with journal.Journal(tmp_path / "journal.sqlite") as book:
        assert Runner(book, Vetoed()).all([Task("laboratory", {"seed": 1})]) == [{"failed": "vetoed"}]
        assert len(book) == 0


def test_the_journal_knows_a_run_by_its_settings_in_any_order(tmp_path):
    with journal.Journal(tmp_path / "journal.sqlite") as book:
        book.write("simulation", {"rate": 5, "seed": 1}, {"drops": 3}, 0.1)
        assert book.find("simulation", {"seed": 1, "rate": 5}) == {"drops": 3}
        assert (
            book.find("simulation", {"seed": 2, "rate": 5}) is None
            and book.find("formula", {"seed": 1, "rate": 5}) is None
        )
    with journal.Journal(tmp_path / "journal.sqlite") as book:
        assert len(book) == 1 and next(book.rows())["drops"] == 3
