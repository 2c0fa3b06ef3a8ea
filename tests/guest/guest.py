"""Linux guests in QEMU without hardware acceleration: Debian's kernel, an initial file system made here, and a boot with a deadline."""

import fcntl
import json
import os
import re
import select
import shutil
import subprocess
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

KERNEL_PACKAGE = "linux-image-cloud-amd64"

# edu and QEMU's virtual IOMMU on a machine whose root port can reset its device.
IOMMU = ["-device", "intel-iommu,intremap=on,caching-mode=on"]
ROOT_PORT = ["-device", "pcie-root-port,id=rp1,chassis=1,slot=1"]


class Unavailable(Exception):
    """No guest can be started here; the text is the reason for skipping."""


def cache_directory():
    """The directory of unpacked packages and file trees of guests: RODEO_GUEST_CACHE, else rodeo/guest in the user's cache."""
    base = (
        os.environ.get("RODEO_GUEST_CACHE")
        or Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "rodeo" / "guest"
    )
    path = Path(base)
    path.mkdir(parents=True, exist_ok=True)
    return path


class CacheLock:
    """Only one process at a time may fill the cache; the lock ends with the process."""

    def __enter__(self):
        self.file = open(cache_directory() / "lock", "w")
        fcntl.flock(self.file, fcntl.LOCK_EX)

    def __exit__(self, *_):
        self.file.close()


def run(*command, cwd=None, timeout=300):
    done = subprocess.run(
        [str(part) for part in command],
        cwd=cwd,
        text=True,
        capture_output=True,
        timeout=timeout,
        stdin=subprocess.DEVNULL,
    )
    if done.returncode != 0:
        raise Unavailable(f"{' '.join(map(str, command))}: {(done.stderr or done.stdout).strip()[-400:]}")
    return done.stdout


def need(*programs):
    for program, package in programs:
        if not shutil.which(program):
            raise Unavailable(f"{program} is missing (Debian package {package})")


def depends(package):
    """The package of the current security update that a meta package depends on."""
    found = re.search(r"Depends: (linux-image-\S+)", run("apt-cache", "depends", package))
    if not found:
        raise Unavailable(f"apt knows no {package}: apt-get update")
    return found.group(1)


def download(package, directory):
    """Uses the machine's package lists or, if they are out of date, fresh lists in the cache."""
    try:
        run("apt-get", "-q", "download", package, cwd=directory)
    except Unavailable:
        state = cache_directory() / "apt"
        (state / "lists" / "partial").mkdir(parents=True, exist_ok=True)
        own = ["-o", f"Dir::State::lists={state}/lists", "-o", f"Dir::Cache={state}", "-o", "APT::Sandbox::User="]
        run("apt-get", "-q", *own, "update", cwd=directory)
        found = re.search(r"Depends: (linux-image-\S+)", run("apt-cache", *own, "depends", KERNEL_PACKAGE))
        run("apt-get", "-q", *own, "download", found.group(1) if found else package, cwd=directory)


@dataclass
class Kernel:
    image: Path
    modules: Path
    paths: dict = field(default_factory=dict)

    def __post_init__(self):
        for path in self.modules.rglob("*.ko"):
            self.paths[path.stem.replace("-", "_")] = path

    def in_order(self, names):
        """The files of modules and their dependencies, in the order of insertion."""
        ordered = []

        def add(name):
            name = name.replace("-", "_")
            if name not in self.paths:
                raise Unavailable(f"this kernel has no module {name}")
            path = self.paths[name]
            if path in ordered:
                return
            found = re.search(rb"\0depends=([^\0]*)\0", b"\0" + path.read_bytes() + b"\0")
            for dependency in filter(None, found.group(1).decode().split(",") if found else []):
                add(dependency)
            ordered.append(path)

        for name in names:
            add(name)
        return ordered


def kernel(package=KERNEL_PACKAGE):
    """Debian's kernel: fetched once and unpacked, but not installed."""
    need(("apt-get", "apt"), ("apt-cache", "apt"), ("dpkg-deb", "dpkg"))
    with CacheLock():
        target = cache_directory() / depends(package)
        if not (target / "complete").exists():
            with tempfile.TemporaryDirectory(dir=cache_directory()) as directory:
                download(target.name, directory)
                deb = next(Path(directory).glob("linux-image-*.deb"))
                tree = Path(directory) / "tree"
                run("dpkg-deb", "-x", deb, tree)
                (tree / "complete").touch()
                shutil.rmtree(target, ignore_errors=True)
                tree.rename(target)
    return Kernel(next((target / "boot").glob("vmlinuz-*")), next((target / "lib" / "modules").iterdir()))


