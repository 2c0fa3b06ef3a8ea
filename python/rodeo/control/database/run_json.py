"""A run as one JSON file: `run.json` in its folder has the contents of the database, and another database can import it. Blocks for the disk."""

import contextlib
import json
import os
import threading
from pathlib import Path

from rodeo.control.refused import Refused

NAME = "run.json"
STDIN = Path("/dev/stdin")
FORMAT = "rodeo-run"
VERSION = 1
OF_THE_RUN = ""  # the process of counters that belong to the run
LONGEST = 256 * 2**20  # bytes; longer files are refused
_ONE = threading.Lock()  # held during all writes, so that two threads do not write to one file


def write(folder, record):
    """Writes a `record` of Reads.run() into the folder of its run, completely or not at all. Returns the path. OSError."""
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    return write_file(folder / NAME, record)


def write_file(path, record):
    """Does the same as write(), to a file of any name."""
    path = Path(path)
    part = path.with_name(path.name + ".part")
    with _ONE:
        try:
            with open(part, "w", encoding="utf-8") as file:
                json.dump(document(record), file, indent=1)
                file.write("\n")
                file.flush()
                os.fsync(file.fileno())
            os.replace(part, path)
        except OSError:
            with contextlib.suppress(OSError):
                part.unlink()
            raise
    return path


def document(record):
    """Makes the file's contents: the record with format and version."""
    return {"format": FORMAT, "version": VERSION, **record}


def read(path):
    """Returns the record of a file. Refused(control.run_json) if the file is not a run.json, or is of a newer version."""
    path = Path(path)
    try:
        with open(path, encoding="utf-8") as file:
            text = file.read(LONGEST + 1)
    except (OSError, UnicodeDecodeError) as error:
        raise Refused(
            "control.run_json", f"cannot read {path}: {getattr(error, 'strerror', None) or error}", ""
        ) from None
    if len(text) > LONGEST:
        raise Refused("control.run_json", f"{path} is longer than {LONGEST >> 20} MiB", "")
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise Refused("control.run_json", f"{path} is not JSON: {error}", "") from None
    if not isinstance(value, dict) or value.get("format") != FORMAT:
        raise Refused(
            "control.run_json",
            f"{path} is not the run.json of a control room",
            'such a file has "format": "rodeo-run"; a readout\'s own record has the same name, one folder below',
        )
    if not isinstance(value.get("version"), int) or value["version"] > VERSION:
        raise Refused(
            "control.run_json",
            f"{path} is of version {value.get('version')}; this Rodeo reads {VERSION}",
            "use a newer Rodeo",
        )
    return {name: each for name, each in value.items() if name not in ("format", "version")}


def ended(folder):
    """Returns the record of an ended run from its folder, or None."""
    with contextlib.suppress(Refused):
        record = read(Path(folder) / NAME)
        if record.get("state") in ("CLOSED", "ABORTED"):
            return record
    return None


def keep(folder, record):
    """Does the same as write(), but keeps the file of another ended run with the same number (from another database). Returns True if it wrote the file."""
    before = ended(folder)
    if before is not None and (before.get("asked_ns"), before.get("system")) != (
        record.get("asked_ns"),
        record.get("system"),
    ):
        return False
    write(folder, record)
    return True


def found(paths):
    """Returns the run files of `paths`: a file itself; for a directory its run.json, those of its subdirectories and of its `runs`.
    Refused(control.run_json) if a directory has none."""
    files = []
    for path in map(Path, paths):
        if path.is_dir():
            below = [path / NAME, *sorted(path.glob(f"*/{NAME}")), *sorted(path.glob(f"runs/*/{NAME}"))]
            here = [each for each in below if each.is_file() and _is_run(each)]
            if not here:
                raise Refused(
                    "control.run_json",
                    f"{path} contains no run.json of a run",
                    "name a run's folder, `runs`, or the directory of a system",
                )
            files += here
        elif path.exists() and not path.is_file() and path != STDIN:
            raise Refused(
                "control.run_json",
                f"{path} is not a regular file",
                "to read from a pipe use standard input: rodeo runs import -",
            )
        else:
            files.append(path)
    return list(dict.fromkeys(files))


def _is_run(path):
    """True if a file begins like a run.json of a control room. The files of readouts have the same name, and another begin."""
    with contextlib.suppress(OSError, UnicodeDecodeError):
        with open(path, encoding="utf-8") as file:
            return f'"format": "{FORMAT}"' in file.read(200)
    return False
