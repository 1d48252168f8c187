"""Controllers and schedulers that are written in Python."""

import multiprocessing
import pickle
import random
import traceback
from pathlib import Path

import polypath as pp
import pytest


class Reno(pp.Controller):
    """NewReno (RFC 5681, 6582) with byte counting (RFC 3465), as the one in Rust."""

    version = "1"
    initial = 10

    def __init__(self):
        self.mss, self.cwnd, self.threshold, self.saved = {}, {}, {}, {}

    def on_path_added(self, now, path, mss):
        self.mss[path], self.cwnd[path], self.threshold[path] = mss, float(self.initial * mss), float("inf")

    def on_mss(self, path, mss):
        self.mss[path] = mss
        self.cwnd[path] = max(self.cwnd[path], float(mss))

    def on_ack(self, now, path, ack, paths):
        if ack.in_recovery or not ack.window_limited:
            return
        acked = min(ack.newly_acked, 2 * self.mss[path])
        slow_start = self.cwnd[path] < self.threshold[path]
        self.cwnd[path] += acked if slow_start else self.mss[path] * acked / self.cwnd[path]

    def on_loss(self, now, path, loss, paths):
        self.saved[path] = loss.episode, self.cwnd[path], self.threshold[path]
        self.threshold[path] = max(loss.flight_size / 2, 2.0 * self.mss[path])
        self.cwnd[path] = float(self.mss[path]) if loss.cause == "timeout" else self.threshold[path]

    def on_undo(self, now, path, episode):
        if self.saved.get(path, (None,))[0] == episode:
            _, cwnd, self.threshold[path] = self.saved.pop(path)
            self.cwnd[path] = max(self.cwnd[path], cwnd)

    def limit_window(self, path, size):
        self.cwnd[path] = min(self.cwnd[path], float(size))

    def window(self, path):
        return self.cwnd[path]

    def ssthresh(self, path):
        return None if self.threshold[path] == float("inf") else self.threshold[path]


class Turns(pp.Scheduler):
    """The open paths in turn."""

    version = "1"
    last = -1

    def pick(self, now, parcel, paths):
        open = [path.id for path in paths if path.open]
        if not open:
            return None
        self.last = next((path for path in open if path > self.last), open[0])
        return self.last


def two_paths(**more):
    exp = pp.Experiment("two", duration="8s", measure_from="1s", seeds="1..2")
    exp = exp.link("a", "x", "8Mbit/s", "20ms", queue="1bdp", loss=0.002).link("x", "b", "100Mbit/s", "1ms")
    exp = exp.link("a", "y", "4Mbit/s", "60ms", queue="1bdp").link("y", "b", "100Mbit/s", "1ms")
    return exp.flow("bulk", "a", "b", paths=[["x"], ["y"]], start=["0s", "1s"], **more)


def windows(exp, seed=1, cell=None):
    rows = pp.trace(exp, seed, cell=cell).where(event="window", source="a")
    return list(zip(*(rows[column].to_pylist() for column in ("time_ns", "path", "cwnd", "ssthresh")), strict=True))


def test_newreno_in_python_has_every_window_of_the_one_in_rust():
    exp = two_paths().grid("connection.cc", [Reno, {"algorithm": "newreno"}], name="controller")
    assert exp.cells == ["Reno", "newreno"]
    for seed in (1, 2):
        own, ours = (windows(exp, seed, cell) for cell in exp.cells)
        assert len(ours) > 1000 and len({threshold for *_, threshold in ours}) > 10, "losses happen"
        assert own == ours


def test_the_same_seed_gives_the_same_numbers_on_any_number_of_cores():
    exp = two_paths(controller=Reno, scheduler=Turns)
    assert pp.run(exp, "1..6", jobs=1).values == pp.run(exp, "1..6", jobs=2).values


def test_a_scheduler_chooses_the_path_of_every_segment():
    class Only(pp.Scheduler):
        chosen = 1

        def pick(self, now, parcel, paths):
            return next((path.id for path in paths if path.open and path.id == self.chosen), None)

    class Both(pp.Scheduler):
        def pick(self, now, parcel, paths):
            return [path.id for path in paths if path.open] or None

    def sent(scheduler):
        values = pp.run(two_paths(scheduler=scheduler), "1..1").values.where(metric="sent", flow="bulk")
        return dict(zip(values["path"].to_pylist(), values["value"].to_pylist(), strict=True))

    only, both, turns = sent(Only), sent(Both), sent(Turns)
    assert only[0] == 0 and only[1] > 1000
    assert turns[0] > turns[1] > 1000, "both are full, and one has twice the rate"
    goodput = pp.run(two_paths(scheduler=Both), "1..1").values.where(metric="goodput", path=None)["value"][0].as_py()
    assert min(both.values()) > 500 and goodput < 9e6, "copies add nothing"


def test_a_controller_that_paces_and_has_a_period_is_asked_for_both():
    class Constant(pp.Controller):
        """2 Mbit/s, told by a clock of its own to go to 1 Mbit/s after 3 s."""

        rate, next = 2e6, 3.0

        def on_path_added(self, now, path, mss): ...
        def on_ack(self, now, path, ack, paths): ...
        def on_loss(self, now, path, loss, paths): ...
        def window(self, path):
            return 1e6

        def pacing_rate(self, path):
            return self.rate

        def next_timeout(self):
            return self.next

        def on_timeout(self, now, paths):
            assert now == 3.0 and paths[0].active
            self.rate, self.next = 1e6, None

    exp = pp.Experiment("paced", duration="8s").link("a", "b", "8Mbit/s", "20ms").flow("f", "a", "b", controller=Constant)
    exp = exp.expect("goodput", flow="f", to="3s", claim="before", min=1.9e6, max=2.1e6)
    exp = exp.expect("goodput", flow="f", from_="4s", claim="after", min=0.95e6, max=1.05e6)
    assert pp.run(exp).met, pp.run(exp)


