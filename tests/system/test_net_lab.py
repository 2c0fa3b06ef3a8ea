"""`rodeo net lab`: real TCP through namespaces of this machine (root) and between hosts, which are namespaces, too. A run that the machine
disturbs is vetoed. The tests pass nevertheless, because they compare no times."""

import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from urllib.parse import parse_qs, urlparse

import pytest

from conftest import BUILD, scaled

EXAMPLES = Path(__file__).parents[2] / "examples"
SMALL = [
    "--readouts",
    4,
    "--nodes",
    4,
    "--node-link",
    "50Mbps",
    "--uplink",
    "400Mbps",
    "--event-size",
    "200kB",
    "--rate",
    "60",
    "--duration",
    "1s",
]
SEGMENT = 1448
SSHD = shutil.which("sshd", path=os.environ["PATH"] + ":/usr/sbin")


def cannot_make_namespaces():
    if os.geteuid() != 0:
        return "host: network namespaces and eBPF need root"
    if shutil.which("ip") is None or shutil.which("tc") is None:
        return "needs ip and tc (package iproute2)"
    if (
        subprocess.run(
            ["unshare", "--net", "ip", "link", "add", "x0", "type", "bridge"], capture_output=True
        ).returncode
        != 0
    ):
        return "host: this system allows no bridge in a network namespace"
    return None


needs_namespaces = pytest.mark.skipif(cannot_make_namespaces() is not None, reason=cannot_make_namespaces() or "")


def lab(rodeo, *arguments, exit_code=None, timeout=120):
    """The report of a laboratory. It may have only vetoed runs (exit 1)."""
    done = rodeo("net", "lab", *arguments, "--json", "-", exit_code=exit_code, timeout=timeout)
    assert done.returncode in (0, 1) and done.stdout, done.stderr
    return json.loads(done.stdout)


def all_runs(report):
    return report["runs"] + report["vetoed_runs"]


