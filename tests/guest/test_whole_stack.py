"""The whole stack as a user with a card runs it: our emulated cards as vfio-user devices of a guest, there real PCI devices under vfio-pci, and the unchanged commands."""

import json
import signal
import time

import pytest
from conftest import BUILD, TIMEOUT_SCALE, scaled
from guest import IOMMU, Unavailable, base_initrd, boot, kernel, qemu_with_vfio_user, vfio_user_card

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
    """Starts emulated cards, boots a guest that has them, runs a script there; gives the script's commands with their output and status."""
    if TIMEOUT_SCALE != 1:
        pytest.skip("guests run what the release tree has")
    try:
        kernel_files, qemu = kernel(), qemu_with_vfio_user()
    except Unavailable as why:
        pytest.skip(f"no guest with vfio-user here: {why}")

    def run(configuration, script):
        (tmp_path / "cards.toml").write_text(configuration)
        with rodeo.start("emulate", "cards.toml") as emulator:
            try:
                cards = tmp_path / "rodeo" / "cards"
                until = time.monotonic() + scaled(30)
                while not (sockets := sorted(cards.glob("*.sock"))):
                    assert emulator.poll() is None and time.monotonic() < until, "no emulated card"
                    time.sleep(0.05)
                arguments = [*IOMMU, *(part for number, socket in enumerate(sockets) for part in vfio_user_card(number, socket))]
                initrd = base_initrd(kernel_files, ["vfio-pci", "vfio_iommu_type1"], BIND + script, [("bin/rodeo", BUILD / "rodeo")])
                result = boot(kernel_files, initrd, arguments, append="intel_iommu=on", memory="1024", shared=True, qemu=qemu, cpus=2, deadline=scaled(240))
            finally:
                emulator.send_signal(signal.SIGINT)
                output, errors = emulator.communicate(timeout=scaled(30))
        print(result.log, result.qemu[-2000:], output, errors, f"{result.seconds:.1f} s")
        assert result.status is not None, "the guest did not come to its end"
        return commands(result.log)

    return run


def commands(log):
    """(arguments, output, status) of each command."""
    said = []
    for part in log.split("\ncommand: rodeo ")[1:]:
        arguments, rest = part.split("\n", 1)
        output, status = rest.split("command: status ", 1)
        said.append((arguments, output, int(status.split("\n", 1)[0])))
    return said


@pytest.mark.slow
def test_an_emulated_felix_is_a_pci_device_of_a_guest(guest):
    script = """
says rodeo card list -o json
says rodeo card reg read --id '#0' --bar 2 serial -o json
says rodeo card reg read --id 0712:0 git_hash -o json
says rodeo card keep 0000:01:00.0
says rodeo card keep --status
says rodeo card list -o json
says rodeo card keep --stop
"""
    said = guest(FELIX, script)
    assert [status for _, _, status in said] == [0] * 7
    for row in (0, 5):
        [card] = json.loads(said[row][1])
        assert (card["type"], card["pci_address"], card["back_end"], card["serial"], card["problem"]) == ("FELIX", "0000:01:00.0", "vfio", 712, "")
    assert json.loads(said[2][1])[0]["name"] == "git_hash"
    [function] = json.loads(said[4][1])["functions"]
    assert function == {"address": "0000:01:00.0", "back_end": "vfio", "kept": True, "clients": []}


@pytest.mark.slow
@pytest.mark.parametrize("configuration", [FELIX, CRU], ids=["felix", "cru"])
def test_dma_through_the_guests_iommu_is_proved(guest, configuration):
    bench = "says rodeo card bench dma --id '#0' --data-source fee --bytes 4MiB --buffer-size 16MiB --superpage-size 1MiB --patience 30s --json -\n"
    first, second, keeper = guest(configuration, bench + bench + "says rodeo card keep --status\n")
    for _, output, code in (first, second):  # the second begins where a process before it left the card
        assert code == 0, output
        report = json.loads(output[: output.rindex("}") + 1])
        assert report["errors"] == 0 and report["bytes"] >= 4 << 20
        assert "huge pages" in report["memory"]
    assert '"mapped_bytes"' not in keeper[1]  # nobody is there any more
