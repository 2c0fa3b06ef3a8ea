"""The extension module, with what Python adds to its classes; says what to do where there is none."""

try:
    from rodeo import _data as module
except ImportError as error:
    raise ImportError(f"rodeo.data needs its extension module ({error}): build it with tools/setup, and use PYTHONPATH=build/python") from error

from rodeo.data.chunks import Chunks

DamagedEvent, DataError, Event, Fragment, StreamTag = module.DamagedEvent, module.DataError, module.Event, module.Fragment, module.StreamTag

# Every name that read() knows.
FIELDS = tuple(module.FIELDS)

Fragment.chunks = property(lambda self: Chunks(*self._chunks()), doc="The chunks of the fragment: see Chunks. ValueError if the file is not Rodeo's.")


def data_error(code, reason, file="", next=""):
    """A DataError that Python makes."""
    where = f"{file}: " if file else ""
    error = DataError(f"error[{code}]: {where}{reason}" + (f"\n  {next}" if next else ""))
    error.code, error.reason, error.file, error.index, error.offset, error.l1_id = code, reason, file, None, 0, None
    return error
