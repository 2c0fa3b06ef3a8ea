"""The chain over RDMA: a router and a readout in a guest with a soft-RoCE device, also over a network that loses, delays and reorders packets."""

import json
import re
import shutil
from pathlib import Path

import pytest
from conftest import BUILD, TIMEOUT_SCALE, scaled
from guest import Unavailable, base_initrd, boot, kernel, need

pytestmark = pytest.mark.slow  # the first run fetches a kernel of 71 MB
PROCESSORS = 3  # read by CMake: the host emulates a guest's CPU, and time-outs in the guest use real time

ADDRESS = "10.0.2.15"
LINKS, EVENTS = 24, 2000
# A separate network device, because soft-RoCE does not support `lo`.
NETWORK = ["-netdev", "user,id=n0", "-device", "virtio-net-pci,netdev=n0,host_mtu=4200"]

ROUTER = f"""
[router]
name = "felix"
bus = "/bus"
address = "{ADDRESS}"
secret_file = "/secret"
wait_for_subscribers = true
[router.input]
type = "generator"
links = {LINKS}
rate = "1kHz"
events = {EVENTS}
"""

READOUT = """
[readout]
name = "net"
[readout.input]
type = "network"
bus = "/bus"
secret_file = "/secret"
[readout.builder]
type = "gbt"
timeout = "5s"
[readout.extractor]
type = "rodeo"
[[readout.rob]]
source_id = "0x00610001"
[[readout.consumer]]
type = "processor"
work = "verify"
"""

PREPARE = f"""
hostname guest; echo "127.0.0.1 localhost" > /etc/hosts
ip link set lo up; ip link set eth0 mtu 4200 up; ip addr add {ADDRESS}/24 dev eth0
echo ours > /secret; chmod 600 /secret; mkdir /bus
until_it_says() {{ t=0; while [ "0$(grep -c "$1" $2)" -lt ${{3:-1}} ] && [ $t -lt 300 ]; do sleep 0.1; t=$((t + 1)); done; }}
route() {{ rodeo route /router.toml "$@" --json /router.json > /router.log 2>&1 & until_it_says publishes /router.log; }}
readout() {{ rodeo readout /readout.toml --set readout.input.provider=$1 --json /readout.json > /readout.log 2>&1; }}
reports() {{ wait; cat /router.log /readout.log; for side in router readout; do echo "report $side"; cat /$side.json; echo "report ends"; done; }}
"""

RDMA = "rdma link add rxe0 type rxe netdev eth0\n"


@pytest.fixture
def guest(tmp_path):
    """Runs a script in a guest with a network device, after `PREPARE`; returns its output."""
    if TIMEOUT_SCALE != 1:
        pytest.skip("guests run what the release tree has")
    try:
        need(("rdma", "iproute2"), ("tc", "iproute2"))
        kernel_files = kernel("linux-image-amd64")
        driver = next(Path("/usr/lib").glob("*/libibverbs/librxe-rdmav*.so"), None)
        if driver is None:
            raise Unavailable("the driver of soft-RoCE is missing (Debian package ibverbs-providers)")
    except Unavailable as why:
        pytest.skip(f"host: no guest with RDMA here: {why}")

    def run(script):
        programs = [
            ("bin/rodeo", BUILD / "rodeo"),
            (f"{BUILD}/librodeo_fabric.so", BUILD / "librodeo_fabric.so"),
            (str(driver), driver),
            ("usr/bin/rdma", shutil.which("rdma")),
            ("usr/bin/tc", shutil.which("tc")),
        ]
        modules = ["virtio_pci", "virtio_net", "crc32_generic", "rdma_rxe", "rdma_ucm", "sch_netem"]
        initrd = base_initrd(kernel_files, modules, PREPARE + script, programs)
        initrd.text("etc/libibverbs.d/rxe.driver", "driver rxe\n")
        initrd.text("router.toml", ROUTER)
        initrd.text("readout.toml", READOUT)
        result = boot(kernel_files, initrd, NETWORK, memory="1024", cpus=2, deadline=scaled(240))
        print(result.log, result.qemu[-2000:], f"{result.seconds:.1f} s")
        assert result.status == 0, "the guest did not end"
        return result.log

    return run


@pytest.fixture
def chain(guest):
    """Runs a script that ends with `reports`; returns the reports of router (with the guest's log) and readout."""

    def run(script):
        log = guest(script)
        reports = [report(log, side) for side in ("router", "readout")]
        reports[0]["log"] = log
        return reports

    return run


def report(log, side):
    return json.loads(log.split(f"\nreport {side}\n")[1].split("report ends")[0])


def all_came(sent, built):
    assert sent["chunks"]["published"] == built["chunks"]["built"] == EVENTS * LINKS
    assert built["run"]["condition"] == sent["run"]["condition"] == "GOOD" and built["input"]["network_lost"] == 0
    assert built["verified"] == {"chunks": EVENTS * LINKS, "mismatches": 0}


def test_links_go_over_rdma(chain):
    sent, built = chain(RDMA + "route; readout verbs; reports\n")
    all_came(sent, built)
    assert ", verbs of felix.0" in sent["log"]


def test_the_fastest_network_that_both_have_is_taken(chain):
    sent, built = chain(RDMA + "route; readout auto; reports\n")
    all_came(sent, built)
    assert ", verbs of felix.0" in sent["log"]


def test_who_is_killed_leaves_rdma_to_the_next(chain):
    """The links end only after the second readout has got data, also on a slow guest."""
    route = "route --set router.input.events=0 --set router.grace=1s; router=$(pidof rodeo)\n"
    killed = "readout verbs & until_it_says 'takes 24' /router.log; sleep 0.5; kill -9 $(pidof rodeo | tr ' ' '\\n' | grep -vx $router)\n"
    next_one = "readout verbs & until_it_says 'takes 24' /router.log 2; sleep 0.5; kill -INT $router; reports\n"
    sent, built = chain(RDMA + route + killed + next_one)
    chunks = sent["chunks"]
    assert chunks["sent"] == chunks["published"] + chunks["no_subscriber"] + chunks["not_taken"] > 0
    assert built["chunks"]["built"] > 0 and built["verified"] == {"chunks": built["chunks"]["built"], "mismatches": 0}
    assert built["input"]["network_lost"] == 0


def test_a_network_that_loses_delays_and_reorders_loses_nothing_of_ours(chain):
    sent, built = chain(
        "/usr/bin/tc qdisc add dev lo root netem delay 5ms 3ms reorder 25% loss 1%\nroute; readout tcp; /usr/bin/tc -s qdisc show dev lo; reports\n"
    )
    all_came(sent, built)
    assert re.search(r"qdisc netem .*\n.*dropped [1-9]", sent["log"]), "the network was bad"


def test_a_farm_fetches_fragments_over_rdma(guest):
    """Requests and replies of several connections; the client checks each fragment."""
    serve = "rodeo bench serve --provider verbs --readouts 4 --nodes 2 --kept 1024 --seconds 1 --json /serve.json\n"
    log = guest(RDMA + serve + "echo; echo report serve; cat /serve.json; echo report ends\n")
    served = report(log, "serve")
    assert served["provider"] == "verbs" and served["verified_fragments"] > 0
    assert served["mismatches"] == served["lost"] == 0
