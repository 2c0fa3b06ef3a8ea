"""A host reached by ssh: a relay finds or starts its agent; the connection is the relay's standard input and output."""

import os
import shlex

from rodeo.control.processes.agent import LEASH_S
from rodeo.control.processes.hosts.remote import RemoteHost, with_environment
from rodeo.control.refused import Refused

# No questions, because no user could answer; a host that is gone is noticed within 15 s; no forwarding from this session.
OPTIONS = (
    "-T",
    "-a",
    "-x",
    "-o",
    "BatchMode=yes",
    "-o",
    "ConnectTimeout=10",
    "-o",
    "ServerAliveInterval=5",
    "-o",
    "ServerAliveCountMax=3",
    "-o",
    "ControlPath=none",
    "-o",
    "LogLevel=ERROR",
)


class SshHost(RemoteHost):
    """`address` is an ssh destination (~/.ssh/config sets its user, port and keys); $RODEO_SSH is the command, default `ssh`.
    The agent outlives the connection."""

    def __init__(self, system, directory, name, address="", *, patience=1.0, leash_s=LEASH_S):
        super().__init__(system, directory, name, "ssh", patience)
        self.address, self.leash_s = address or name, leash_s

    async def way(self):
        try:
            command = shlex.split(os.environ.get("RODEO_SSH") or "ssh")
        except ValueError as error:
            raise Refused("control.launcher", f"RODEO_SSH cannot be read: {error}", "") from None
        there = with_environment(self.relay("--start", str(self.directory.absolute()), "--leash", f"{self.leash_s:g}"))
        return [*command, *OPTIONS, "--", self.address, shlex.join(there)]
