"""Plug-ins as a detector expert meets them: the examples, and a new one from the template against the installed package."""

import json
import subprocess

import pytest

from conftest import BUILD, ROOT, scaled

INSTALLED = BUILD / "installed"


def run(*command, cwd):
    done = subprocess.run([str(part) for part in command], cwd=cwd, text=True, capture_output=True, timeout=scaled(150))
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def components(rodeo, *plugins):
    listed = json.loads(rodeo("plugin", "list", *plugins, "-o", "json").stdout)
    return {(one["kind"], one["name"]) for one in listed if one["origin"] != "built in"}


def test_the_example_plugins_are_found_by_name(rodeo):
    assert components(rodeo, "muon", "calorimeter") == {
        ("extractor", "muon"), ("checker", "muon_crc16"), ("restamp", "muon"),
        ("extractor", "calorimeter"), ("checker", "calorimeter_crc32"), ("restamp", "calorimeter")}


@pytest.mark.parametrize("plugin", ["muon", "calorimeter"])
def test_the_example_plugins_pass_their_tests(plugin):
    run(BUILD / "plugins-build" / plugin / f"{plugin}_test", cwd=BUILD)


def test_the_keys_of_a_plugin_are_explained(rodeo):
    said = rodeo("explain", "--plugin", "calorimeter", "readout.extractor.bcid_offset").stdout
    assert 'with type = "calorimeter"' in said and "0 to 3563" in said


def test_a_configuration_knows_the_keys_of_the_plugins_that_it_names(rodeo):
    text = '[readout]\nplugins = ["calorimeter"]\n[readout.input]\ntype = "generator"\n[readout.extractor]\ntype = "calorimeter"\n'
    (rodeo.directory / "good.toml").write_text(text + "bcid_offset = 3\n")
    (rodeo.directory / "bad.toml").write_text(text + "bcid_ofset = 3\n")
    rodeo("check", "good.toml")
    assert "did you mean `bcid_offset`? (integer, default 0)" in rodeo("check", "bad.toml", exit_code=3).stderr


def test_a_new_plugin_builds_and_passes_its_test_against_the_installed_package(rodeo):
    rodeo("plugin", "new", "my_detector")
    source = rodeo.directory / "my_detector"
    assert {path.name for path in source.iterdir()} == {
        "CMakeLists.txt", "README.md", "my_detector.h", "my_detector.cpp", "my_detector_test.cpp", "my_detector.toml"}
    assert not any("__NAME__" in path.read_text() for path in source.iterdir())
    run("cmake", "-S", ".", "-B", "build", f"-DCMAKE_PREFIX_PATH={INSTALLED}", cwd=source)
    run("cmake", "--build", "build", cwd=source)
    run("ctest", "--test-dir", "build", cwd=source)
    assert ("extractor", "my_detector") in components(rodeo, source / "build" / "libmy_detector.so")
    rodeo("check", source / "my_detector.toml")


def test_a_new_plugin_is_not_written_over_another(rodeo):
    rodeo("plugin", "new", "my_detector")
    assert "is there already" in rodeo("plugin", "new", "my_detector", exit_code=5).stderr
    assert "snake_case" in rodeo("plugin", "new", "My-Detector", exit_code=2).stderr


def test_every_snippet_of_the_tutorial_is_a_piece_of_an_example_that_is_compiled():
    sources = "".join(path.read_text() for path in sorted((ROOT / "plugins").rglob("*")) if path.suffix in (".h", ".cpp"))
    tutorial = (ROOT / "docs" / "plugin-tutorial.md").read_text()
    snippets = [part.split("```")[0] for part in tutorial.split("```cpp\n")[1:]]
    assert len(snippets) >= 5
    for snippet in snippets:
        assert " ".join(snippet.split()) in " ".join(sources.split()), snippet
