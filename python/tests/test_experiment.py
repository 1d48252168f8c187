"""Experiments are read, built and changed, and say what is wrong with them."""

import json
import pickle
from pathlib import Path

import numpy as np
import polypath as pp
import pytest

SPEC = """version = 1
title = "one"
duration = "5s"
seeds = "1..2"
[[link]]
from = "a"
to = "b"
rate = "8Mbit/s"
delay = "30ms"
[[flow]]
name = "bulk"
from = "a"
to = "b"
"""


def test_a_built_one_is_the_written_one() -> None:
    built = pp.Experiment("one", duration="5s", seeds=range(1, 3)).link("a", "b", "8Mbit/s", "30ms")
    built = built.flow("bulk", "a", "b")
    written = pp.from_toml(SPEC)
    assert built == written and built.seeds == range(1, 3)
    assert pp.from_toml(built.toml) == built
    assert pp.run(built).values == pp.run(written).values


def test_a_method_changes_nothing_but_returns_another() -> None:
    one = pp.from_toml(SPEC)
    two = one.set("link.a->b.rate", "4Mbit/s").set("flow.bulk.mss", 500).grid("duration", ["5s", "6s"])
    assert one == pp.from_toml(SPEC) and one.cells == [""]
    assert two.cells == ["5s", "6s"] and two.document["link"][0]["rate"] == "4Mbit/s"
    assert two.grid("duration", ["7s"]).cells == ["7s"], "an axis of the same key is replaced"
    assert two.set("flow.bulk.mss", None).document["flow"][0].keys() == {"name", "from", "to"}
    two.document["link"].clear()
    assert two.document["link"]


def test_a_file_names_line_key_and_remedy(tmp_path: Path) -> None:
    file = tmp_path / "bad.toml"
    file.write_text(SPEC.replace("delay =", "dealy ="))
    with pytest.raises(pp.SpecError) as raised:
        pp.load(file)
    error = raised.value
    assert (error.file, error.line, error.key) == (str(file), 9, "link[0].dealy")
    assert error.help is not None and 'did you mean "delay"' in error.help
    assert '9 | dealy = "30ms"' in str(error)
    again = pickle.loads(pickle.dumps(error))
    assert (str(again), again.line, again.help) == (str(error), error.line, error.help)


def test_what_is_built_wrong_names_the_key_and_the_line_of_its_toml() -> None:
    wrong = pp.from_toml(SPEC).set("link.a->b.rate", "fast")
    with pytest.raises(pp.SpecError, match="link\\[0\\].rate") as raised:
        pp.run(wrong)
    assert raised.value.help and raised.value.line > 1
    with pytest.raises(pp.SpecError, match="unknown key"):
        pp.from_toml(SPEC).link("b", "c", "1Mbit/s", "1ms", colour="red").check()
    with pytest.raises(pp.SpecError, match="not TOML"):
        pp.from_toml("title = ")


@pytest.mark.parametrize(
    ("seeds", "error"),
    [(5.0, TypeError), ("x", ValueError), (range(0), ValueError), (range(1, 9, 2), ValueError), (None, None)],
)
def test_seeds_of_another_kind_are_told_how_to_write_them(seeds: object, error: type[Exception] | None) -> None:
    if error is None:
        assert len(pp.run(pp.from_toml(SPEC), seeds=None)) == 2
    else:
        with pytest.raises(error, match="range|1..20"):
            pp.run(pp.from_toml(SPEC), seeds=seeds)  # type: ignore[arg-type]


def test_one_seed_is_a_number_and_what_ends_before_it_begins_is_refused() -> None:
    assert len(pp.run(pp.from_toml(SPEC), seeds=5)) == 1
    assert len(pp.trace(pp.from_toml(SPEC), np.int64(5))) > 0  # type: ignore[arg-type]
    for seeds in ("5..1", -1, "-3..2"):
        with pytest.raises(ValueError, match="the first is the smaller one"):
            pp.run(pp.from_toml(SPEC), seeds=seeds)


def test_more_runs_than_anybody_waits_for_are_refused() -> None:
    with pytest.raises(ValueError, match="2000000 runs; at most 1000000"):
        pp.run(pp.from_toml(SPEC), seeds="1..2000000")


def test_wrong_types_are_no_spec() -> None:
    with pytest.raises(TypeError, match="text, numbers, lists and dictionaries"):
        pp.from_toml(SPEC).set("duration", {1, 2}).check()
    with pytest.raises(TypeError, match="text, numbers"):
        pp.from_toml(SPEC).set("link.a->b.loss", float("nan")).check()
    with pytest.raises(TypeError, match="name a key of it"):
        pp.from_toml(SPEC).set("link.a->b", "x")


def test_names_that_nothing_has_are_answered_with_the_nearest() -> None:
    with pytest.raises(pp.UnknownName, match='did you mean "foundation/two_paths"'):
        pp.load("foundation/two_path")
    with pytest.raises(pp.UnknownName, match='did you mean "a->b"'):
        pp.from_toml(SPEC).set("link.a->c.rate", "1Mbit/s")
    with pytest.raises(pp.UnknownName, match='no cell is labelled|no cell is named "9s"'):
        pp.run(pp.from_toml(SPEC).grid("duration", ["5s", "6s"]), cell="9s")
    with pytest.raises(pp.UnknownName, match="no template"):
        pp.template("two_pats")
    with pytest.raises(OSError, match="no/such.toml"):
        pp.load("no/such.toml")


def test_built_in_experiments_run_outside_the_clone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert "fast/fig9_unequal_paths" in pp.names()
    assert pp.run("foundation/one_link", seeds="1..1").met
    published = pp.run(pp.load("fast/fig2_one_window_equal_delays"), seeds="1..1").points
    assert "published" in published["source"].to_pylist()


def test_it_travels_to_other_processes() -> None:
    one = pp.load("foundation/one_link")
    assert pickle.loads(pickle.dumps(one)) == one
    assert pickle.loads(pickle.dumps(one)).cells == one.cells


def test_the_schema_is_that_of_spec_files() -> None:
    assert {"link", "flow", "grid", "expect"} <= pp.schema()["properties"].keys()
    assert json.dumps(pp.schema())


def test_what_has_the_wrong_type_is_told_with_what_to_write() -> None:
    exp = pp.Experiment("types", duration="5s").link("a", "b", "8Mbit/s", "10ms").flow("f", "a", "b")
    with pytest.raises(TypeError, match="the values of link.a->b.delay are a list"):
        exp.grid("link.a->b.delay", "5ms")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="says what to run, not 5"):
        pp.run(5)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="a whole number from 1: not 0"):
        pp.run(exp, jobs=0)
    with pytest.raises(pp.UnknownName, match="it has no grid, and so no cells"):
        pp.run(exp, cell="5ms")
    with pytest.raises(pp.SpecError, match="is not a time: it has no unit") as raised:
        pp.Experiment("types", duration=20).link("a", "b", "8Mbit/s", "10ms").check()  # type: ignore[arg-type]
    assert raised.value.key == "duration" and raised.value.help
