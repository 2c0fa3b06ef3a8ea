"""How to install a missing Python package: this differs between a clone and an installation."""

import os
from pathlib import Path


def remedy(package="numpy"):
    """A command line that installs all Python packages that Rodeo uses; beside a wheel it installs only `package`."""
    try:
        from rodeo._version import INSTALLED
    except ImportError:
        INSTALLED = False
    if not INSTALLED:
        return "tools/setup run"
    # PREFIX/lib[64]/rodeo/python/rodeo/missing.py
    installer = next(
        (
            each / "sbin" / "rodeo-python-packages"
            for each in Path(__file__).resolve().parents
            if (each / "sbin" / "rodeo-python-packages").exists()
        ),
        None,
    )
    if installer is None:
        return f"pip install {package}"  # the wheel
    command = (
        "rodeo-python-packages"
        if str(installer.parent) in ("/sbin", "/usr/sbin", "/usr/local/sbin")
        else str(installer)
    )
    return command if os.access(installer.parent, os.W_OK) else f"sudo {command}"
