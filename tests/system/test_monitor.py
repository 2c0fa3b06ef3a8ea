"""`rodeo events monitor`: histograms filled by a user's Python, from files and from a readout that never waits for it."""

import json
import os
import re
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

import pytest
from conftest import BUILD, ROOT, scaled
from running_readout import CONFIGURATION, adds_up, running, write_configuration
from terminal import on_a_terminal
from test_publish import PUBLISHING, STREAM

if not list((BUILD / "python" / "rodeo").glob("_data*.so")):
    pytest.skip(
        "this build has no Python modules (sanitizers, or python3-dev or nanobind is missing)", allow_module_level=True
    )

sys.path.insert(0, str(BUILD / "python"))
from rodeo.monitoring import saving  # noqa: E402
from rodeo.monitoring.drawing import draw  # noqa: E402
from rodeo.monitoring.errors import MonitorError  # noqa: E402
from rodeo.monitoring.loading import load  # noqa: E402
from rodeo.monitoring.page import Page  # noqa: E402
from rodeo.monitoring.supervisor import Supervisor  # noqa: E402
from rodeo.monitoring.svg import svg  # noqa: E402

EXAMPLE = ROOT / "examples" / "monitor.py"
HEAD = """
import hist, rodeo

def one():
    return hist.Hist.new.Reg(10, 0, 10, name="n").Double()

"""


@pytest.fixture
def file(rodeo):
    """An event file of 60 events with 8 chunks each."""
    done = rodeo("readout", write_configuration(rodeo), "--events", 60, "--json", "-")
    (written,) = json.loads(done.stdout)["files"]
    return written


def written(rodeo, text, name="my.py"):
    (rodeo.directory / name).write_text(HEAD + text)
    return name


def test_the_example_fills_histograms_of_a_running_readout_shows_them_on_a_page_and_saves_them(rodeo):
    import h5py
    import hist
    import uhi.io.hdf5
    import uproot

    with running(rodeo, "readout.consumer[1].max_rate=0Hz") as run:
        with rodeo.start(
            "events", "monitor", EXAMPLE, "--hang", "60s", "--save", "m.root", "--save", "m.h5", "--json", "-"
        ) as monitor:
            said = monitor.stderr.readline()
            address = said.removeprefix("page: ").strip()
            assert address.startswith("http://127.0.0.1:"), said + monitor.stderr.read()
            browser = urllib.request.build_opener(urllib.request.HTTPCookieProcessor())
            page = browser.open(address, timeout=scaled(20))
            assert page.geturl() == (root := address.partition("?")[0])  # the page's address no longer has the token
            page = page.read().decode()
            assert "http://" not in page and "https://" not in page
            deadline = time.monotonic() + scaled(30)
            while (now := browser.open(root + "now", timeout=scaled(20)).read().decode()).startswith("<p>0 events"):
                assert time.monotonic() < deadline
            assert "chunks/size" in now and "<svg" in now and "bytes in a chunk" in now
            monitor.send_signal(signal.SIGINT)
            out, err = monitor.communicate(timeout=scaled(60))
            assert monitor.returncode == 0, err
        report, _ = run.finish()
    told = json.loads(out)
    assert (
        told["events"] > 0
        and told["saved"] == ["m.root", "m.h5"]
        and told["monitors"]["chunks"] == {"threw": 0, "hung": 0, "left_out": False}
    )
    assert report["run"]["condition"] == "GOOD" and adds_up(report)
    with h5py.File(rodeo.directory / "m.h5") as saved:
        sizes, links = (hist.Hist(uhi.io.hdf5.read(saved[f"chunks/{name}"])) for name in ("size", "link"))
    assert sizes.sum(flow=True) == links.sum() == 8 * told["events"] and set(links.values()) == {told["events"]}
    with uproot.open(rodeo.directory / "m.root") as saved:
        assert (saved["chunks/size"].to_hist().values() == sizes.values()).all()
        assert saved["structure/size_of_bcid"].to_hist().sum(flow=True) == told["events"]


