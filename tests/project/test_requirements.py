"""tools/requirements.txt names every Python package that Rodeo and its examples import, so that what ./run or rodeo-python-packages installs is enough."""

import ast
import json
import sys
from importlib.metadata import packages_distributions
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CLUSTERS = {"dask", "dask_jobqueue", "distributed"}  # `rodeo net sweep` names the command that installs them


def imported(source):
    """The first names of all modules that a source imports, also by needed("...") and needs("...")."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (one.name.split(".")[0] for one in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            yield node.module.split(".")[0]
        elif (
            isinstance(node, ast.Call)
            and getattr(node.func, "id", "") in ("needed", "needs")
            and isinstance(node.args[0], ast.Constant)
        ):
            yield node.args[0].value.split(".")[0]


def sources():
    for path in [*(ROOT / "python" / "rodeo").rglob("*.py"), *(ROOT / "examples").rglob("*.py")]:
        yield path, path.read_text()
    for path in (ROOT / "examples").rglob("*.ipynb"):
        for cell in json.loads(path.read_text())["cells"]:
            if cell["cell_type"] == "code":
                yield path, "".join(cell["source"])


def listed():
    lines = (ROOT / "tools" / "requirements.txt").read_text().splitlines()
    return {line.split("==")[0].lower().replace("_", "-") for line in lines if not line.startswith("#")}


def test_every_imported_package_is_listed():
    distributions, names = packages_distributions(), listed()
    modules = {module: path for path, source in sources() for module in imported(source)}
    assert {"hist", "uproot", "awkward", "h5py", "sqlalchemy"} <= set(modules)
    lacking = {
        module: str(path.relative_to(ROOT))
        for module, path in modules.items()
        if module not in sys.stdlib_module_names | CLUSTERS | {"rodeo"}
        and not (path.parent / f"{module}.py").exists()
        and not names & {each.lower().replace("_", "-") for each in distributions.get(module, [module])}
    }
    assert not lacking


def test_the_driver_of_the_database_that_messages_name_is_listed():
    assert {"psycopg", "psycopg-binary"} <= listed()
