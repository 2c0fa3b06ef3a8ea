"""The systemd units: each kind of process has one, packages install and stop each, the package test checks each, and all templates have the same shape."""

import sys

from conftest import ROOT

UNITS = ROOT / "packaging/systemd"
# Lines that depend on the kind of process. All other lines of a template are the same in each.
OWN = (
    *("Description", "Documentation", "ExecStart", "KillMode", "KillSignal", "Restart", "RestartSec"),
    *("DevicePolicy", "DeviceAllow", "PrivateDevices", "RestrictSUIDSGID"),
)


def units():
    return sorted(path.name.removesuffix(".in") for path in UNITS.glob("*.service.in"))


def lines(unit):
    return (UNITS / f"{unit}.in").read_text().splitlines()


def test_each_kind_of_process_has_a_unit():
    sys.path.insert(0, str(ROOT / "python"))
    from rodeo.control.state import kinds

    wanted = {"rodeo-" + "-".join(kind.verb) + "@.service" for kind in kinds.KINDS.values() if kind.verb}
    assert len(wanted) == 6 and wanted <= set(units())
    for unit in wanted:
        command = unit.removesuffix("@.service").replace("-", " ")
        assert f"ExecStart=@CMAKE_INSTALL_FULL_BINDIR@/{command} /etc/rodeo/%i.toml" in lines(unit)


def test_packages_install_and_stop_each_unit():
    rules = (ROOT / "cmake/RodeoInstall.cmake").read_text()
    installed = rules[rules.index("set(units ") + len("set(units ") :].split(")")[0].split()
    assert sorted(installed) == units()
    for script in ("debian/prerm", "rpm/preun"):
        text = (ROOT / "packaging" / script).read_text()
        assert not [unit for unit in units() if unit.replace("@.", "@*.") not in text], script


def test_the_test_of_packages_and_the_documents_name_each_unit():
    inside = (ROOT / "tools/test-packages-inside").read_text()
    [tried] = [line for line in inside.splitlines() if line.startswith("  for unit in ")]
    templates = [unit.removesuffix("@.service") for unit in units() if "@" in unit]
    assert sorted(f"rodeo-{word}" for word in tried.split(" in ")[1].split(";")[0].split()) == templates
    document = (ROOT / "docs/operations/services.md").read_text()
    assert not [unit for unit in units() if unit.replace("@.service", "@") not in document]


def test_all_templates_have_the_same_shape():
    def common(unit):
        return [line for line in lines(unit) if not line.startswith("#") and line.split("=")[0] not in OWN]

    templates = [unit for unit in units() if "@" in unit]
    assert not [unit for unit in templates if common(unit) != common(templates[0])]
