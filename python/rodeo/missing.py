"""What to do where a Python package is missing: who has a clone does something else than who has installed us."""


def remedy():
    """A command line that installs all packages that Rodeo uses."""
    try:
        from rodeo._version import INSTALLED
    except ImportError:
        INSTALLED = False
    return "sudo rodeo-python-packages" if INSTALLED else "tools/setup run"
