"""The extension module, with the parts that Python adds to its classes. If the module is missing, the error says how to build it."""

try:
    from rodeo import _data as module
except ImportError as error:
    raise ImportError(
        f"rodeo.data needs its extension module ({error}): build it with tools/setup, and use PYTHONPATH=build/python"
    ) from error

from rodeo.data.chunks import Chunks

DamagedEvent, DataError, Event, Fragment, StreamTag = (
    module.DamagedEvent,
    module.DataError,
    module.Event,
    module.Fragment,
    module.StreamTag,
)

# All names that read() accepts.
FIELDS = tuple(module.FIELDS)

Fragment.chunks = property(
    lambda self: Chunks(*self._chunks()),
    doc="The chunks of the fragment: see Chunks. ValueError if the file is not Rodeo's.",
)


def data_error(code, reason, file="", next=""):
    """A DataError raised by the Python code."""
    where = f"{file}: " if file else ""
    error = DataError(f"error[{code}]: {where}{reason}" + (f"\n  {next}" if next else ""))
    error.code, error.reason, error.file, error.index, error.offset, error.l1_id = code, reason, file, None, 0, None
    return error
