"""`rodeo net formula`: the documented JSON, both kinds of megabyte, exit codes, sequences from a file."""

import json

import pytest

LAB = ["--event-size", "5MB", "--rate", "12kHz", "--uplink", "800Gbps", "--node-link", "25Gbps"]


@pytest.fixture
def formula(rodeo):
    return lambda *arguments: json.loads(rodeo("net", "formula", *arguments, "--json", "-").stdout)


def test_the_papers_operating_point(formula):
    found = formula(*LAB, "--nodes", 32, "--k", 1.5)
    assert found["paper_bytes"] == pytest.approx(47.03e6, rel=1e-4)
    assert found["exact_bytes"] == pytest.approx(47.50e6, rel=1e-4)
    assert found["bound_bytes"] == pytest.approx(77.5e6)
    assert found["k_bytes"] == pytest.approx(1.5 * found["paper_bytes"])
    assert (found["paper_events"], found["overlapping_events"], found["valid"]) == (21, 19, True)
    assert found["event_size_bytes"] == 5_000_000 and found["mtu_bytes"] is None


def test_headers_are_added_for_an_mtu_and_named(formula):
    found = formula(*LAB, "--mtu", 1500)
    assert found["event_wire_bytes"] / found["event_size_bytes"] == pytest.approx(1514 / 1448, rel=1e-4)
    assert found["exact_bytes"] == pytest.approx(51.81e6, rel=1e-3)


def test_mib_are_no_mb(formula):
    bytes = formula("--event-size", "5MiB", *LAB[2:])["paper_bytes"]
    assert bytes == pytest.approx(51.58e6, rel=1e-4) and bytes == pytest.approx(49.19 * 2**20, rel=1e-4)


def test_the_table_has_both_megabytes(rodeo):
    table = rodeo("net", "formula", *LAB).stdout
    assert "size [MB]" in table and "size [MiB]" in table and "47.03" in table and "44.85" in table
    assert "valid: " in table


@pytest.mark.parametrize(
    "change, says",
    [
        (["--rate", "21kHz"], "uplink and 32 ports carry 800"),
        (["--nodes", 10], "10 ports carry 250"),
        (["--node-link", "800Gbps"], "nothing queues"),
    ],
)
def test_a_formula_outside_its_validity_says_why_and_exits_with_0(formula, change, says):
    found = formula(*LAB, *change)
    assert found["valid"] is False and says in found["why"]
    assert not all(condition["holds"] for condition in found["conditions"])


@pytest.mark.parametrize(
    "change",
    [
        ["--rate", 0],
        ["--event-size", 0],
        ["--nodes", 0],
        ["--mtu", 40],
        ["--k", 0],
        ["--readouts", 0, "--mtu", 1500],
        ["--arrivals", "poisson", "--events", 10**9],
        ["--arrivals", "jittered", "--jitter-periods", -1],
        ["--node-link", "25GB"],
    ],
)
def test_impossible_input_is_a_usage_error(rodeo, change):
    assert "error[" in rodeo("net", "formula", *LAB, *change, exit_code=2).stderr


def test_arrivals_of_any_kind_are_summed(formula):
    even = formula(*LAB, "--arrivals", "periodic")
    assert even["superposition"]["max_bytes"] == pytest.approx(even["exact_bytes"])
    poisson = [formula(*LAB, "--arrivals", "poisson", "--seed", 3)["superposition"]["max_bytes"] for _ in range(2)]
    assert poisson[0] == poisson[1]
    assert even["exact_bytes"] < poisson[0] <= even["bound_bytes"] * (1 + 1e-9)


def test_a_sequence_from_a_file(formula, rodeo):
    (rodeo.directory / "trace.csv").write_text("start_s,bytes,port\n0,1000000,0\n# a remark\n0,1000000,0\n")
    found = formula(
        "--uplink", "80Mbps", "--node-link", "8Mbps", "--nodes", 1, "--rate", "0.1", "--arrivals", "trace.csv"
    )["superposition"]
    assert found["events"] == 2 and found["max_bytes"] == pytest.approx(1.8e6)


@pytest.mark.parametrize(
    "text, says",
    [("0\nsoon\n", "trace.csv:2"), ("0,5,40\n", "port 40 of 32"), ("\n", "no event"), ("0,-5,1\n", "bytes")],
)
def test_a_bad_sequence_is_named_with_its_line(rodeo, text, says):
    (rodeo.directory / "trace.csv").write_text(text)
    assert says in rodeo("net", "formula", "--arrivals", "trace.csv", exit_code=2).stderr


def test_a_sequence_that_is_not_there(rodeo):
    assert "cli.bad_value" in rodeo("net", "formula", "--arrivals", "nowhere.csv", exit_code=2).stderr
