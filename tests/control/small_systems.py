"""System files for tests: the smallest ones with all kinds of processes; 2 links per card, some hundred triggers per second."""

EMULATOR = """
[emulator]
name = "cards"
{cards}
[emulator.trigger]
rate = "{rate}"
wait_for = {wait_for}
"""

CARD = """
[[emulator.card]]
type = "felix"
name = "felix-{number}"
address = "0000:{number:02x}:00.0"
serial = {number}
links = 1
elinks_per_link = 2
connector = 0
fifo_triggers = 512
"""

READOUT = """
[readout]
name = "readout"

[readout.input]
type = "card"
cards = ["0000:01:00.0"]
memory = "8MiB"
start_generator = true

[readout.builder]
type = "gbt"
timeout = "2s"
window = 4096

[readout.extractor]
type = "rodeo"

[[readout.rob]]
source_id = "0x00610001"

[[readout.consumer]]
type = "processor"
work = "verify"
seed = 1
{writer}
"""

WRITER = """
[[readout.consumer]]
type = "file_writer"
name = "writer"
directory = "files"
min_free = "0"
"""

CONTROL = """
[control]
name = "{name}"
directory = "{name}"
disk_stop = "1MB"
disk_warn = "2MB"
disk_time = "0s"
event_limit = "{event_limit}"
choose_limit = "{choose_limit}"
"""


def process(name, kind, **keys):
    """One [[control.process]], with limits for the slowest machine."""
    keys = {"name": name, "kind": kind, "launch_limit": "300s", "start_limit": "300s", "stop_limit": "300s", **keys}
    return "\n[[control.process]]\n" + "".join(f"{key} = {_toml(value)}\n" for key, value in keys.items())


def _toml(value):
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(_toml(each) for each in value) + "]"
    return (
        str(value)
        if isinstance(value, (int, float))
        else '"' + str(value).replace("\\", "\\\\").replace('"', '\\"') + '"'
    )


def write(directory, *processes, name="t", event_limit="300s", choose_limit="300s"):
    """Writes system.toml and returns its path."""
    directory.mkdir(parents=True, exist_ok=True)
    file = directory / "system.toml"
    file.write_text(CONTROL.format(name=name, event_limit=event_limit, choose_limit=choose_limit) + "".join(processes))
    return file


def emulator_file(directory, cards=1, rate="200Hz", wait_for=None):
    directory.mkdir(parents=True, exist_ok=True)
    text = EMULATOR.format(
        cards="".join(CARD.format(number=index + 1) for index in range(cards)), rate=rate, wait_for=wait_for or cards
    )
    (directory / "emulator.toml").write_text(text)


def readout_file(directory, writes=True, name="readout.toml"):
    directory.mkdir(parents=True, exist_ok=True)
    (directory / name).write_text(READOUT.format(writer=WRITER if writes else ""))


def one_card(directory, *, rate="200Hz", writes=True, role="essential", restart="never", **control):
    """One emulated card and its readout."""
    emulator_file(directory, rate=rate)
    readout_file(directory, writes)
    return write(
        directory,
        process("cards", "emulator", configuration="emulator.toml"),
        process("readout", "readout", configuration="readout.toml", role=role, restart=restart),
        **control,
    )


def two_readouts(directory, *, rate="200Hz", restart="in_run", role="expendable", **control):
    """Two cards of one emulator, each with a readout: `main` is essential, `spare` is not."""
    emulator_file(directory, cards=2, rate=rate)
    readout_file(directory, writes=False)
    return write(
        directory,
        process("cards", "emulator", configuration="emulator.toml"),
        process("main", "readout", configuration="readout.toml"),
        process(
            "spare",
            "readout",
            configuration="readout.toml",
            role=role,
            restart=restart,
            set=['readout.input.cards=["0000:02:00.0"]', "readout.rob[0].source_id=0x00610002"],
        ),
        **control,
    )


def two_of_three(directory, **control):
    """Three cards of one emulator, and a class of three readouts; two of them suffice."""
    emulator_file(directory, cards=3)
    readout_file(directory, writes=False)
    return write(
        directory,
        process("cards", "emulator", configuration="emulator.toml"),
        process(
            "readout",
            "readout",
            configuration="readout.toml",
            count=3,
            role="at_least",
            at_least=2,
            set=['readout.input.cards=["0000:0{number}:00.0"]', "readout.rob[0].source_id=0x0061000{number}"],
        ),
        **control,
    )


def elsewhere(file, **host):
    """Moves all processes of a system file to one host. `host` has the keys of [[control.host]]: `name`, `launcher` and `address`."""
    text = file.read_text().replace("[[control.process]]\n", f'[[control.process]]\nhosts = ["{host["name"]}"]\n')
    file.write_text(text + "\n[[control.host]]\n" + "".join(f"{key} = {_toml(value)}\n" for key, value in host.items()))
    return file
