"""The ring of values over time: it is bounded, keeps gaps, and is coarse beyond an hour."""

import pytest
from rodeo.control.state.series import MOST_NAMES, Series


def test_what_was_added_comes_back_with_gaps_as_gaps():
    series = Series()
    series.add(1.0, {"rate": 5, "nobody": None})
    series.add(2.0, {"rate": None, "dead": 0.5})
    series.add(3.0, {"rate": 7.0})
    assert series.get(["rate", "dead", "unknown"]) == {
        "step_s": 1.0,
        "time_s": [1.0, 2.0, 3.0],
        "values": {"rate": [5.0, None, 7.0], "dead": [None, 0.5, None]},
    }
    assert series.names == ["dead", "nobody", "rate"]


def test_nothing_was_added():
    assert Series().get() == {"step_s": 1.0, "time_s": [], "values": {}}


def test_a_time_that_does_not_go_on_and_what_is_no_number_are_left_out():
    series = Series()
    series.add(5.0, {"x": 1})
    for time_s in (5.0, 4.0, float("nan")):
        series.add(time_s, {"x": 2})
    series.add(6.0, {"x": float("nan")})
    series.add(7.0, {"x": float("inf")})
    series.add(8.0, {"x": True})
    series.add(9.0, {"x": 10**400})
    series.add(10.0, {"x": "5"})
    assert series.get() == {
        "step_s": 1.0,
        "time_s": [5.0, 6.0, 7.0, 8.0, 9.0, 10.0],
        "values": {"x": [1.0, None, None, None, None, None]},
    }


def test_the_ring_is_bounded_and_keeps_the_last():
    series = Series(fine=5, coarse=3)
    for second in range(100):
        series.add(float(second), {"x": second})
    got = series.get(seconds=4.0)
    assert (
        got["step_s"] == 1.0
        and got["time_s"] == [95.0, 96.0, 97.0, 98.0, 99.0]
        and got["values"]["x"] == [95, 96, 97, 98, 99]
    )
    coarse = series.get(seconds=1000.0)
    assert (
        coarse["step_s"] == 10.0
        and coarse["time_s"] == [60.0, 70.0, 80.0]
        and coarse["values"]["x"] == [64.5, 74.5, 84.5]
    ), "means of ten seconds"


def test_a_name_that_comes_late_has_gaps_before():
    series = Series(fine=4)
    for second in range(6):
        series.add(float(second), {"x": second} | ({"late": second} if second > 4 else {}))
    assert series.get()["step_s"] == 10.0
    assert series.get(seconds=3.0)["values"] == {"late": [None, None, None, 5.0], "x": [2, 3, 4, 5]}


def test_the_last_seconds_only():
    series = Series()
    for second in range(600):
        series.add(float(second), {"x": 0})
    assert len(series.get(seconds=60.0)["time_s"]) == 61 and series.get(seconds=0.0)["time_s"] == [599.0]


def test_names_are_bounded():
    series = Series(fine=3, coarse=3)
    for second in range(3):
        series.add(float(second), {f"{second}.{index}": 1 for index in range(MOST_NAMES)})
    assert len(series.names) == MOST_NAMES and series.get(["2.0"])["values"] == {}


def test_a_coarse_point_of_nothing_known_is_a_gap():
    series = Series(fine=2, coarse=4)
    for second in range(41):
        series.add(float(second), {"x": None if 10 <= second < 20 else 1})
    assert series.get(seconds=100.0)["values"]["x"] == pytest.approx([1, None, 1, 1])