def agents_of(pid):
    """Processes that a laboratory started, found by a mark in their environment."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and f"RODEO_LABORATORY={pid}.".encode() in (entry / "environ").read_bytes():
                found.append(int(entry.name))
        except OSError:
            pass
    return found


def network_namespaces():
    spaces = set()
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit():
                spaces.add(os.readlink(entry / "ns/net"))
        except OSError:
            pass
    return spaces


@needs_namespaces
def test_an_infinite_buffer_drops_nothing_and_holds_what_the_closed_form_says(rodeo):
    report = lab(rodeo, *SMALL, "--buffer", "infinite")
    exact = report["exact_periodic_bytes"]
    for run in all_runs(report):
        assert run["drops"] == 0 and run["machine_drops"] == 0 and run["left_in_pool_bytes"] == 0
        assert run["events_completed"] == run["events_scheduled"] == 60
        assert run["max_buffer_bytes"] > 0
    for run in report["runs"]:  # the list has only undisturbed runs
        assert 0.8 * exact < run["max_buffer_bytes"] < 1.6 * exact
    assert report["vetoes"] == len(report["vetoed_runs"])
    assert {group["group"]: group["kept"] for group in report["scaling"]}["S f / O"] is True


@needs_namespaces
def test_a_shared_limit_gives_drops_and_is_never_exceeded(rodeo):
    report = lab(rodeo, *SMALL, "--buffer", "shared:60kB", "--duration", "500ms")
    for run in all_runs(report):
        assert run["drops"] > 0 and run["retransmits"] > 0
        assert 60_000 - 2 * (SEGMENT + 66) < run["max_buffer_bytes"] <= 60_000
        assert run["drops"] == sum(port["drops"] for port in run["ports"])


@needs_namespaces
def test_a_dynamic_threshold_drops_while_there_is_room_and_cells_are_counted(rodeo):
    report = lab(
        rodeo,
        *SMALL,
        "--buffer",
        "shared:1MB",
        "--dynamic-threshold",
        0.1,
        "--cell",
        "256B",
        "--cell-metadata",
        "64B",
        "--duration",
        "500ms",
    )
    assert "alpha 0.1" in report["buffer"] and "cells of 256" in report["buffer"]
    for run in all_runs(report):
        reasons = run["drops_by_reason"]
        assert reasons["threshold"] == run["drops"] > 0 and reasons["pool_full"] == reasons["port_limit"] == 0
        assert (
            run["max_buffer_bytes"] < run["max_buffer_cell_bytes"] < 4 * 100_000
        )  # each port may have a tenth of the free memory
        assert run["max_buffer_cell_bytes"] % 256 == 0
        assert run["left_in_pool_bytes"] == 0


@needs_namespaces
def test_racks_have_switches_of_their_own(rodeo):
    one = [
        "--readouts",
        2,
        "--node-link",
        "50Mbps",
        "--uplink",
        "400Mbps",
        "--event-size",
        "100kB",
        "--rate",
        "40",
        "--duration",
        "1s",
        "--buffer",
        "shared:4MB",
    ]
    report = lab(rodeo, *one, "--nodes", 4, "--racks", 2)
    for run in all_runs(report):
        assert run["events_scheduled"] == run["events_completed"] == 80  # 1 s at 40 Hz in each of two racks
        assert len(run["ports"]) == 4 and run["drops"] == 0
        assert run["max_buffer_bytes"] > 50_000
    assert rodeo("net", "lab", *one, "--nodes", 4, "--racks", 3, exit_code=2).stderr.count("network.topology") == 1


@needs_namespaces
def test_an_interrupted_point_reports_the_runs_that_had_ended(rodeo):
    with rodeo.start("net", "lab", *SMALL, "--duration", "300ms", "--repeats", 1000, "--json", "out.json") as process:
        while "events/s" not in process.stderr.readline():
            pass
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=scaled(60))
    if process.returncode == 1:
        pytest.skip("host: the machine is too busy to measure")
    assert process.returncode == 6 and "interrupted: " in said
    assert 1 <= len(all_runs(json.loads((rodeo.directory / "out.json").read_text()))) < 1000


@needs_namespaces
def test_buffers_of_ports_drop_on_their_own(rodeo):
    report = lab(rodeo, *SMALL, "--buffer", "port:30kB", "--duration", "500ms", "--tcp", "reno")
    for run in all_runs(report):
        assert run["drops"] > 0 and run["max_buffer_bytes"] is None
        assert len(run["ports"]) == 4


@needs_namespaces
def test_a_scaled_preset_says_what_it_stands_for(rodeo):
    report = lab(
        rodeo,
        "--preset",
        "lab-2023",
        "--readouts",
        4,
        "--nodes",
        4,
        "--rate",
        "10",
        "--event-size",
        "50kB",
        "--duration",
        "500ms",
        "--buffer",
        "shared:1MB",
    )
    assert report["node_link_bps"] == 25_000_000 and report["rto_min_us"] == 20_000_000
    assert all_runs(report)[0]["events_scheduled"] == 5


@needs_namespaces
def test_a_killed_laboratory_leaves_nothing(rodeo):
    with rodeo.start("net", "lab", *SMALL, "--duration", "100s") as process:
        deadline = time.monotonic() + scaled(30)
        while len(agents_of(process.pid)) < 8 and time.monotonic() < deadline:
            time.sleep(0.05)
        spaces = {os.readlink(f"/proc/{agent}/ns/net") for agent in agents_of(process.pid)}
        assert len(spaces) == 8 and spaces <= network_namespaces()
        process.send_signal(signal.SIGKILL)
        process.wait(scaled(10))
        pid = process.pid
    rodeo("net", "lab", "--clean")
    deadline = time.monotonic() + scaled(30)
    while agents_of(pid) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert agents_of(pid) == []
    assert not spaces & network_namespaces()  # no other process used the namespaces, so the kernel has removed them
    assert lab(rodeo, *SMALL, "--duration", "200ms")["vetoes"] >= 0  # the next laboratory starts


@needs_namespaces
def test_an_interrupted_laboratory_says_so(rodeo):
    with rodeo.start("net", "lab", *SMALL, "--duration", "100s") as process:
        deadline = time.monotonic() + scaled(30)
        while len(agents_of(process.pid)) < 8 and time.monotonic() < deadline:
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        _, talk = process.communicate(timeout=scaled(30))
    assert process.returncode == 6 and "network.interrupted" in talk
    assert agents_of(process.pid) == []


@pytest.mark.parametrize(
    "options, exit_code, says",
    [
        (["--rate", "1kHz"], 2, "network.overload"),
        (["--nodes", 1, "--rate", "11.8"], 2, "kHz at most"),
        (["--readouts", 0], 2, "network.zero"),
        (["--rate-scale", "0.1"], 2, "scales need a preset"),
        (["--size-scale", "0.1"], 2, "--size-scale"),
        (["--size-sigma", -1], 2, "network.bad_setting"),
        (["--jitter-periods", -1], 2, "network.bad_setting"),
        (["--switch", "acx7100"], 2, "virtual output queues"),
        (["--dynamic-threshold", 1], 2, "--buffer shared:SIZE"),
        (["--event-size", "0"], 2, "network.zero"),
        (["--node-link", "0bps"], 2, "network.zero"),
        (["--nodes", 300], 2, "network.unsupported"),
        (["--buffer", "shared:10"], 2, "one packet"),
        (["--buffer", "big"], 2, "write shared:"),
        (["--buffer", "10"], 2, "one packet"),
        (["--preset", "lab"], 2, "lab-2023"),
        (["--preset", "lab-2023", "--rate-scale", 0], 2, "network.zero"),
        (["--preset", "hl-lhc"], 2, "at most 250"),
        (["--assignment", "least-loaded"], 2, "round-robin"),
        (["--driver", "linux", "--driver-option", "ports=x"], 2, "--hosts"),
        (["--query", "up"], 2, "--prometheus"),
        (["--hosts", "nowhere.txt"], 3, "cannot be read"),
    ],
)
def test_what_cannot_be_measured_is_refused_at_once(rodeo, options, exit_code, says):
    assert says in rodeo("net", "lab", *options, exit_code=exit_code).stderr


@needs_namespaces
@pytest.mark.skipif(
    not list((BUILD / "python" / "rodeo").glob("_network*.so")), reason="this build has no Python modules"
)
def test_a_sweep_has_its_points_measured_here(rodeo):
    point = {
        "readouts": 4,
        "nodes": 2,
        "event_size": "500kB",
        "rate": "2kHz",
        "buffer": "2MB",
        "dedicated": "10kB",
        "port_limit": "1MB",
        "cell": 256,
        "cell_metadata": 64,
        "duration": "300ms",
    }
    asked = f"import json; from rodeo.network.methods import by_laboratory; print(json.dumps(by_laboratory({point})))"
    done = subprocess.run(
        [sys.executable, "-c", asked],
        env={**rodeo.environment, "RODEO": str(rodeo.binary), "PYTHONPATH": str(BUILD / "python")},
        capture_output=True,
        text=True,
        timeout=scaled(60),
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert (
        "failed" in found or found["max_buffer_bytes"] > 0
    )  # "failed" means vetoed: the machine is too busy to measure


def test_without_root_it_says_what_needs_it(rodeo):
    nobody = {"user": 65534, "group": 65534, "extra_groups": []} if os.geteuid() == 0 else {}
    try:
        refused = rodeo("net", "lab", "--duration", "100ms", exit_code=None, **nobody)
    except PermissionError:
        pytest.skip("host: the build directory is closed to other users")
    assert refused.returncode == 5, refused.stderr
    assert "network.needs_root" in refused.stderr and "--hosts" in refused.stderr


def loopback_hosts(rodeo, readouts=2, nodes=2, command="env"):
    file = rodeo.directory / "hosts.txt"
    file.write_text(
        "".join(
            [f"readout 127.0.0.{i + 1} {command}\n" for i in range(readouts)]
            + [f"node 127.0.1.{i + 1} {command}\n" for i in range(nodes)]
        )
    )
    return file


def test_hosts_are_reached_by_the_command_of_their_line(rodeo):
    report = lab(
        rodeo,
        "--hosts",
        loopback_hosts(rodeo, command="env WHERE=there"),
        "--agent",
        rodeo.binary,
        "--event-size",
        "100kB",
        "--rate",
        "50",
        "--duration",
        "500ms",
        "--tcp",
        "reno",
    )
    assert report["where"] == "hosts" and report["readouts"] == 2 and report["nodes"] == 2
    for run in all_runs(report):
        assert run["events_completed"] == run["events_scheduled"] == 25
        assert run["drops"] is None and run["clock_error_us"] > 0


@pytest.mark.parametrize(
    "command, says",
    [("no-such-command", "cannot start no-such-command"), ("true", "has ended"), ("yes nonsense", "unexpected answer")],
)
def test_a_host_that_cannot_be_used_is_named(rodeo, command, says):
    talk = rodeo(
        "net",
        "lab",
        "--hosts",
        loopback_hosts(rodeo, command=command),
        "--agent",
        rodeo.binary,
        "--rate",
        20,
        "--tcp",
        "reno",
        exit_code=1,
    ).stderr
    assert says in talk and "readout 127.0.0.1" in talk


class SmallNetwork:
    """Two readouts and two nodes around a bridge, in namespaces of sleeping processes: hosts and a Linux switch for the tool."""

    def __init__(self):
        self.sleepers = {
            name: subprocess.Popen(["unshare", "--net", "sleep", "600"]) for name in ("switch", "r0", "r1", "n0", "n1")
        }
        own = os.readlink("/proc/self/ns/net")
        for sleeper in self.sleepers.values():
            while (
                os.readlink(f"/proc/{sleeper.pid}/ns/net") == own
                or Path(f"/proc/{sleeper.pid}/comm").read_text().strip() != "sleep"
            ):
                time.sleep(0.01)
        self.run("switch", "ip link add tor type bridge")
        self.run("switch", "ip link set tor up")
        for i, name in enumerate(("r0", "r1", "n0", "n1")):
            self.run("switch", f"ip link add {name} type veth peer name eth0 netns {self.sleepers[name].pid}")
            self.run("switch", f"ip link set {name} master tor up")
            self.run(name, f"ip addr add 10.9.0.{i + 1}/24 dev eth0")
            self.run(name, "ip link set eth0 up")

    def reach(self, name):
        return f"nsenter --net=/proc/{self.sleepers[name].pid}/ns/net"

    def run(self, name, command):
        subprocess.run([*self.reach(name).split(), *command.split()], check=True)

    def close(self):
        for sleeper in self.sleepers.values():
            sleeper.kill()
            sleeper.wait()


@pytest.fixture
def network():
    network = SmallNetwork()
    yield network
    network.close()


@needs_namespaces
@pytest.mark.parametrize("driver", ["linux", "example"])
def test_a_driver_sets_the_buffers_of_a_switch_and_reads_its_drops(rodeo, network, driver):
    hosts = rodeo.directory / "hosts.txt"
    hosts.write_text(
        "".join(
            f"{'readout' if name[0] == 'r' else 'node'} 10.9.0.{i + 1} {network.reach(name)}\n"
            for i, name in enumerate(("r0", "r1", "n0", "n1"))
        )
    )
    option = [f"reach={network.reach('switch')}", "ports=n0,n1"]
    name = "linux" if driver == "linux" else EXAMPLES / "network/switch_driver.py"
    option.append("port_rate=50Mbps" if driver == "linux" else "rate=50mbit")
    arguments = [
        "--hosts",
        hosts,
        "--agent",
        rodeo.binary,
        "--driver",
        name,
        *[word for one in option for word in ("--driver-option", one)],
        "--event-size",
        "200kB",
        "--rate",
        "20",
        "--duration",
        "1s",
        "--node-link",
        "50Mbps",
    ]
    report = lab(rodeo, *arguments, "--buffer", "port:30kB")
    assert all(run["drops"] > 0 and len(run["ports"]) == 2 for run in all_runs(report))
    assert "2 ports" in report["switch"]
    report = lab(rodeo, *arguments, "--buffer", "infinite")
    assert all(run["drops"] == 0 for run in all_runs(report))
    refused = rodeo("net", "lab", *arguments, "--buffer", "shared:1MB", exit_code=None)
    assert refused.returncode in (1, 2) and "share" in refused.stderr


class DocumentedApi(BaseHTTPRequestHandler):
    """Answers as prometheus.io/docs/prometheus/latest/querying/api documents for /api/v1/query_range."""

    def do_GET(self):
        address = urlparse(self.path)
        asked = {key: values[0] for key, values in parse_qs(address.query).items()}
        if address.path == "/api/v1/query_range" and asked["query"] == 'drops{port="1"}':
            start, step = float(asked["start"]), float(asked["step"])
            status, answer = (
                200,
                {
                    "status": "success",
                    "data": {
                        "resultType": "matrix",
                        "result": [
                            {
                                "metric": {"__name__": "drops", "port": "1"},
                                "values": [[start, "3"], [start + step, "7.5"]],
                            }
                        ],
                    },
                },
            )
        else:
            status, answer = (
                400,
                {"status": "error", "errorType": "bad_data", "error": "parse error: unexpected end of input"},
            )
        body = json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


@pytest.fixture
def documented_api():
    with HTTPServer(("127.0.0.1", 0), DocumentedApi) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def on_loopback(rodeo, *arguments):
    return [
        "--hosts",
        loopback_hosts(rodeo),
        "--agent",
        rodeo.binary,
        "--event-size",
        "10kB",
        "--rate",
        "20",
        "--duration",
        "200ms",
        "--tcp",
        "reno",
        *arguments,
    ]


def test_time_series_of_the_network_come_with_the_report(rodeo, documented_api):
    report = lab(rodeo, *on_loopback(rodeo, "--prometheus", documented_api, "--query", 'drops{port="1"}'))
    (metric,) = report["metrics"]
    (series,) = metric["series"]
    assert series["labels"] == {"__name__": "drops", "port": "1"}
    assert series["first"] == 3 and series["last"] == series["max"] == 7.5 and len(series["samples"]) == 2
    assert (
        "refuses the query: parse error"
        in rodeo(
            "net", "lab", *on_loopback(rodeo, "--prometheus", documented_api, "--query", "drops{"), exit_code=1
        ).stderr
    )


def test_a_time_series_server_that_is_not_there_is_unreachable(rodeo):
    assert (
        "process.http_client"
        in rodeo(
            "net", "lab", *on_loopback(rodeo, "--prometheus", "http://127.0.0.1:9", "--query", "up"), exit_code=4
        ).stderr
    )
    assert (
        "process.http_client"
        in rodeo("net", "lab", *on_loopback(rodeo, "--prometheus", "monitor", "--query", "up"), exit_code=4).stderr
    )


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("prometheus") is None, reason="needs the package prometheus")
def test_a_real_prometheus_answers_queries(rodeo, tmp_path):
    configuration = tmp_path / "prometheus.yml"
    configuration.write_text("global: {scrape_interval: 1s}\n")
    with subprocess.Popen(
        [
            "prometheus",
            f"--config.file={configuration}",
            f"--storage.tsdb.path={tmp_path / 'data'}",
            "--web.listen-address=127.0.0.1:0",
        ],
        stderr=subprocess.PIPE,
        text=True,
    ) as server:
        try:
            port = None
            for line in server.stderr:
                if "Listening on" in line:
                    port = line.rsplit(":", 1)[1].strip().strip('"')
                if "Server is ready" in line:
                    break
            assert port and port != "0"
            address = f"http://127.0.0.1:{port}"
            report = lab(rodeo, *on_loopback(rodeo, "--prometheus", address, "--query", "vector(42)"))
            assert report["metrics"][0]["series"][0]["last"] == 42
            assert (
                "refuses the query"
                in rodeo(
                    "net", "lab", *on_loopback(rodeo, "--prometheus", address, "--query", "vector("), exit_code=1
                ).stderr
            )
        finally:
            server.terminate()


@pytest.mark.slow
@pytest.mark.skipif(SSHD is None, reason="needs sshd (package openssh-server)")
def test_hosts_are_reached_by_ssh_and_left_when_the_laboratory_is_killed(rodeo):
    here = rodeo.directory
    for name in ("host", "key"):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", here / name], check=True)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    (here / "sshd_config").write_text(
        f"Port {port}\nListenAddress 127.0.0.1\nHostKey {here}/host\nAuthorizedKeysFile {here}/key.pub\nStrictModes no\n"
        "UsePAM no\nPermitRootLogin yes\nPasswordAuthentication no\nPidFile none\n"
    )
    with contextlib.suppress(
        PermissionError
    ):  # only root's sshd needs this directory; without an init process it does not exist
        Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)
    sshd = subprocess.Popen([SSHD, "-D", "-e", "-f", here / "sshd_config"], stderr=subprocess.PIPE, text=True)
    try:
        assert "Server listening" in sshd.stderr.readline()
        reach = f"ssh -p {port} -i {here}/key -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null -o BatchMode=yes -o LogLevel=ERROR 127.0.0.1"
        (here / "hosts.txt").write_text(
            "".join(
                f"{role} 127.0.{number}.1 {reach}\n"
                for number, role in enumerate(["readout", "readout", "node", "node"])
            )
        )
        hosts = ["--hosts", "hosts.txt", "--agent", str(rodeo.binary), "--event-size", "100kB", "--rate", "50Hz"]
        for run in all_runs(lab(rodeo, *hosts, "--duration", "500ms")):
            assert run["events_completed"] == run["events_scheduled"] == 25
            assert run["drops"] is None  # no switch is driven

        def agents():
            command = f"{rodeo.binary}\0net\0lab-agent".encode()
            return [
                entry
                for entry in Path("/proc").iterdir()
                if entry.name.isdigit() and (entry / "cmdline").exists() and command in _read(entry / "cmdline")
            ]

        with rodeo.start("net", "lab", *hosts, "--duration", "100s") as process:
            deadline = time.monotonic() + scaled(60)
            while len(agents()) < 4 and time.monotonic() < deadline:
                time.sleep(0.05)
            assert len(agents()) == 4
            process.kill()
        deadline = time.monotonic() + scaled(30)
        while agents() and time.monotonic() < deadline:
            time.sleep(0.05)
        assert agents() == []
    finally:
        sshd.kill()
        sshd.wait()


def _read(file):
    try:
        return file.read_bytes()
    except OSError:
        return b""
