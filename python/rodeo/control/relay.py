"""Ties its standard input and output to the agent of this host, so that ssh or Slurm's srun is a controller's way to it: python -m rodeo.control.relay.

The first line that it writes says whether there is an agent; from then on every byte is the agent's (docs/protocols/agent.md)."""

import argparse
import asyncio
import json
import os
import signal
import socket
import sys
import threading

from rodeo.control.agent import LEASH_S, socket_of
from rodeo.control.hosts.local import LocalHost
from rodeo.control.refused import Refused

GREETING = '{"relay": 1'  # what the first line of a relay begins with; a login shell may have written others before
PIECE = 1 << 16


def pumped(source, sink):
    """From one descriptor to the other until one of them ends, and then this process ends: the other direction is of no use alone."""
    try:
        while piece := os.read(source, PIECE):
            while piece:
                piece = piece[os.write(sink, piece):]
    except OSError:
        pass
    os._exit(0)


async def found_or_started(host):
    _, writer = await host.connect()
    writer.close()


def greet(answer):
    print(json.dumps({"relay": 1, **answer}), flush=True)


def main(argv=None):
    parser = argparse.ArgumentParser(prog="python -m rodeo.control.relay", description=__doc__)
    parser.add_argument("--system", required=True, help="name of the system")
    parser.add_argument("--host", required=True, help="what the system file calls this host")
    parser.add_argument("--start", metavar="DIRECTORY", help="starts an agent that keeps this directory, if there is none")
    parser.add_argument("--leash", type=float, default=LEASH_S, help="of an agent that is started")
    parser.add_argument("--patience", type=float, default=1.0, help="stretches the time that an agent has to begin")
    options = parser.parse_args(argv)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # of a job that is cancelled: what drains in it is still looked at
    try:
        if options.start:
            asyncio.run(found_or_started(LocalHost(options.system, options.start, name=options.host, patience=options.patience, leash_s=options.leash)))
        agent = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        agent.connect(str(socket_of(options.system, options.host)))
    except Refused as refused:
        greet(refused.as_json())
        return 4
    except OSError as error:
        greet(Refused("control.host_silent", f"there is no agent of {options.system} on {os.uname().nodename}: {error.strerror}", "").as_json())
        return 4
    greet({"ok": True, "reply": None})
    threading.Thread(target=pumped, args=(agent.fileno(), 1), daemon=True).start()
    pumped(0, agent.fileno())


if __name__ == "__main__":
    sys.exit(main())