@pytest.mark.parametrize(
    "path, headers, code",
    [
        ("", {}, "monitor.token"),
        ("now", {}, "monitor.token"),
        ("?token=wrong", {}, "monitor.token"),
        ("now", {"Cookie": "rodeo-monitor-PORT=wrong"}, "monitor.token"),
        ("?token=TOKEN", {"Host": "elsewhere.example"}, "control.host"),
        ("?token=TOKEN", {"Host": "127.0.0.1:1"}, "control.host"),
        ("?token=TOKEN", {"Origin": "http://elsewhere.example"}, "control.origin"),
    ],
    ids=str,
)
def test_the_page_opens_to_nobody_who_does_not_have_its_address(monitor_page, path, headers, code):
    root, token, port = monitor_page
    headers = {name: value.replace("PORT", port) for name, value in headers.items()}
    with pytest.raises(urllib.error.HTTPError) as refused:
        urllib.request.urlopen(
            urllib.request.Request(root + path.replace("TOKEN", token), headers=headers), timeout=scaled(20)
        )
    assert refused.value.code == 403 and f"error[{code}]" in refused.value.read().decode()


@pytest.fixture(scope="module")
def monitor_page():
    page = Page("my.py", 0)
    try:
        page.show("7 events", [], [])
        root, _, token = page.address.partition("?token=")
        yield root, token, root.rstrip("/").rpartition(":")[2]
    finally:
        page.close()


def test_a_readout_of_the_network_is_monitored_by_its_stream(rodeo):
    name = written(
        rodeo, "@rodeo.monitor(n=one())\ndef chunks(event, n):\n    n.fill(len(event.fragments[0].chunks))\n"
    )
    (rodeo.directory / "ours").write_text("abcdefghijklmnopqrstuvwxyz")
    (rodeo.directory / "ours").chmod(0o600)
    publish = PUBLISHING.replace("wait_for_subscriber = true", 'secret_file = "ours"')
    with running(rodeo, text=publish) as run:
        assert (
            "error[transport.secret]"
            in rodeo("events", "monitor", name, *STREAM, "--no-page", "--no-save", exit_code=5).stderr
        )
        done = rodeo(
            "events",
            "monitor",
            name,
            *STREAM,
            "--secret-file",
            "ours",
            "--events",
            20,
            "--no-page",
            "--save",
            "m.h5",
            "--json",
            "-",
        )
        report, _ = run.finish()
    import h5py
    import hist
    import uhi.io.hdf5

    told = json.loads(done.stdout)
    assert told["events"] >= 20 and told["monitors"]["chunks"] == {"threw": 0, "hung": 0, "left_out": False}
    assert (
        report["run"]["condition"] == "GOOD"
        and adds_up(report)
        and report["consumers"]["publish"]["counters"]["refused_peers"] >= 1
    )
    with h5py.File(rodeo.directory / "m.h5") as saved:
        n = hist.Hist(uhi.io.hdf5.read(saved["chunks/n"]))
    assert n[8j] == n.sum(flow=True) == told["events"]
    assert (
        "error[readout.no_stream]"
        in rodeo("events", "monitor", name, *STREAM, "--no-page", "--no-save", exit_code=4).stderr
    )
    assert "cli.usage" in rodeo("events", "monitor", name, *STREAM, "--input", "a.data", exit_code=2).stderr


def test_a_monitor_that_hangs_costs_no_fragment_and_no_trigger(rodeo):
    hangs = written(rodeo, "@rodeo.monitor(n=one())\ndef hangs(event, n):\n    n.fill(1)\n    while True: pass\n")
    with running(rodeo, "readout.consumer[1].max_rate=0Hz") as run:
        with rodeo.start(
            "events", "monitor", hangs, "--hang", "300ms", "--no-page", "--save", "m.h5", "--json", "-"
        ) as monitor:
            sampler = lambda status: status["consumers"]["event_sampler"]["counters"]
            watched = run.wait_until(
                lambda status: (
                    sampler(status)["readers"] == 1 and sampler(status).get("samples_missed_by_readers", 0) > 0
                ),
                "it hangs, and misses events",
            )
            run.wait_until(
                lambda status: status["fragments"]["built"] > watched["fragments"]["built"] + 2000, "the run went on"
            )
            report, _ = run.finish()
            out, err = monitor.communicate(timeout=scaled(60))
    assert report["run"]["condition"] == "GOOD" and adds_up(report)
    assert (
        report["consumers"]["event_sampler"]["stalls"] == 0
        and report["input"]["vetoed"] == 0
        and report["dead_time_fraction"] == 0
    )
    assert "monitor hangs hangs in my.py:10 (`while True: pass`)" in err and "Traceback" not in err
    told = json.loads(out)
    assert monitor.returncode == 6 and told["monitors"]["hangs"]["hung"] >= 1


