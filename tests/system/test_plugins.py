"""Plug-ins from a detector expert's view: the examples, and a new plug-in from the template, built against the installed package."""

import json
import re
import signal
import socket
import struct
import subprocess
import sys
import time

import pytest

from conftest import BUILD, ROOT, TIMEOUT_SCALE, scaled

INSTALLED = BUILD / "installed"
QUICK_BUILD = "None"  # builds fastest: without optimisation and symbols


def run(*command, cwd):
    done = subprocess.run([str(part) for part in command], cwd=cwd, text=True, capture_output=True, timeout=scaled(150))
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def components(rodeo, *plugins):
    listed = json.loads(rodeo("plugin", "list", *plugins, "-o", "json").stdout)
    return {(one["kind"], one["name"]) for one in listed if one["origin"] != "built in"}


def test_the_example_plugins_are_found_by_name(rodeo):
    assert components(rodeo, "muon", "calorimeter") == {
        ("extractor", "muon"),
        ("checker", "muon_crc16"),
        ("restamp", "muon"),
        ("extractor", "calorimeter"),
        ("checker", "calorimeter_crc32"),
        ("restamp", "calorimeter"),
    }


@pytest.mark.parametrize("plugin", ["muon", "calorimeter"])
def test_the_example_plugins_pass_their_tests(plugin):
    run(BUILD / "plugins-build" / plugin / f"{plugin}_test", cwd=BUILD)


def test_the_keys_of_a_plugin_are_explained(rodeo):
    said = rodeo("explain", "--plugin", "calorimeter", "readout.extractor.bcid_offset").stdout
    assert 'with type = "calorimeter"' in said and "0 to 3563" in said


def test_a_configuration_knows_the_keys_of_the_plugins_that_it_names(rodeo):
    text = '[readout]\nplugins = ["calorimeter"]\n[[readout.rob]]\nsource_id = "0x610001"\n[readout.input]\ntype = "generator"\n[readout.extractor]\ntype = "calorimeter"\n'
    (rodeo.directory / "good.toml").write_text(text + "bcid_offset = 3\n")
    (rodeo.directory / "bad.toml").write_text(text + "bcid_ofset = 3\n")
    rodeo("check", "good.toml")
    assert "did you mean `bcid_offset`? (integer, default 0)" in rodeo("check", "bad.toml", exit_code=3).stderr


@pytest.mark.parametrize("name", ["rodeo", "test", "install"])
def test_a_new_plugin_is_not_called_like_a_library_or_target_that_there_is(rodeo, name):
    assert f"{name}_detector" in rodeo("plugin", "new", name, exit_code=2).stderr
    assert not (rodeo.directory / name).exists()


@pytest.mark.parametrize("name", ["class", "std", "xor_eq"])
def test_a_new_plugin_may_be_called_like_a_word_of_the_language(rodeo, name):
    rodeo("plugin", "new", name)
    sources = sorted((rodeo.directory / name).glob("*.cpp"))
    assert len(sources) == 3
    # One translation unit includes all sources, so that the headers are compiled once.
    unit = "".join(
        f'#define main main_of_{number}\n#include "{source}"\n#undef main\n' for number, source in enumerate(sources)
    )
    subprocess.run(
        ["g++", "-std=c++20", "-fsyntax-only", f"-I{ROOT / 'include'}", "-x", "c++", "-"],
        input=unit,
        text=True,
        check=True,
    )