def test_the_seed_of_the_run_throws_the_dice():
    class Dice(Reno):
        def on_path_added(self, now, path, mss):
            super().on_path_added(now, path, mss)
            self.cwnd[path] = random.Random(self.seed).randrange(2, 100) * mss
            self.threshold[path] = self.cwnd[path]

    def first(seed):
        return windows(two_paths(controller=Dice), seed)[0][2]

    assert first(1) == first(1) and len({first(seed) for seed in range(1, 6)}) > 2


@pytest.mark.parametrize("how", ["run", "trace", "sweep"])
def test_an_exception_ends_the_run_and_arrives_with_its_traceback(how, tmp_path):
    class Careless(Reno):
        def on_loss(self, now, path, loss, paths):
            return self.no_such_thing

    exp = two_paths(controller=Careless)
    with pytest.raises(AttributeError, match="no_such_thing") as raised:
        if how == "run":
            pp.run(exp.set("duration", "100000s"), "1..1000")  # it does not go on to its end
        elif how == "trace":
            pp.trace(exp)
        else:
            pp.sweep(exp, out=tmp_path)
    assert "return self.no_such_thing" in "".join(traceback.format_exception(raised.value))
    assert not list(tmp_path.rglob("*.parquet")), "no file of a run that failed"


def broken(**methods):
    return type("Broken", (Reno,), {"version": "1", **methods})


@pytest.mark.parametrize(
    ("controller", "error", "text"),
    [
        (broken(window=lambda self, path: -1.0), ValueError, r"window\(\) returned -1: a finite number from 0"),
        (broken(window=lambda self, path: float("nan")), ValueError, r"window\(\) returned NaN"),
        (broken(window=lambda self, path: "wide"), TypeError, "str"),
        (broken(next_timeout=lambda self: 0.0), ValueError, r"next_timeout\(\) returned 0: a time that is still to come"),
        (broken(__init__=lambda self, more: None), TypeError, "more"),
        (type("Empty", (pp.Controller,), {}), NotImplementedError, r"Empty.on_path_added\(now, path, mss\)"),
    ],
)
def test_what_makes_no_sense_is_told(controller, error, text):
    with pytest.raises(error, match=text):
        pp.run(two_paths(controller=controller))


@pytest.mark.parametrize(
    ("picked", "error", "text"),
    [
        (7, ValueError, r"pick\(\) returned path 7, which cannot take the parcel now; \[.*\] can"),
        ([], ValueError, "return None to wait"),
        ("x", ValueError, r"pick\(\) returned x: the id of a path, several of them, or None"),
    ],
)
def test_a_path_that_cannot_be_is_told(picked, error, text):
    scheduler = type("Odd", (pp.Scheduler,), {"pick": lambda self, now, parcel, paths: picked})
    with pytest.raises(error, match=text):
        pp.run(two_paths(scheduler=scheduler))


def test_an_instance_is_no_class_and_two_classes_have_two_names():
    with pytest.raises(TypeError, match="Reno is wanted, not an instance"):
        two_paths(controller=Reno()).check()
    other = type("Reno", (Reno,), {})
    with pytest.raises(ValueError, match='two classes are called "Reno": give one of them another `name`'):
        two_paths().grid("connection.cc", [Reno, other], labels=["one", "other"]).check()
    named = type("Reno", (Reno,), {"name": "other"})
    assert two_paths().grid("connection.cc", [Reno, named]).cells == ["Reno", "other"]


def test_the_file_of_such_an_experiment_names_it_and_says_where_it_runs():
    exp = two_paths(controller=Reno)
    assert 'name = "Reno"' in exp.toml and pp.from_dict(exp.document) == exp
    with pytest.raises(pp.SpecError, match="no algorithm of this name") as raised:
        pp.from_toml(exp.toml)
    assert raised.value.key == "flow[0].connection.cc.name" and "Python" in str(raised.value.help)
    assert pickle.loads(pickle.dumps(exp)) == exp


def test_a_sweep_needs_a_version_and_goes_by_it(tmp_path: Path):
    with pytest.raises(ValueError, match="give Unversioned a `version`"):
        pp.sweep(two_paths(controller=type("Unversioned", (Reno,), {"version": ""})), out=tmp_path)
    assert pp.sweep(two_paths(controller=Reno), out=tmp_path).ran == 2
    assert pp.sweep(two_paths(controller=Reno), out=tmp_path).ran == 0
    changed = type("Reno", (Reno,), {"version": "2", "initial": 2})
    again = pp.sweep(two_paths(controller=changed), out=tmp_path)
    assert again.ran == 2 and len(list(tmp_path.rglob("*.parquet"))) == 2 * len(again.files)


def test_it_runs_in_another_process():
    exp = two_paths(controller=Reno)
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        there = pool.apply(goodput, (exp,))
    assert there == goodput(exp)


def goodput(exp):
    return pp.run(exp).values.where(metric="goodput", path=None)["value"].to_pylist()