def test_a_process_that_is_killed_between_events_is_begun_anew_and_loses_a_moment(rodeo):
    name = written(rodeo, "@rodeo.monitor(n=one())\ndef count(event, n):\n    n.fill(1)\n")
    with running(rodeo, "readout.consumer[1].max_rate=20Hz") as run:
        with rodeo.start("events", "monitor", name, "--hang", "60s", "--save", "m.h5", "--json", "-") as monitor:
            root, _, _ = (address := monitor.stderr.readline().removeprefix("page: ").strip()).partition("?")
            browser = urllib.request.build_opener(urllib.request.HTTPCookieProcessor())
            browser.open(address, timeout=scaled(20))

            def shown_when(wanted):
                deadline = time.monotonic() + scaled(60)
                while not wanted(now := browser.open(root + "now", timeout=scaled(20)).read().decode()):
                    assert time.monotonic() < deadline, now
                return int(re.match(r"<p>([\d,]+) events", now)[1].replace(",", ""))

            before = shown_when(lambda now: now and not now.startswith("<p>0 events"))
            os.kill(worker_of(monitor.pid), signal.SIGKILL)
            shown_when(lambda now: "restarted once" in now)
            shown_when(lambda now: int(re.match(r"<p>([\d,]+) events", now)[1].replace(",", "")) > before)
            monitor.send_signal(signal.SIGINT)
            out, err = monitor.communicate(timeout=scaled(60))
        run.finish()
    told = json.loads(out)
    assert (
        monitor.returncode == 6
        and told["restarts"] + told["monitors"]["count"]["hung"] == 1
        and "signal SIGKILL" in err
    ), err
    assert counted(rodeo.directory / "m.h5", "count/n") == told["events"] > before


def worker_of(pid):
    """The process that runs the monitors."""
    children = [
        int(one) for task in Path(f"/proc/{pid}/task").iterdir() for one in (task / "children").read_text().split()
    ]
    (worker,) = [one for one in children if b"spawn_main" in Path(f"/proc/{one}/cmdline").read_bytes()]
    return worker


def counted(path, name):
    import h5py
    import hist
    import uhi.io.hdf5

    with h5py.File(path) as saved:
        return hist.Hist(uhi.io.hdf5.read(saved[name])).sum(flow=True)


def test_histograms_are_saved_also_where_the_monitors_cannot_go_on(rodeo, file):
    name = written(
        rodeo,
        """
import os, time

if os.path.exists("died"):
    os._exit(7)  # no monitor is running

@rodeo.monitor(n=one())
def count(event, n):
    n.fill(1)
    if event.index == 19:
        time.sleep(0.5)  # the histograms are sent after this event
    if event.index == 21:
        open("died", "w")
        os._exit(7)
""",
    )
    done = rodeo(
        "events", "monitor", name, "--input", file, "--no-page", "--hang", "60s", "--save", "m.h5", exit_code=1
    )
    assert (
        "monitor.ended" in done.stderr
        and "exit status 7" in done.stderr
        and "saved: m.h5" in done.stderr
        and "Traceback" not in done.stderr
    ), done.stderr
    assert counted(rodeo.directory / "m.h5", "count/n") >= 20