def test_a_new_plugin_builds_and_passes_its_test_against_the_installed_package(rodeo):
    rodeo("plugin", "new", "my_detector")
    source = rodeo.directory / "my_detector"
    assert {path.name for path in source.iterdir()} == {
        "CMakeLists.txt",
        "README.md",
        "my_detector.h",
        "my_detector.cpp",
        "my_detector_test.cpp",
        "my_detector_recording.cpp",
        "my_detector.toml",
        "my_detector_decoder.py",
        "my_detector_decoder_test.py",
    }
    assert not any("__NAME__" in path.read_text() for path in source.iterdir())
    tested = build_and_test(source)
    if list((BUILD / "python" / "rodeo").glob("_data*.so")):
        assert re.search("my_detector_decoder_test .*Passed", tested), tested
    assert ("extractor", "my_detector") in components(rodeo, source / "build" / "libmy_detector.so")

    # Then a recording, as in docs/tutorials/plugin.md.
    library = source / "build" / "libmy_detector.so"
    recording = source / "my_detector.felix"
    assert "error[file.open]" in rodeo("check", source / "my_detector.toml", exit_code=3).stderr
    run("build/my_detector_recording", recording, cwd=source)
    rodeo("check", source / "my_detector.toml")
    tried = plugin_test(rodeo, library, recording)
    assert (
        tried["recording"]["chunks"] == 24 * 10000 and tried["recording"]["links"] == 24 and tried["recording"]["sound"]
    )
    extractor, checker = tried["components"]
    assert (extractor["accepted"], extractor["refused"], extractor["gaps"]) == (240000, 0, 0)
    assert (extractor["smallest_l1id"], extractor["largest_l1id"], extractor["largest_bcid"]) == (0, 9999, 3560)
    assert (checker["accepted"], checker["refused"], checker["thrown"]) == (240000, 0, 0)
    assert extractor["ns_per_chunk"] > 0 and checker["ns_per_chunk"] > 0
    assert tried["first_chunks"][1] == {"elink": 1, "bytes": 18, "l1id": 1, "bcid": 400, "good": True}
    report = rodeo("readout", source / "my_detector.toml").stderr
    assert "GOOD" in report and "10000 built of 24 links, 0 incomplete" in report

    # The checker finds a flipped bit in the hits of the first chunk. The extractor finds one in the marker.
    damaged = bytearray(recording.read_bytes())
    damaged[4 + 5] ^= 1
    recording.write_bytes(damaged)
    extractor, checker = plugin_test(rodeo, library, recording, exit_code=7)["components"]
    assert (extractor["refused"], checker["refused"]) == (0, 1)
    damaged[4 + 3] ^= 0x10
    recording.write_bytes(damaged)
    extractor, checker = plugin_test(rodeo, library, recording, exit_code=7)["components"]
    assert (extractor["refused"], checker["refused"]) == (1, 1)


def test_a_new_consumer_sends_all_fragments_of_a_run_to_whoever_connects(rodeo):
    rodeo("plugin", "new", "class", "--kind", "consumer")  # the name is a keyword of the language
    source = rodeo.directory / "class"
    assert not any("__NAME__" in path.read_text() for path in source.iterdir())
    build_and_test(source)
    assert components(rodeo, source / "build" / "libclass.so") == {("consumer", "class")}
    address = f"127.0.0.1:{free_port(socket.SOCK_STREAM)}"
    rodeo("check", source / "class.toml")
    settings = ["--set", f"readout.consumer[0].address={address}", "--events", 500, "--json", "-"]
    with rodeo.start("readout", source / "class.toml", *map(str, settings)) as readout:
        readout_answers(rodeo, readout)
        received = run(source / "build" / "class_receive", address, cwd=source)
        report = json.loads(readout.communicate(timeout=scaled(60))[0])
    counters = report["consumers"]["class"]["counters"]
    built = report["fragments"]["built"]
    assert built >= 500 and report["run"]["condition"] == "GOOD", report
    assert received == f"{built} fragments, {report['bytes']['payload']} bytes of data, 0 incomplete\n"
    assert (counters["fragments_sent"], counters["not_taken"], counters["undelivered"], counters["peers_seen"]) == (
        built,
        0,
        0,
        1,
    )

    # Fragments without a receiver are lost. They are counted, and the run is not good.
    with rodeo.start(
        "readout", source / "class.toml", *map(str, settings), "--set", "readout.consumer[0].when_absent=drop"
    ) as readout:
        report = json.loads(readout.communicate(timeout=scaled(60))[0])
    assert report["run"]["condition"] == "INCOMPLETE"
    assert report["consumers"]["class"]["counters"]["not_taken"] == report["fragments"]["built"]


def build_and_test(source):
    run(
        "cmake",
        "-S",
        ".",
        "-B",
        "build",
        f"-DCMAKE_PREFIX_PATH={INSTALLED}",
        f"-DPython3_EXECUTABLE={sys.executable}",
        f"-DCMAKE_BUILD_TYPE={QUICK_BUILD}",
        cwd=source,
    )
    run("cmake", "--build", "build", "--parallel", "2", cwd=source)
    return run("ctest", "--test-dir", "build", "--output-on-failure", cwd=source)


def free_port(kind):
    with socket.socket(socket.AF_INET, kind) as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


def readout_answers(rodeo, process):
    deadline = time.monotonic() + scaled(30)
    while rodeo("readout", "status", exit_code=None).returncode != 0:
        assert process.poll() is None and time.monotonic() < deadline, process.communicate()
        time.sleep(0.05)


