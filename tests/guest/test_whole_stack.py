"""The whole stack as with a real card: our emulated cards are vfio-user devices of a guest, PCI devices under vfio-pci there; commands are unchanged."""

import json
import random
import re
import signal
import time

import pytest
from conftest import BUILD, TIMEOUT_SCALE, scaled
from guest import IOMMU, Unavailable, base_initrd, boot, kernel, qemu_with_vfio_user, vfio_user_card

pytestmark = pytest.mark.slow  # the first run fetches a QEMU
PROCESSORS = 3  # read by CMake: the host emulates a guest's CPU, and time-outs in the guest use real time

FELIX = """
[emulator]
name = "guest"
[[emulator.card]]
type = "felix"
name = "felix"
address = "0000:3b:00.0"
serial = 712
links = 4
elinks_per_link = 8
chunk_size = 40
[emulator.trigger]
rate = "1kHz"
"""

CRU = """
[emulator]
name = "guest"
[[emulator.card]]
type = "cru"
name = "cru"
address = "0000:af:00.0"
serial = 245
endpoints = 1
links = 4
frame_size = "8KiB"
payload = "provable"
overflow = "drop"
[emulator.trigger]
rate = "1kHz"
spacing = "periodic"
"""

BIND = """
echo 64 > /sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages
for d in /sys/bus/pci/devices/*; do
  case "$(cat $d/vendor)" in 0x10dc|0x10ee) echo vfio-pci > $d/driver_override; echo $(basename $d) > /sys/bus/pci/drivers_probe;; esac
done
says() { echo "command: $*"; "$@" 2>/tmp/errors; echo "command: status $?"; cat /tmp/errors; }
"""


@pytest.fixture
def guest(rodeo, tmp_path):
    """Starts emulated cards, boots a guest with them, and runs a script there; returns the script's commands with output and status."""
    if TIMEOUT_SCALE != 1:
        pytest.skip("guests run what the release tree has")
    try:
        kernel_files, qemu = kernel(), qemu_with_vfio_user()
    except Unavailable as why:
        pytest.skip(f"host: no guest with vfio-user here: {why}")

    def run(configuration, script, with_log=False):
        (tmp_path / "cards.toml").write_text(configuration)
        with rodeo.start("emulate", "cards.toml") as emulator:
            try:
                cards = tmp_path / "rodeo" / "cards"
                until = time.monotonic() + scaled(30)
                while not (sockets := sorted(cards.glob("*.sock"))):
                    assert emulator.poll() is None and time.monotonic() < until, "no emulated card"
                    time.sleep(0.05)
                arguments = [
                    *IOMMU,
                    *(part for number, socket in enumerate(sockets) for part in vfio_user_card(number, socket)),
                ]
                initrd = base_initrd(
                    kernel_files, ["vfio-pci", "vfio_iommu_type1"], BIND + script, [("bin/rodeo", BUILD / "rodeo")]
                )
                result = boot(
                    kernel_files,
                    initrd,
                    arguments,
                    append="intel_iommu=on",
                    memory="1024",
                    shared=True,
                    qemu=qemu,
                    cpus=2,
                    deadline=scaled(240),
                )
            finally:
                emulator.send_signal(signal.SIGINT)
                output, errors = emulator.communicate(timeout=scaled(30))
        print(result.log, result.qemu[-2000:], output, errors, f"{result.seconds:.1f} s")
        assert result.status is not None, "the guest did not end"
        return (commands(result.log), result.log) if with_log else commands(result.log)

    return run


def commands(log):
    """Returns (arguments, output, status) of each command."""
    said = []
    for part in log.split("\ncommand: rodeo ")[1:]:
        arguments, rest = part.split("\n", 1)
        output, status = rest.split("command: status ", 1)
        said.append((arguments, output, int(status.split("\n", 1)[0])))
    return said


def test_an_emulated_felix_is_a_pci_device_of_a_guest(guest):
    script = """
says rodeo card list -o json
says rodeo card reg read --id '#0' --bar 2 serial -o json
says rodeo card reg read --id 0712:0 git_hash -o json
says rodeo card keep 0000:01:00.0
says rodeo card keep --status -o json
says rodeo card list -o json
says rodeo card keep --stop
"""
    said = guest(FELIX, script)
    assert [status for _, _, status in said] == [0] * 7
    for row in (0, 5):
        [card] = json.loads(said[row][1])
        assert (card["type"], card["pci_address"], card["back_end"], card["serial"], card["problem"]) == (
            "FELIX",
            "0000:01:00.0",
            "vfio",
            712,
            "",
        )
    assert json.loads(said[2][1])[0]["name"] == "git_hash"
    [function] = json.loads(said[4][1])["functions"]
    assert function == {"address": "0000:01:00.0", "back_end": "vfio", "kept": True, "clients": []}


@pytest.mark.parametrize("configuration", [FELIX, CRU], ids=["felix", "cru"])
def test_dma_through_the_guests_iommu_is_proved(guest, configuration):
    bench = "says rodeo card bench dma --id '#0' --data-source fee --bytes 4MiB --buffer-size 16MiB --superpage-size 1MiB --patience 30s --json -\n"
    first, second, keeper = guest(configuration, bench + bench + "says rodeo card keep --status -o json\n")
    for _, output, code in (first, second):  # the second uses the card as the first left it
        assert code == 0, output
        report = json.loads(output[: output.rindex("}") + 1])
        assert report["errors"] == 0 and report["bytes"] >= 4 << 20
        assert "huge pages" in report["memory"]
    assert '"mapped_bytes"' not in keeper[1]  # the owner has ended


