"""QEMU's edu device, written independently of Rodeo, with the kernel's VFIO and UIO back ends and the keeper, in guests."""

import pytest
from conftest import BUILD, TIMEOUT_SCALE, scaled
from guest import IOMMU, ROOT_PORT, Unavailable, base_initrd, boot, kernel, need

BIND = """
find_edu() {{ for d in /sys/bus/pci/devices/*; do [ "$(cat $d/vendor)" = 0x1234 ] && [ "$(cat $d/device)" = 0x11e8 ] && basename $d; done; }}
EDU=$(find_edu)
echo 16 > /sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages
echo {driver} > /sys/bus/pci/devices/$EDU/driver_override
echo $EDU > /sys/bus/pci/drivers_probe
"""


@pytest.fixture(scope="module")
def guest():
    """Boots a guest with a script and our programs; skips the test if no guest can be started."""
    if TIMEOUT_SCALE != 1:
        pytest.skip("guests run what the release tree has")
    try:
        need(("qemu-system-x86_64", "qemu-system-x86"))
        kernel_files = kernel()
    except Unavailable as why:
        pytest.skip(f"host: no guest here: {why}")

    def run(script, modules, arguments, append=""):
        programs = [("bin/pci_probe", BUILD / "tests" / "guest" / "pci_probe"), ("bin/rodeo", BUILD / "rodeo")]
        result = boot(
            kernel_files,
            base_initrd(kernel_files, modules, script, programs),
            arguments,
            append=append,
            deadline=scaled(90),
        )
        print(result.log, result.qemu, f"{result.seconds:.1f} s")
        if result.status is None and "guest: up" not in result.log:
            pytest.skip(f"host: QEMU cannot boot a guest here: {(result.log + result.qemu).strip()[-300:]}")
        return result

    return run


def facts(result):
    return {line.split(":")[0] for line in result.lines("ok ")}


# The command line with the same device. The first command starts the keeper, which holds the card for the others.
COMMANDS = """
says() { echo "command: $*"; "$@" 2>&1; echo "command: status $?"; }
says rodeo card reg read --id $EDU --bar 0 0x0 -o json
says rodeo card reg write --id $EDU --bar 0 0x4 0x12345678 -o json
says rodeo card reg read --id $EDU --bar 0 0x4 -o json
says rodeo card keep $EDU
says rodeo card keep --status -o json
says rodeo card keep --stop
says rodeo card list -o json
"""


def check_commands(result):
    said = result.log.split("command: rodeo card ")[1:]
    assert len(said) == 7 and all("command: status 0" in text for text in said), said
    assert '"hex": "0x010000ed"' in said[0]
    assert '"hex": "0xedcba987"' in said[1] and '"hex": "0xedcba987"' in said[2]  # edu answers with the complement
    assert '"kept":true' in said[4] and '"clients":[]' in said[4]
    assert said[6].split("command:")[0].split("\n", 1)[1].strip() == "[]"  # edu is not a readout card


def test_vfio_with_a_virtual_iommu(guest):
    result = guest(
        BIND.format(driver="vfio-pci")
        + COMMANDS
        + "pci_probe vfio $EDU; status=$?; dmesg | grep -i 'DMAR.*fault' | head -3; exit $status",
        ["vfio-pci", "vfio_iommu_type1"],
        [*IOMMU, *ROOT_PORT, "-device", "edu,bus=rp1"],
        "intel_iommu=on",
    )
    assert "FAILED" not in result.log and result.status == 0
    assert {
        "identification",
        "every byte came back",
        "DMA to an address that is not mapped",
        "unmapped memory is untouched",
        "reset",
        "second process of another user",
        "second process in other namespaces",
        "bus mastering stays for the other owner",
        "bus mastering ends with its owner",
        "a new client beside one of the keeper that died",
        "keeper gone",
    } <= facts(result)
    check_commands(result)
    assert "DMAR" in result.log and "fault addr 0x8000000" in result.log  # the IOMMU stopped the access


def test_uio_without_an_iommu(guest):
    result = guest(
        BIND.format(driver="uio_pci_generic")
        + "rodeo card reg read --id $EDU --bar 0 0x0; export RODEO_UIO=1\n"
        + COMMANDS
        + "pci_probe uio $EDU",
        ["uio_pci_generic"],
        [*ROOT_PORT, "-device", "edu,bus=rp1,dma_mask=0xffffffffffff"],
    )
    assert "FAILED" not in result.log and result.status == 0
    check_commands(result)
    assert (
        "error[card.driver]: 0000:01:00.0: the card is driven by uio_pci_generic" in result.log
    )  # vfio-pci was not requested yet
    assert {
        "identification",
        "every byte came back",
        "memory that is not on huge pages",
        "second process in other namespaces",
        "bus mastering ends with its owner",
        "keeper gone",
    } <= facts(result)