def test_a_file_that_hangs_while_it_is_loaded_is_named_with_its_line(rodeo):
    name = rodeo.directory / "my.py"
    name.write_text("\n\nwhile True: pass\n")
    monitors = Supervisor(name, {"readout": "", "files": ["none.data"]}, 0.5, False, print, load_s=2)
    try:
        monitors.start()
        deadline = time.monotonic() + scaled(60)
        with pytest.raises(
            MonitorError, match=r"monitor.file.*my.py hangs while it is loaded in .*my.py:3 \(`while True: pass`\)"
        ) as told:
            while time.monotonic() < deadline:
                monitors.poll(0.1)
        assert told.value.status == 3
    finally:
        monitors.close()


def test_each_file_is_tried_also_where_another_cannot_be_written(rodeo, file):
    (rodeo.directory / "full").mkdir()
    name = written(
        rodeo,
        """
@rodeo.monitor(n=one())
def count(event, n):
    n.fill(1)
    import os
    if os.path.isdir("full"):
        os.rmdir("full")
        open("full", "w")  # no directory any more
""",
    )
    done = rodeo(
        "events",
        "monitor",
        name,
        "--input",
        file,
        "--no-page",
        "--hang",
        "60s",
        "--save",
        "full/b.root",
        "--save",
        "good.h5",
        "--json",
        "-",
        exit_code=1,
    )
    assert "error[monitor.save]: full/b.root" in done.stderr and "Traceback" not in done.stderr
    told = json.loads(done.stdout)
    assert told["saved"] == ["good.h5"] and counted(rodeo.directory / "good.h5", "count/n") == told["events"]


def test_a_monitor_that_throws_is_named_and_counted_and_the_others_go_on(rodeo, file):
    name = written(
        rodeo,
        """
@rodeo.monitor(n=one())
def good(event, n):
    n.fill(len(event.fragments[0].chunks))

@rodeo.monitor(n=one())
def throws(event, n):
    n.fill(event.fragments[0].chunks.size[99])

@rodeo.monitor(n=hist.Hist.new.Reg(1, 0, 1, growth=True).Double())
def grows(event, n):
    n.fill(10_000_000 if event.index == 1 else 0)

print("loaded")
""",
    )
    done = rodeo(
        "events",
        "monitor",
        name,
        "--input",
        file,
        "--no-page",
        "--no-save",
        "--hang",
        "60s",
        "--json",
        "-",
        exit_code=6,
    )
    told = json.loads(done.stdout)
    events = told["events"]
    assert events >= 60 and told["monitors"] == {
        "good": {"threw": 0, "hung": 0, "left_out": False},
        "throws": {"threw": events, "hung": 0, "left_out": False},
        "grows": {"threw": 0, "hung": 0, "left_out": True},
    }
    assert "monitor throws threw at my.py:14: IndexError" in done.stderr and "Traceback" not in done.stderr
    assert (
        "monitor grows is left out from now on: histogram n has grown beyond 64 MiB" in done.stderr
        and "loaded" in done.stderr
    )
    assert (
        "Traceback"
        in rodeo(
            "events",
            "monitor",
            name,
            "--input",
            file,
            "--no-page",
            "--no-save",
            "--hang",
            "60s",
            "--log",
            "debug",
            exit_code=6,
        ).stderr
    )


def test_where_nobody_can_be_told_histograms_and_report_are_there(rodeo, file):
    name = written(rodeo, "@rodeo.monitor(n=one())\ndef count(event, n):\n    n.fill(1)\n")
    with open("/dev/full", "w") as full:
        done = rodeo.start(
            "events",
            "monitor",
            name,
            "--input",
            file,
            "--no-page",
            "--hang",
            "60s",
            "--save",
            "m.h5",
            "--json",
            "m.json",
            stdout=subprocess.DEVNULL,
            stderr=full,
        )
        assert done.wait(timeout=scaled(60)) == 0
    assert (
        json.loads((rodeo.directory / "m.json").read_text())["saved"] == ["m.h5"]
        and counted(rodeo.directory / "m.h5", "count/n") >= 60
    )