def debian_mirror():
    """The Debian mirror of this machine's apt."""
    targets = run(
        "apt-get", "indextargets", "--format", "$(REPO_URI) $(ORIGIN) $(COMPONENT)", "Created-By: Packages"
    ).splitlines()
    mirrors = [line.split()[0] for line in targets if line.endswith(" Debian main") and "security" not in line]
    if not mirrors:
        raise Unavailable("apt has no Debian mirror: apt-get update")
    return mirrors[0]


def qemu_with_vfio_user():
    """The command of a QEMU with a vfio-user client (10.1 or later), from the backports of Debian 13: unpacked with its libraries, but not installed.
    Its size is some hundred megabytes."""
    with CacheLock():
        tree = cache_directory() / "qemu-trixie-backports"
        if not (tree / "complete").exists():
            need(("mmdebstrap", "mmdebstrap"))
            with tempfile.TemporaryDirectory(dir=cache_directory()) as directory:
                fresh = Path(directory) / "tree"
                sources = [f"deb {debian_mirror()} {suite} main" for suite in ("trixie", "trixie-backports")]
                run(
                    "mmdebstrap",
                    "--quiet",
                    "--variant=extract",
                    "--include=qemu-system-x86,ovmf-",
                    '--aptopt=APT::Default-Release "trixie-backports"',
                    "trixie",
                    fresh,
                    *sources,
                    timeout=600,
                )
                (fresh / "complete").touch()
                shutil.rmtree(tree, ignore_errors=True)
                fresh.rename(tree)
    libraries = tree / "usr" / "lib" / "x86_64-linux-gnu"
    command = [
        str(tree / "usr" / "lib64" / "ld-linux-x86-64.so.2"),
        "--library-path",
        str(libraries),
        str(tree / "usr" / "bin" / "qemu-system-x86_64"),
        "-L",
        str(tree / "usr" / "share" / "qemu"),
    ]
    version = run(*command, "--version")
    found = re.search(r"version (\d+)\.(\d+)", version)
    if not found or (int(found.group(1)), int(found.group(2))) < (10, 1):
        raise Unavailable(f"vfio-user needs QEMU 10.1 or later; this is {version.splitlines()[0]}")
    return command


class Initrd:
    """The initial file system of a guest, as a newc archive, which can be made without root."""

    def __init__(self):
        self.parts = []
        self.known = set()
        self.inode = 1

    def _entry(self, name, mode, data=b""):
        if name in self.known:
            return
        self.known.add(name)
        for parent in reversed(Path(name).parents[:-1]):
            self._entry(str(parent), 0o040755)
        encoded = name.encode() + b"\0"
        numbers = [self.inode, mode, 0, 0, 1, 0, len(data), 0, 0, 0, 0, len(encoded), 0]
        self.inode += 1
        header = b"070701" + b"".join(b"%08x" % number for number in numbers) + encoded
        self.parts.append(header + b"\0" * (-len(header) % 4) + data + b"\0" * (-len(data) % 4))

    def directory(self, name):
        self._entry(name.strip("/"), 0o040755)

    def link(self, name, target):
        self._entry(name.strip("/"), 0o120777, str(target).encode())

    def text(self, name, text, mode=0o644):
        self._entry(name.strip("/"), 0o100000 | mode, text.encode())

    def file(self, name, path, mode=None):
        path = Path(path)
        self._entry(
            name.strip("/"), 0o100000 | (path.stat().st_mode & 0o777 if mode is None else mode), path.read_bytes()
        )

    def program(self, name, path):
        """Adds a program and its libraries, without debug information, at the paths where the program looks for them."""
        self._stripped(name, path)
        for library in re.findall(r"(?:=> )?(/\S+) \(0x", run("ldd", path)):
            self._stripped(library, Path(library).resolve())

    def _stripped(self, name, path):
        if name.strip("/") in self.known:
            return
        with tempfile.TemporaryDirectory() as directory:
            copy = Path(directory) / "file"
            run("strip", "--strip-debug", "-o", copy, path)
            self.file(name, copy, 0o755)

    def write(self, path):
        self._entry("TRAILER!!!", 0)
        Path(path).write_bytes(b"".join(self.parts))
        return path


INIT = """#!/bin/busybox sh
/bin/busybox mkdir -p /proc /sys /dev /tmp /run /root
/bin/busybox --install -s /bin
export PATH=/bin:/usr/bin HOME=/root
mount -t proc proc /proc; mount -t sysfs sysfs /sys; mount -t devtmpfs devtmpfs /dev; mkdir -p /dev/shm; mount -t tmpfs tmpfs /dev/shm
for module in /modules/*.ko; do [ -e $module ] && insmod $module; done
cat /proc/uptime | sed 's/^/guest: up after /'
/bin/sh /test.sh
echo "guest: exit status $?"
reboot -f
"""


