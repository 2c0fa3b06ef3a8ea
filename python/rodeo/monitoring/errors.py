"""Errors of `rodeo events monitor`: what, where, why, what to do next, and the exit status."""

from rodeo.missing import remedy

# Exit codes of the command.
DONE, FAILED, USAGE, INVALID, UNREACHABLE, REFUSED, PARTIAL = range(7)


class MonitorError(Exception):
    def __init__(self, code, what, next="", status=FAILED):
        super().__init__(f"error[{code}]: {what}" + (f"\n  {next}" if next else ""))
        self.code, self.status = code, status

    @classmethod
    def of(cls, text, status):
        """An error whose text is complete."""
        error = cls("", "", status=status)
        error.args = (text,)
        return error


def needs(package):
    """Imports a package that Rodeo does not require, on use."""
    import importlib

    try:
        return importlib.import_module(package)
    except ImportError as error:
        name = package.split(".")[0]
        raise MonitorError(
            "monitor.package",
            f"`rodeo events monitor` needs the Python package {name}: {error}",
            f"{remedy(name)}, or name an interpreter that has it: RODEO_PYTHON=/path/to/python3",
        ) from None