def test_the_last_that_a_monitor_prints_is_told(rodeo, file):
    name = written(
        rodeo,
        """
@rodeo.monitor(n=one())
def count(event, n):
    n.fill(1)
    print("a line", event.index, end=" without an end")
""",
    )
    again = ("events", "monitor", name, "--input", file, "--no-page", "--no-save", "--hang", "60s")
    assert re.search(r"a line \d+ without an end$", rodeo(*again).stderr, re.MULTILINE)
    written(rodeo, 'print("reads calib.json", end="")\nopen("calib.json")\n')
    done = rodeo(*again, "--log", "debug", exit_code=3)
    assert "reads calib.json" in done.stderr and done.stderr.index("Traceback") < done.stderr.index("error[")
    assert 'open("calib.json")' in done.stderr, "the output has the worker's traceback"


def test_a_monitor_that_ends_its_process_is_left_out_of_files_and_the_others_see_every_event_once(rodeo, file):
    name = written(
        rodeo,
        """
@rodeo.monitor(n=one())
def good(event, n):
    n.fill(1)

@rodeo.monitor(n=one())
def dies(event, n):
    if event.index == 5:
        import os
        os.abort()
""",
    )
    done = rodeo(
        "events",
        "monitor",
        name,
        "--input",
        file,
        "--no-page",
        "--hang",
        "60s",
        "--save",
        "m.h5",
        "--json",
        "-",
        exit_code=6,
    )
    told = json.loads(done.stdout)
    assert told["monitors"]["dies"] == {"threw": 0, "hung": 1, "left_out": True} and "SIGABRT" in done.stderr
    import h5py
    import hist
    import uhi.io.hdf5

    with h5py.File(rodeo.directory / "m.h5") as saved:
        assert hist.Hist(uhi.io.hdf5.read(saved["good/n"])).sum() == told["events"] >= 60


