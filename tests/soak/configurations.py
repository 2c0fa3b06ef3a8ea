"""Configurations of a soak: two cards of one trigger authority, a readout of the first card, a router of the second with a readout, and a farm."""

from farm import SEED, SYSTEM

READOUTS, NODES, RECORDERS, ROUTER = ["readout1", "readout2"], ["node1", "node2"], ["recorder1", "recorder2"], "router"
PROCESSES = ["supervisor", ROUTER, *READOUTS, *NODES, *RECORDERS]

SELECTION = '''"""The selection of one of the nodes: half of the events, by their ids. While there is a file `hang`, it does not answer."""

import os
import time

import rodeo

HANG = {hang!r}


@rodeo.select
def half(event):
    while os.path.exists(HANG):
        time.sleep(0.05)
    return rodeo.accept("Main") if event.l1_id % 2 else rodeo.reject()
'''


def configurations(directory, disks, rate_hz, python):
    """Name -> (command, text), in the order of the start. `disks`: directory of each recorder's files."""
    hang = str(directory / "hang")
    (directory / "selection.py").write_text(SELECTION.format(hang=hang))
    address = [f"0000:4e:0{i}.0" for i in (1, 2)]
    cards = "".join(
        f"""
[[emulator.card]]
type = "felix"
name = "felix{i}"
address = "{address[i]}"
serial = {i + 1}
links = 1
elinks_per_link = 4
chunk_size = 40
connector = {i}
seed = {SEED}
"""
        for i in (0, 1)
    )
    parts = {
        "emulator": (
            ["emulate"],
            f"""
[emulator]
name = "soak"
{cards}
[emulator.trigger]
rate = {rate_hz}
spacing = "random"
wait_for = 4
serve = "soak"
system = "{SYSTEM}"
hold = true
lumi_block_period = "4s"
""",
        )
    }
    card = """
type = "card"
cards = ["{address}"]
memory = "16MiB"
connector = {i}
start_generator = true
"""
    parts[ROUTER] = (
        ["route"],
        f"""
[router]
name = "{ROUTER}"
bus = "{directory / "links"}"
[router.input]{card.format(address=address[1], i=1)}""",
    )
    inputs = [
        card.format(address=address[0], i=0),
        f"""
type = "network"
bus = "{directory / "links"}"
""",
    ]
    for i, name in enumerate(READOUTS):
        parts[name] = (
            ["readout"],
            f"""
[run]
type = "test"
number = 1

[readout]
name = "{name}"

[readout.input]{inputs[i]}
[readout.builder]
type = "gbt"
chunk_size = 40
window = 1024
timeout = "200ms"

[readout.extractor]
type = "rodeo"

[[readout.rob]]
source_id = "0x0061000{i + 1}"

[[readout.consumer]]
type = "processor"
name = "processor"
work = "verify"
seed = {SEED}

[[readout.consumer]]
type = "hlt_request_handler"
name = "hlt"
rate = "{rate_hz}Hz"
retention = "20s"
garbage_age = "60s"
linger = "5s"
""",
        )
    parts["supervisor"] = (
        ["farm", "supervise"],
        f"""
[farm.supervisor]
name = "supervisor"
trigger = "soak"
system = "{SYSTEM}"
seed = {SEED}
readouts = {[f"{name}.hlt" for name in READOUTS]}
recorders = {RECORDERS}
events_in_flight = {max(64, int(rate_hz * 0.3))}
event_timeout = "4s"
node_grace = "500ms"
readout_grace = "10s"
rebuild_time = "3s"
decisions = "{directory / "decisions"}"
""".replace("'", '"'),
    )
    for name, disk in zip(RECORDERS, disks):
        parts[name] = (
            ["farm", "record"],
            f"""
[farm.recorder]
name = "{name}"
run_number = 1
directory = "{disk}"
max_file_size = "4MiB"
min_free = "4MiB"
buffer = "256KiB"
retry_interval = "200ms"
payload = "provable seed={SEED} crc=0"
""",
        )
    selections = (
        ['type = "fraction"\nfraction = 0.5', f'type = "python"\nfile = "{directory / "selection.py"}"\ntimeout = "1s"']
        if python
        else ['type = "fraction"\nfraction = 0.5'] * 2
    )
    for name, selection in zip(NODES, selections):
        parts[name] = (
            ["farm", "filter"],
            f"""
[farm.node]
name = "{name}"
supervisor = "supervisor"
record_timeout = "2s"

[farm.node.selection]
{selection}
""",
        )
    return parts