def test_a_new_input_passes_its_tests_and_counts_what_is_no_data(rodeo):
    """Garbled and foreign packets are not data: they are counted separately, and the run is not good."""
    rodeo("plugin", "new", "my_front_end", "--kind", "input")
    source = rodeo.directory / "my_front_end"
    assert not any("__NAME__" in path.read_text() for path in source.iterdir())
    build_and_test(source)
    port = free_port(socket.SOCK_DGRAM)
    with (
        rodeo.start(
            "readout",
            source / "my_front_end.toml",
            "--set",
            f"readout.input.listen=127.0.0.1:{port}",
            "--json",
            "-",
        ) as readout,
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as front_end,
    ):
        readout_answers(rodeo, readout)
        sent = run(source / "build" / "my_front_end_front_end", f"127.0.0.1:{port}", "2000", "2000", "4", cwd=source)
        assert sent == "2000 triggers on 4 links in 1000 datagrams\n"
        garbled = struct.pack("<IHHIH", 0x31504655, 0, 2, 250, 9)  # announces two chunks, but has none
        for datagram in (garbled, b"hello"):
            front_end.sendto(datagram, ("127.0.0.1", port))
        deadline = time.monotonic() + scaled(30)
        while (told := json.loads(rodeo("readout", "status", "-o", "json").stdout)["input"])["foreign"] == 0:
            assert time.monotonic() < deadline, told
            time.sleep(0.02)
        readout.send_signal(signal.SIGINT)
        report = json.loads(readout.communicate(timeout=scaled(60))[0])
    counters = report["input"]
    assert counters["lost_garbled"] == 1 and report["run"]["condition"] == "INCOMPLETE"
    lost = sum(value for name, value in counters.items() if name.startswith("lost_"))
    assert counters["datagrams"] + lost == 1001, report
    assert counters["sent"] == report["chunks"]["sent"] == report["chunks"]["built"] == 8000 - 8 * (lost - 1)
    others = ("late", "repeated", "restarts", "unwanted")
    assert [counters[name] for name in others] == [0] * len(others)


def plugin_test(rodeo, library, recording, *options, exit_code=0):
    said = rodeo(
        "plugin", "test", library, recording, "--cost-time", "1ms", "-o", "json", *options, exit_code=exit_code
    ).stdout
    return json.loads(said)


def test_a_recording_is_tried_with_a_built_in_extractor_and_not_with_another_detectors(rodeo):
    rodeo("data", "record", "run.felix", "--links", "4", "--events", "1000")
    extractor = plugin_test(rodeo, "rodeo", "run.felix")["components"][0]
    assert (extractor["accepted"], extractor["refused"], extractor["gaps"]) == (4000, 0, 0)
    refused = sum(one["refused"] for one in plugin_test(rodeo, "calorimeter", "run.felix", exit_code=7)["components"])
    assert refused == 2 * 4000


def test_what_a_plugin_throws_is_counted_by_chunk_and_told(rodeo):
    library = built_for_tests("throws_on_data")
    rodeo("data", "record", "run.felix", "--links", "4", "--events", "1000")
    done = rodeo("plugin", "test", library, "run.felix", "--cost-time", "1ms", "-o", "json", exit_code=7)
    extractor, checker = json.loads(done.stdout)["components"]
    assert (extractor["accepted"], extractor["refused"], extractor["thrown"]) == (3600, 400, 400)
    assert (checker["accepted"], checker["refused"], checker["thrown"]) == (3960, 40, 40)
    assert "extractor throws_on_data threw: ten at a time" in done.stderr
    assert "checker throws_on_data threw: an exception that is not a std::exception" in done.stderr


def built_for_tests(kind):
    library = next((BUILD / "test_plugins").glob(f"*{kind}*"), None)
    if library is None:
        pytest.skip("built with the unit tests")
    return library


def with_plugin(library, extractor, checker, builder, groups):
    """A configuration that replays run.felix through a plug-in."""
    return (
        f'[readout]\nplugins = ["{library}"]\n[readout.input]\ntype = "file"\nfile = "run.felix"\n[readout.builder]\ntype = "{builder}"\n'
        f'[readout.extractor]\ntype = "{extractor}"\n[[readout.rob]]\nsource_id = "0x00610001"\nlinks_per_group = {groups}\n'
        + (f'[readout.checker]\ntype = "{checker}"\n' if checker else "")
    )