READOUT = """
[readout]
name = "guest"
[readout.input]
type = "card"
cards = ["#0"]
memory = "16MiB"
superpage = "1MiB"
start_generator = true
[readout.builder]
type = "gbt"
timeout = "2s"
{builder}
[readout.extractor]
type = "{extractor}"
[[readout.rob]]
source_id = "0x00610001"
[[readout.consumer]]
type = "processor"
work = "{work}"
seed = 1
"""


@pytest.mark.parametrize(
    ("configuration", "keys"),
    [
        (FELIX, {"builder": "", "extractor": "rodeo", "work": "verify"}),
        (
            CRU,
            {"builder": 'chunk_size = "32KiB"\nwindow = 256\nbuffers = 300', "extractor": "rdh", "work": "verify_rdh"},
        ),
    ],
    ids=["felix", "cru"],
)
def test_a_readout_in_the_guest_builds_and_proves_what_the_card_sends(guest, configuration, keys):
    text = READOUT.format(**keys)
    script = f"cat > /readout.toml <<'END'\n{text}END\nsays rodeo card status --id '#0' -o json\nsays rodeo readout /readout.toml --seconds 2 --json -\n"
    status, readout = guest(configuration, script)
    assert status[2] == 0, status[1]
    assert readout[2] == 0, readout[1]
    report = json.loads(readout[1][: readout[1].rindex("}") + 1])
    assert report["fragments"]["built"] > 0 and not report["chunks"]["lost"]
    assert report["verified"]["mismatches"] == 0 and report["verified"]["chunks"] > 0


def test_a_configuration_stays_in_the_card_when_its_command_has_ended(guest):
    script = """
says rodeo card config --id '#0' --trigger-window 500 --time-frame-length 64
says rodeo card reg read --id '#0' debug -o json
says rodeo card config --id '#0' --trigger-window 500 --time-frame-length 64 --dry-run
says rodeo card keep --stop
"""
    first, register, again, _ = guest(CRU, script)
    assert (first[2], register[2], again[2]) == (0, 0, 0), first[1] + register[1] + again[1]
    assert "500" in first[1]
    assert json.loads(register[1][: register[1].rindex("]") + 1])[0]["value"] >> 20 == 64
    assert "500" not in again[1], "nothing is left to change"


CRASHES = """
pids() { for d in /proc/[0-9]*; do case "$(tr '\\0' ' ' < $d/cmdline 2>/dev/null)" in *"$1"*) echo ${d#/proc/};; esac; done; }
bystander() { while [ ! -e /over ]; do rodeo card "$@" -o json > /tmp/seen.$1 2>&1; echo "bystander $? $1" >> /bystanders; sleep 0.1; done; }
transfer() { rodeo card bench dma --id '#0' --duration $1 --buffer-size 16MiB --superpage-size 1MiB --patience 5s --error-check none --json /tmp/transfer > /tmp/output 2>&1; echo $? > /ended; }
bystander status --id '#0' &
bystander reg read --id '#0' {register} &
{rounds}
touch /over
wait
for p in $(pids 'rodeo card'); do echo "left over: $p $(tr '\\0' ' ' < /proc/$p/cmdline)"; done | grep -v keep
sort /bystanders | uniq -c
says rodeo card bench dma --id '#0' --data-source fee --bytes 4MiB --buffer-size 16MiB --superpage-size 1MiB --patience 30s --json -
says rodeo card keep --stop
"""

ROUND = """
rm -f /ended
transfer 5s &
sleep {after}
for v in {victims}; do kill -9 $(pids "$v") 2>/dev/null; done
t=0; while [ ! -e /ended ] && [ $t -lt 300 ]; do sleep 0.1; t=$((t + 1)); done
if [ -e /ended ]; then echo "round {number}: {victims}: transfer ended with $(cat /ended)"; else echo "round {number}: {victims}: transfer hangs"; cat /tmp/output; fi
"""


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize(("configuration", "register"), [(FELIX, "git_hash"), (CRU, "debug")], ids=["felix", "cru"])
def test_keeper_owner_and_bystanders_may_be_killed_at_any_time(guest, configuration, register, seed):
    chance = random.Random(seed)
    everybody = ["rodeo card keep", "rodeo card bench", "rodeo card status", "rodeo card reg"]
    victims = [everybody[:1], everybody[:2], *(chance.sample(everybody, chance.randint(1, 3)) for _ in range(3))]
    rounds = "".join(
        ROUND.format(
            number=number, after=round(chance.uniform(1, 4), 1), victims=" ".join(f"'{one}'" for one in killed)
        )
        for number, killed in enumerate(victims)
    )
    said, log = guest(configuration, CRASHES.replace("{register}", register).replace("{rounds}", rounds), with_log=True)
    assert "hangs" not in log and "left over" not in log
    for number, killed in enumerate(victims):
        [status] = re.findall(rf"round {number}: .*: transfer ended with (\d+)", log)
        # Without its keeper a transfer continues with its memory; a new transfer is refused or finds the keeper gone.
        allowed = {0, 137} if "rodeo card bench" in killed else {0, 1, 4, 5} if "rodeo card keep" in killed else {0}
        assert int(status) in allowed, (number, killed, status)
    statuses = {int(status) for status in re.findall(r"bystander (\d+)", log)}
    assert 0 in statuses and statuses <= {0, 1, 4, 5, 137}
    assert [status for _, _, status in said] == [0, 0], said
