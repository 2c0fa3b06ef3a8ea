#!/usr/bin/env python3
"""A switch driver for `rodeo net lab --hosts ... --driver examples/network/switch_driver.py`: a Linux machine as the switch under test.

The laboratory writes one JSON object per line, and the driver answers each with one line:

    {"do": "describe"}                                            {"description": "..."}
    {"do": "set_buffer", "shared_bytes": N, "port_bytes": null}   {}
    {"do": "start"}                                               {}
    {"do": "counters"}                                            {"drops": N, "max_buffer_bytes": N or null, "ports": [{"name": "...", "drops": N}]}

It answers an impossible request with {"error": "..."}. The end of stdin ends the driver. Replace tc() by the commands of your switch.

    --driver-option ports=eth1,eth2     links towards the filter nodes
    --driver-option rate=50mbit         the rate of each of these links
    --driver-option reach='ssh tor1'    the command that reaches the machine; default: this machine
"""

import json
import shlex
import subprocess
import sys

options = dict(argument.split("=", 1) for argument in sys.argv[1:])
ports = options["ports"].split(",")
reach = shlex.split(options.get("reach", ""))


def tc(*words):
    done = subprocess.run([*reach, "tc", *words], capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(f"tc {' '.join(words)}: {done.stderr.strip()}")
    return done.stdout


def describe(_):
    return {"description": f"Linux, tbf of {options['rate']} on {len(ports)} ports"}


def set_buffer(question):
    if question["shared_bytes"] is not None:
        raise RuntimeError("this switch has no shared buffer: use port:SIZE")
    limit = question["port_bytes"] or 1_000_000_000
    for port in ports:
        tc(
            "qdisc",
            "replace",
            "dev",
            port,
            "root",
            "tbf",
            "rate",
            options["rate"],
            "burst",
            "3028",
            "limit",
            str(limit),
        )
    return {}


def start(_):
    return {}


def counters(_):
    lost = [
        {"name": port, "drops": json.loads(tc("-s", "-j", "qdisc", "show", "dev", port, "root"))[0]["drops"]}
        for port in ports
    ]
    return {"drops": sum(port["drops"] for port in lost), "max_buffer_bytes": None, "ports": lost}


for line in sys.stdin:
    question = json.loads(line)
    try:
        answer = {"describe": describe, "set_buffer": set_buffer, "start": start, "counters": counters}[question["do"]](
            question
        )
    except (RuntimeError, KeyError) as reason:
        answer = {"error": str(reason)}
    print(json.dumps(answer), flush=True)