@pytest.mark.parametrize("builder, groups", [("gbt", 0), ("full", 1)])
def test_what_a_plugin_throws_in_a_run_costs_the_chunks_it_threw_at_and_names_it(rodeo, builder, groups):
    library = built_for_tests("throws_on_data")
    rodeo("data", "record", "run.felix", "--links", "4", "--events", "1000")
    (rodeo.directory / "run.toml").write_text(with_plugin(library, "throws_on_data", "", builder, groups))
    done = rodeo("readout", "run.toml", "--json", "report.json")
    report = json.loads((rodeo.directory / "report.json").read_text())
    assert report["chunks"] == {"sent": 4000, "built": 3600, "lost": {"plugin_threw": 400}}, report
    assert report["run"]["condition"] == "INCOMPLETE"
    assert (
        f"the extractor `throws_on_data` of plug-in {library.resolve()} threw at a chunk of link 0x1000000000"
        in done.stderr
    )
    assert "ten at a time" in done.stderr

    # A chunk is not proven if the checker throws for it. It stays in its fragment, flagged.
    (rodeo.directory / "run.toml").write_text(with_plugin(library, "rodeo", "throws_on_data", builder, groups))
    done = rodeo("readout", "run.toml", "--json", "report.json")
    report = json.loads((rodeo.directory / "report.json").read_text())
    assert report["chunks"] == {"sent": 4000, "built": 4000, "lost": {}}, report
    assert report["fragments"]["incomplete_by_reason"] == {"corrupt": 10 if builder == "gbt" else 40}
    assert report["run"]["condition"] == "INCOMPLETE"
    assert f"the checker `throws_on_data` of plug-in {library.resolve()} threw" in done.stderr


@pytest.mark.parametrize(
    "extractor, checker, where", [("crashes", "", "in the code of"), ("rodeo", "crashes", "in a function called by")]
)
def test_a_plugin_that_crashes_a_run_is_named(rodeo, extractor, checker, where):
    library = built_for_tests("crashes")
    rodeo("data", "record", "run.felix", "--links", "4", "--events", "1000")
    (rodeo.directory / "run.toml").write_text(with_plugin(library, extractor, checker, "gbt", 0))
    done = rodeo("readout", "run.toml", exit_code=None)
    assert done.returncode not in (0, 1, 7) or TIMEOUT_SCALE > 1  # sanitizers end processes with other statuses
    assert f"SIGSEGV {where} plug-in `{library}` ({library.resolve()}), in thread rodeo-gbt-0" in done.stderr
    rodeo("explain", "base.plugin_crashed")
    tried = rodeo("plugin", "test", library, "run.felix", exit_code=None)
    assert tried.returncode != 0 and f"SIGSEGV in the code of plug-in `{library}`" in tried.stderr


def test_an_input_of_a_plugin_can_end_the_run_with_its_reason(rodeo):
    library = built_for_tests("failing_input")
    (rodeo.directory / "crate.toml").write_text(f"""
[readout]
plugins = ["{library}"]
[readout.input]
type = "crate"
[readout.builder]
type = "gbt"
[readout.extractor]
type = "crate"
[[readout.rob]]
source_id = "0x00610001"
""")
    done = rodeo("readout", "crate.toml", "--json", "report.json", exit_code=1)
    report = json.loads((rodeo.directory / "report.json").read_text())
    assert (report["run"]["condition"], report["run"]["failure"]) == (
        "ABORTED",
        "The crate of chamber 7 does not answer any more.",
    )
    assert (report["chunks"]["sent"], report["fragments"]["built"]) == (3, 3)
    assert "The crate of chamber 7 does not answer any more." in done.stderr


def test_what_cannot_be_tried_is_told(rodeo):
    rodeo("data", "record", "run.felix", "--links", "4", "--events", "100")
    (rodeo.directory / "text.felix").write_text("no blocks here" * 1000)
    assert "base.plugin_not_found" in rodeo("plugin", "test", "nobody", "run.felix", exit_code=3).stderr
    assert "file.open" in rodeo("plugin", "test", "muon", "nothing.felix", exit_code=1).stderr
    assert "formats.not_a_recording" in rodeo("plugin", "test", "muon", "text.felix", exit_code=1).stderr
    assert (
        "config.unknown_key"
        in rodeo("plugin", "test", "calorimeter", "run.felix", "--set", "bcid_ofset=3", exit_code=3).stderr
    )


def test_a_new_plugin_is_not_written_over_another(rodeo):
    rodeo("plugin", "new", "my_detector")
    assert "exists already" in rodeo("plugin", "new", "my_detector", exit_code=5).stderr
    assert "snake_case" in rodeo("plugin", "new", "My-Detector", exit_code=2).stderr