def base_initrd(kernel_files, modules, script, programs=()):
    """An Initrd with busybox, modules, the test as a shell script, and programs (name in the guest, path here)."""
    need(("busybox", "busybox-static"), ("strip", "binutils"), ("ldd", "libc-bin"))
    initrd = Initrd()
    for name in ("proc", "sys", "dev", "tmp", "run", "root", "etc"):
        initrd.directory(name)
    initrd.file("bin/busybox", shutil.which("busybox"), 0o755)
    initrd.text("init", INIT, 0o755)
    initrd.text("test.sh", script, 0o755)
    initrd.text("etc/passwd", "root:x:0:0:root:/root:/bin/sh\nuser:x:1000:1000:user:/tmp:/bin/sh\n")
    initrd.text("etc/group", "root:x:0:\nuser:x:1000:\nrodeo:x:2000:user\n")
    for number, module in enumerate(kernel_files.in_order(modules)):
        initrd.file(f"modules/{number:02}-{module.name}", module)
    for name, path in programs:
        initrd.program(name, path)
    return initrd


@dataclass
class Boot:
    log: str
    status: int | None  # the exit status of the script; None if the guest did not reach it
    seconds: float
    qemu: str = ""  # output of QEMU itself

    def lines(self, prefix):
        return [line[len(prefix) :].strip() for line in self.log.splitlines() if line.startswith(prefix)]


def vfio_user_card(number, socket):
    """QEMU's arguments for a card that is a vfio-user server, on a separate root port that can reset it."""
    device = {"driver": "vfio-user-pci", "bus": f"card{number}", "socket": {"path": str(socket), "type": "unix"}}
    return [
        "-device",
        f"pcie-root-port,id=card{number},chassis={number + 8},slot={number + 8}",
        "-device",
        json.dumps(device),
    ]


def boot(
    kernel_files,
    initrd,
    arguments,
    *,
    append="",
    memory="512",
    deadline=60,
    qemu=("qemu-system-x86_64",),
    cpus=1,
    shared=False,
):
    """Runs a guest with the Initrd `initrd` until its end or the deadline. The log is its serial line. `shared`: vfio-user servers can map its memory."""
    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="rodeo-guest-") as directory:
        archive = initrd.write(Path(directory) / "initrd")
        machine = "q35" + (",kernel-irqchip=split" if "intel-iommu" in " ".join(arguments) else "")
        if shared:
            machine += ",memory-backend=mem"
            arguments = ["-object", f"memory-backend-memfd,id=mem,size={memory}M,share=on", *arguments]
        command = [
            *qemu,
            "-machine",
            machine,
            "-accel",
            "tcg,thread=multi",
            "-cpu",
            "max",
            "-smp",
            str(cpus),
            "-m",
            memory,
            "-nodefaults",
            "-no-user-config",
            "-display",
            "none",
            "-serial",
            "stdio",
            "-no-reboot",
            *arguments,
            "-kernel",
            str(kernel_files.image),
            "-initrd",
            str(archive),
            "-append",
            f"console=ttyS0 quiet panic=-1 tsc=reliable no_timer_check random.trust_cpu=on {append}",
        ]
        return follow(command, started, deadline)


def follow(command, started, deadline):
    """Reads a guest's serial line until the guest ends or the deadline is over, and ends the guest."""
    with (
        tempfile.TemporaryFile() as says,
        subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=says) as process,
    ):
        log = b""
        try:
            while (left := started + deadline - time.monotonic()) > 0:
                if select.select([process.stdout], [], [], left)[0]:
                    piece = os.read(process.stdout.fileno(), 65536)
                    if not piece:
                        break
                    log += piece
        finally:
            process.kill()
            process.wait()
        says.seek(0)
        qemu = says.read().decode(errors="replace")
    text = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]|\r", "", log.decode(errors="replace"))
    found = re.search(r"^guest: exit status (\d+)", text, re.MULTILINE)
    return Boot(text, int(found.group(1)) if found else None, time.monotonic() - started, qemu)


def probe(kernel_files, deadline=30):
    """Boots to a shell and shuts down; prints the reason of a failure."""
    need(("qemu-system-x86_64", "qemu-system-x86"))
    result = boot(kernel_files, base_initrd(kernel_files, [], "true\n"), [], deadline=deadline)
    if result.status != 0:
        raise Unavailable(
            f"QEMU cannot boot a guest here within {deadline} s: {(result.log + result.qemu).strip()[-300:] or 'it says nothing'}"
        )
    return result
