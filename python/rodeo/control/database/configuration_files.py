"""The exact configuration of a run as files: the system file, each class's file, and the settings that override them. `rodeo runs config N` writes them."""

import hashlib
import json
import os
from pathlib import Path, PurePosixPath

from rodeo.control.refused import Refused

SUMMARY = "configuration.json"


def files_of(configuration):
    """Returns {relative path: text} of a configuration from Reads.configuration(). Pure.

    Files below the directory of the system file keep their relative paths, others go to `elsewhere/`. `effective/CLASS.txt` has
    every value of a class with its origin; configuration.json has build, files, checksums and the settings of each process. Refused(control.no_config)
    if the run has no configuration."""
    if not isinstance(configuration.get("system"), str):
        raise Refused(
            "control.no_config", f"the configuration of run {configuration.get('run')} is not in the database", ""
        )
    base = PurePosixPath(configuration.get("file") or "/system.toml")
    files, origin = (
        {base.name: configuration["system"]},
        {base.name: {"file": str(base), "sha256": _sha256(configuration["system"])}},
    )
    at = {}
    for name, one in sorted((configuration.get("classes") or {}).items()):
        if not one.get("file"):
            continue
        path = _relative(PurePosixPath(one["file"]), base.parent)
        if path in files and files[path] != one["text"]:
            path = f"elsewhere/{name}/{PurePosixPath(one['file']).name}"
        files[path], at[name] = one["text"], path
        origin[path] = {"file": one["file"], "sha256": _sha256(one["text"])}
        files[f"effective/{name}.txt"] = effective(one)
    processes = {
        name: {**each, "file": at.get(each.get("class"))}
        for name, each in (configuration.get("processes") or {}).items()
    }
    summary = {
        "run": configuration.get("run"),
        "build": configuration.get("build"),
        "sha256": configuration.get("sha256"),
        "files": origin,
        "processes": processes,
    }
    files[SUMMARY] = json.dumps(summary, indent=1) + "\n"
    return files


def effective(one):
    """Writes all values of a class as text: KEY = VALUE, with the origin of each."""
    values, origins = one.get("values") or {}, one.get("origins") or {}
    lines = [f"{key} = {value}" for key, value in values.items()]
    widest = min(max(map(len, lines), default=0), 60)
    return "".join(
        f"{line:{widest}}  # {origins[key]}\n" if origins.get(key) else f"{line}\n" for key, line in zip(values, lines)
    )


def write(directory, configuration):
    """Writes the files of files_of() into a new or empty directory. Returns their paths. Refused: control.no_config; control.exists if the directory is not
    empty; control.directory if it cannot be written."""
    files = files_of(configuration)
    directory = Path(directory)
    try:
        if directory.is_dir() and any(directory.iterdir()):
            raise Refused(
                "control.exists",
                f"{directory} is not empty; files are never overwritten",
                "name another directory: --directory",
            )
        for name, text in files.items():
            path = directory / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(text.encode())
    except OSError as error:
        raise Refused(
            "control.directory",
            f"cannot write {error.filename or directory}: {error.strerror}",
            "name another directory: --directory",
        ) from None
    return [directory / name for name in files]


def _relative(path, base):
    """Returns the path of a file in the new directory. It stays below this directory for any contents of the database."""
    try:
        parts = PurePosixPath(os.path.normpath(path)).relative_to(os.path.normpath(base)).parts
    except ValueError:
        parts = ("elsewhere", path.name)
    return "/".join(part for part in parts if part not in ("..", "/")) or "file"


def _sha256(text):
    return hashlib.sha256(text.encode()).hexdigest()
