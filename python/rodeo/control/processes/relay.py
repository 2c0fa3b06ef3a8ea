"""Connects its standard input and output to the agent of this host, so that a controller reaches the agent through ssh or Slurm's srun:
python -m rodeo.control.processes.relay.

The first line of its output says whether it has reached an agent; all further bytes are the agent's (docs/reference/protocols/agent.md)."""

import argparse
import asyncio
import json
import os
import signal
import socket
import sys
import threading

from rodeo.control.processes.agent import LEASH_S, socket_of
from rodeo.control.processes.hosts.local import LocalHost
from rodeo.control.refused import Refused

GREETING = '{"relay": 1'  # the begin of a relay's first line; a login shell may write other lines before it
PIECE = 1 << 16


def pumped(source, sink):
    """Copies from one descriptor to the other until one of them closes; then ends this process: one direction alone is useless."""
    try:
        while piece := os.read(source, PIECE):
            while piece:
                piece = piece[os.write(sink, piece) :]
    except OSError:
        pass
    os._exit(0)


async def found_or_started(host):
    _, writer = await host.connect()
    writer.close()


def greet(answer):
    print(json.dumps({"relay": 1, **answer}), flush=True)


def main(argv=None):
    parser = argparse.ArgumentParser(prog="python -m rodeo.control.processes.relay", description=__doc__)
    parser.add_argument("--system", required=True, help="name of the system")
    parser.add_argument("--host", required=True, help="the name of this host in the system file")
    parser.add_argument("--start", metavar="DIRECTORY", help="starts an agent with this directory, if none runs")
    parser.add_argument("--leash", type=float, default=LEASH_S, help="the leash of an agent that is started, seconds")
    parser.add_argument("--patience", type=float, default=1.0, help="multiplies the time for an agent to begin")
    options = parser.parse_args(argv)
    # The controller watches its processes drain after a job is cancelled. A handler instead of SIG_IGN: children inherit SIG_IGN.
    signal.signal(signal.SIGTERM, lambda *_: None)
    try:
        if options.start:
            asyncio.run(
                found_or_started(
                    LocalHost(
                        options.system,
                        options.start,
                        name=options.host,
                        patience=options.patience,
                        leash_s=options.leash,
                    )
                )
            )
        agent = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        agent.connect(str(socket_of(options.system, options.host)))
    except Refused as refused:
        greet(refused.as_json())
        return 4
    except OSError as error:
        greet(
            Refused(
                "control.host_silent",
                f"there is no agent of {options.system} on {os.uname().nodename}: {error.strerror}",
                "",
            ).as_json()
        )
        return 4
    greet({"ok": True, "reply": None})
    threading.Thread(target=pumped, args=(agent.fileno(), 1), daemon=True).start()
    pumped(0, agent.fileno())


if __name__ == "__main__":
    sys.exit(main())
