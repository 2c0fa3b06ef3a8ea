"""Turns names, patterns and lists of them into paths of files."""

import glob
import os

WRITING = ".writing"
_NOT_DATA = (".index", ".json")  # files that accompany data files


def expand(patterns, follow):
    """Paths as texts, sorted by name within a pattern. Files of a pattern exist; a plain name is not checked."""
    paths = []
    for pattern in patterns:
        name = os.fsdecode(pattern)
        if os.path.lexists(name) or not glob.has_magic(name):
            if follow and not os.path.lexists(name) and os.path.lexists(stem(name) + WRITING):
                name = stem(name) + WRITING
            paths.append(name)
            continue
        found = set(glob.glob(name))
        if follow:
            found.update(glob.glob(stem(name) + WRITING))
        paths += sorted(path for path in found if not path.endswith(_NOT_DATA))
    return paths


def stem(path):
    """A file's name without the part that its writer changes on closing."""
    for ending in (WRITING, ".data"):
        if path.endswith(ending):
            return path.removesuffix(ending)
    return path
