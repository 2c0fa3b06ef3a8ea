"""Saves histograms as ROOT (uproot), or as HDF5 in the layout of the Unified Histogram Interface (h5py, uhi)."""

import contextlib
import os
from pathlib import Path

from rodeo.monitoring.errors import USAGE, MonitorError, needs

_ENDINGS = {".root": "uproot", ".h5": "h5py", ".hdf5": "h5py"}


def check(paths):
    """Checks before the run that the files can be written at the end."""
    for path in map(Path, paths):
        package = _ENDINGS.get(path.suffix)
        if package is None:
            raise MonitorError(
                "monitor.save_name", f"{path}: histograms are saved as .root, .h5 or .hdf5", "--save NAME.root", USAGE
            )
        if not path.absolute().parent.is_dir():
            raise MonitorError(
                "monitor.save_name",
                f"{path}: there is no directory {path.absolute().parent}",
                "make it, or --save elsewhere",
                USAGE,
            )
        if not os.access(path.absolute().parent, os.W_OK):
            raise MonitorError(
                "monitor.save_name", f"{path}: {path.absolute().parent} cannot be written", "--save elsewhere", USAGE
            )
        needs(package)


def save(path, histograms, tell):
    """Saves histograms by monitor and name, and returns the path. No file is overwritten: if the name is taken, a number is added. A histogram that the
    format does not support is reported and left out."""
    path = _free(Path(path))
    half = path.with_name(f".{path.name}.{os.getpid()}.writing")
    try:
        with _Root(half) if path.suffix == ".root" else _Hdf5(half) as file:
            for monitor, of_it in histograms.items():
                for name, one in of_it.items():
                    try:
                        file.add(f"{monitor}/{name}", one)
                    except (TypeError, ValueError, NotImplementedError) as error:
                        tell(f"{path}: {monitor}/{name} was not saved: {error}")
        half.rename(path)
    except Exception as error:  # the system and the packages that write raise many types
        raise MonitorError("monitor.save", f"{path}: {error or type(error).__name__}", "--save elsewhere") from error
    finally:
        with contextlib.suppress(OSError):
            half.unlink()
    return path


def _free(path):
    tried, number = path, 1
    while tried.exists():
        number += 1
        tried = path.with_stem(f"{path.stem}-{number}")
    return tried


class _Root:
    def __init__(self, path):
        self._file = needs("uproot").recreate(path)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._file.close()

    def add(self, name, histogram):
        if len(histogram.axes) > 3:
            raise ValueError("ROOT has no histograms of more than three axes")
        if 0 in histogram.shape:
            raise ValueError("it has no bins yet")
        self._file[name] = _doubles(histogram)


def _doubles(histogram):
    """The histogram as ROOT supports it: real numbers, with or without variances."""
    import hist

    if isinstance(histogram.storage_type(), (hist.storage.Double, hist.storage.Weight)):
        return histogram
    out = hist.Hist(*histogram.axes, storage=hist.storage.Double())
    out.view(flow=True)[...] = histogram.values(flow=True)
    return out


class _Hdf5:
    def __init__(self, path):
        self._file, self._write = needs("h5py").File(path, "w"), needs("uhi.io.hdf5").write

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._file.close()

    def add(self, name, histogram):
        self._write(self._file.create_group(name), histogram)