def test_damaged_events_of_a_file_are_told_of_and_left_out(rodeo, file):
    name = written(rodeo, "@rodeo.monitor(n=one())\ndef count(event, n):\n    n.fill(1)\n")
    whole = json.loads(
        rodeo(
            "events", "monitor", name, "--input", file, "--no-page", "--no-save", "--hang", "60s", "--json", "-"
        ).stdout
    )
    damaged = bytearray(Path(file).read_bytes())
    event = damaged.index(b"\xaa\x34\x12\xaa", len(damaged) // 2)
    words = int.from_bytes(damaged[event + 4 : event + 8], "little")
    damaged[event + 2 * words] ^= 1  # payload is in the middle of an event
    (rodeo.directory / "damaged.data").write_bytes(damaged)
    done = rodeo(
        "events",
        "monitor",
        name,
        "--input",
        "damaged.data",
        "--no-page",
        "--no-save",
        "--hang",
        "60s",
        "--json",
        "-",
        exit_code=6,
    )
    told = json.loads(done.stdout)
    assert told["damaged"] == 1 and told["events"] == whole["events"] - 1
    assert "damaged.data" in done.stderr and "error[" in done.stderr and "Traceback" not in done.stderr


def test_ctrl_c_ends_and_saves_beside_what_was_saved_before(rodeo):
    (rodeo.directory / "my.root").write_text("of yesterday")
    name = written(rodeo, "@rodeo.monitor(n=one())\ndef count(event, n):\n    n.fill(1)\n")
    with running(rodeo) as run:
        with rodeo.start("events", "monitor", name, "--hang", "60s") as monitor:
            assert "page: " in monitor.stderr.readline()
            monitor.send_signal(signal.SIGINT)
            out, err = monitor.communicate(timeout=scaled(60))
        run.finish()
    assert monitor.returncode == 0 and "saved: my-2.root, my.h5" in err, err
    assert (rodeo.directory / "my.root").read_text() == "of yesterday" and "count/n" in out
    assert sorted(path.name for path in rodeo.directory.glob("*my*")) == ["my-2.root", "my.h5", "my.py", "my.root"]


def test_a_terminal_has_the_histograms_and_gets_its_screen_back(rodeo, file):
    text = on_a_terminal(
        rodeo, "events", "monitor", EXAMPLE, "--input", file, "--no-page", "--no-save", "--hang", "60s", columns=120
    )
    assert text.count("\x1b[?1049h") == text.count("\x1b[?1049l") == 1
    last = text.rsplit("\x1b[?1049l", 1)[1]
    assert "chunks/size" in last and "bytes in a chunk" in last and "█" in last


@pytest.mark.parametrize("columns", [0, 1, 9, 11, 120])
def test_what_is_no_number_is_drawn_and_saved_on_terminals_of_any_width(rodeo, file, columns):
    name = written(
        rodeo,
        """
def odd():
    return hist.Hist.new.Reg(10, 0, 10).Weight()

@rodeo.monitor(nan=odd(), inf=odd(), plane=hist.Hist.new.Reg(4, 0, 1).Reg(4, 0, 1).Weight(), endless=hist.Hist.new.Var([0, 1, float("inf")]).Double())
def odd_ones(event, nan, inf, plane, endless):
    nan.fill([1, 2], weight=[float("nan"), 1])
    inf.fill([1, 2], weight=[float("inf"), 1])
    plane.fill([0.1, 0.6], [0.1, 0.6], weight=[float("nan"), 1])
    endless.fill([0.5, 7])
""",
    )
    text = on_a_terminal(
        rodeo,
        "events",
        "monitor",
        name,
        "--input",
        file,
        "--no-page",
        "--hang",
        "60s",
        "--save",
        "m.h5",
        "--save",
        "m.root",
        columns=columns,
    )
    assert (
        "Traceback" not in text
        and "cannot be drawn" not in text
        and "Warning" not in text
        and "saved: m.h5, m.root" in text
    )
    assert (rodeo.directory / "m.h5").is_file() and (rodeo.directory / "m.root").is_file()
    if columns == 120:
        assert "odd_ones/nan   nan inside" in text and "odd_ones/inf   inf inside" in text


@pytest.mark.parametrize(
    ("text", "code"),
    [
        (
            "@rodeo.monitor(n=one())\ndef a(event): pass",
            "my.py:7: TypeError: monitor a takes no argument n: def a(event, n)",
        ),
        ("@rodeo.monitor(n=3)\ndef a(event, n): pass", "n of monitor a is int, not a histogram"),
        ("x =", "my.py:7: SyntaxError"),
        ("import nobody_has_this", "pip install nobody_has_this"),
        ("", "error[monitor.none]"),
    ],
)
def test_what_is_wrong_with_a_file_is_told_with_its_line(rodeo, text, code):
    with pytest.raises(MonitorError) as told:
        load(rodeo.directory / written(rodeo, text))
    assert code in str(told.value) and told.value.status == 3


def test_what_cannot_work_is_told_before_anything_runs(rodeo):
    name = written(rodeo, "@rodeo.monitor(n=one())\ndef a(event, n): pass")
    assert "readout.no_sampler" in rodeo("events", "monitor", name, "--no-page", "--no-save", exit_code=4).stderr
    assert (
        "data.no_files"
        in rodeo("events", "monitor", name, "--input", "no*.data", "--no-page", "--no-save", exit_code=1).stderr
    )
    assert "monitor.save_name" in rodeo("events", "monitor", name, "--save", "a.csv", exit_code=2).stderr
    with pytest.raises(MonitorError, match="monitor.save_name.*there is no directory"):
        saving.check([rodeo.directory / "nowhere" / "a.h5"])
    assert (
        "file.open"
        in rodeo("events", "monitor", name, "--input", "none.data", "--no-page", "--no-save", exit_code=1).stderr
    )
    with pytest.raises(MonitorError, match="file.open"):
        load(rodeo.directory / "none.py")
    done = rodeo("events", "monitor", written(rodeo, "x ="), "--no-page", "--no-save", exit_code=3)
    assert "error[monitor.file]: my.py:7: SyntaxError" in done.stderr and "Traceback" not in done.stderr
    (rodeo.directory / "lacks").mkdir()
    (rodeo.directory / "lacks" / "uproot.py").write_text("raise ImportError('No module named uproot')")
    rodeo.environment["PYTHONPATH"] = str(rodeo.directory / "lacks")
    done = rodeo("events", "monitor", name, exit_code=1)
    assert "error[monitor.package]" in done.stderr and "tools/setup run, or name" in done.stderr


def test_every_histogram_can_be_drawn_and_what_root_does_not_know_is_told_of(tmp_path):
    import hist

    growing = hist.Hist.new.IntCat([], growth=True, label="a <b>").Double()
    empty = [growing.copy(), hist.Hist.new.StrCat([], growth=True).StrCat([], growth=True).Double()]
    growing.fill([0x610002, 5, 5, 0x610001])
    plane = hist.Hist.new.Var([0, 1, 10, 100]).Reg(300, 0, 1).Int64()
    plane.fill([5, 50], [0.5, 0.99])
    all_of = {
        "growing": growing,
        "plane": plane,
        "empty": empty[0],
        "empty_plane": empty[1],
        "fine": hist.Hist.new.Reg(3564, 0, 3564).Int64().fill([17]),
        "below": hist.Hist.new.Reg(4, 0, 1).Weight().fill([0.1], weight=[-3]),
        "one_bin": hist.Hist.new.Bool().Double().fill([True]),
        "four": hist.Hist.new.Bool().Bool().Bool().Bool().Double(),
        "nan": hist.Hist.new.Reg(4, 0, 1).Weight().fill([0.1, 0.6], weight=[float("nan"), 2]),
        "inf": hist.Hist.new.Reg(4, 0, 1).Reg(4, 0, 1).Weight().fill([0.1, 0.6], [0.1, 0.6], weight=[float("inf"), 2]),
        "endless": hist.Hist.new.Var([0, 1, float("inf")]).Double().fill([0.5, 7]),
        "profile": hist.Hist.new.Reg(4, 0, 1).Mean().fill([0.1, 0.2], sample=[3.0, 5.0]),
    }
    for name, one in all_of.items():
        lines = draw(name, one, 60, 5)
        assert (
            all(len(line) <= 60 for line in lines) and lines[0].startswith(name) and "cannot be drawn" not in lines[0]
        )
        assert "cannot be drawn" not in svg(name, one)
        assert all(len(line) <= max(wide, 1) for wide in (-3, 0, 1, 5, 12) for line in draw(name, one, wide, 5))
        assert name in svg(name, one) and "<b>" not in svg("x", one).replace("<b>x</b>", "")
    assert draw("growing", growing, 60, 5)[-1].split() == ["5", "a", "<b>", "0x610002"]  # sorted
    assert "2 outside" in draw("x", hist.Hist.new.Reg(4, 0, 1).Double().fill([5, 6, 0.5]), 60, 5)[0]
    told = []
    assert saving.save(tmp_path / "a.root", {"m": all_of}, told.append) == tmp_path / "a.root"
    assert saving.save(tmp_path / "a.h5", {"m": all_of}, told.append) == tmp_path / "a.h5"
    assert {line.split(" was not saved")[0].split("m/")[1] for line in told} == {"empty", "empty_plane", "four"}
    import uproot

    with uproot.open(tmp_path / "a.root") as file:
        assert file["m/fine"].to_hist().values()[17] == 1 and file["m/plane"].to_hist().sum() == 2


def test_every_error_of_the_monitors_is_explained():
    explained = dict(
        re.findall(r"(?m)^### (\S+) \(exit (\d)\)$", (ROOT / "src" / "cli" / "explain" / "error_codes.md").read_text())
    )
    used = set()
    for file in (ROOT / "python" / "rodeo" / "monitoring").glob("*.py"):
        used |= set(re.findall(r'MonitorError\(\s*"([a-z_]+\.[a-z_]+)"', file.read_text()))
    assert {"monitor.file", "monitor.save_name", "monitor.package"} <= used and used <= set(explained)
    assert [explained[code] for code in ("monitor.file", "monitor.none", "monitor.save_name")] == ["3", "3", "2"]
