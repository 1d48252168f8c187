"""Runs and what comes of them."""

import signal
import subprocess
import sys
import textwrap
import threading
from pathlib import Path

import pandas
import polars
import polypath as pp
import pyarrow as pa
import pytest


def one_link(duration: str = "5s") -> pp.Experiment:
    exp = pp.Experiment("one", duration=duration, measure_from="1s", seeds="1..4")
    return exp.link("a", "b", "8Mbit/s", "30ms", queue="1bdp").flow("bulk", "a", "b", start=["0s", "900ms"])


def test_tables_leave_without_a_copy() -> None:
    values = pp.run(one_link()).values
    stream = pa.table(values)
    assert stream["value"].chunk(0).buffers()[1].address == values["value"].chunk(0).buffers()[1].address
    assert isinstance(values.to_pandas(), pandas.DataFrame) and isinstance(values.to_polars(), polars.DataFrame)
    assert polars.DataFrame(values).equals(values.to_polars())
    import duckdb

    numbers = values
    assert duckdb.sql("select count(*) from numbers").fetchall() == [(len(values),)]
    cube = values.where(metric="goodput").to_xarray(["seed"])
    assert dict(cube.sizes) == {"seed": 4}


def test_the_same_experiment_gives_the_same_numbers_on_any_number_of_cores() -> None:
    assert pp.run(one_link(), jobs=1).values == pp.run(one_link(), jobs=3).values


def test_a_column_that_is_not_there_is_told() -> None:
    with pytest.raises(KeyError, match="there are: run, cell"):
        pp.run(one_link(), seeds="1..1").values.where(metrics="goodput")


def test_verdicts_say_whether_expectations_are_met() -> None:
    exp = one_link().expect("utilisation", flow="bulk", min=0.9, claim="full").expect("goodput", flow="bulk", min=9e6)
    results = pp.run(exp)
    assert [v["met"] for v in results.verdicts] == [True, False] and not results.met
    assert "UNMET" in repr(results)


def test_an_expectation_that_nothing_fails_is_refused_and_measuring_is_no_expectation() -> None:
    with pytest.raises(ValueError, match="give min or max.*measure"):
        one_link().expect("goodput", flow="bulk", claim="free")
    measured = one_link().measure("goodput", flow="bulk", from_="3s", claim="late")
    results = pp.run(measured, "1..2")
    late = results.values.where(claim="late")
    assert results.verdicts == [] and late["from_s"].to_pylist() == [3.0, 3.0] and min(late["value"].to_pylist()) > 7e6
    assert results.runs["run"] == pp.run(one_link(), "1..2").runs["run"], "it is the same run"
    with pytest.raises(pp.SpecError, match="no flow is named") as raised:
        one_link().measure("goodput", flow="bluk").check()
    assert raised.value.key == "measure[0].flow"
    with pytest.raises(pp.SpecError, match="unknown key"):
        one_link().measure("goodput", flow="bulk", min=1).check()


def test_a_trace_has_the_bytes_of_the_run() -> None:
    exp = one_link()
    trace = pp.trace(exp, seed=3).to_pandas()
    delivered = trace[(trace["event"] == "delivered") & (trace["source"] == "b")]["len"].sum()
    assert delivered == pp.run(exp, seeds="3..3").runs["bytes"][0].as_py()
    with pytest.raises(pp.UnknownName, match="a trace is of one cell"):
        pp.trace(exp.grid("duration", ["5s", "6s"]))
    with pytest.raises(ValueError, match="several seeds"):
        pp.trace(exp, "1..3")  # type: ignore[arg-type]


def test_a_capture_may_be_of_one_link_and_of_heads_of_packets(tmp_path: Path) -> None:
    def size(**which: object) -> int:
        pp.run(one_link(), "1..1", pcap=tmp_path, **which)  # type: ignore[arg-type]
        return next(tmp_path.glob("*.pcapng")).stat().st_size

    assert 10 * size(pcap_links=["b->a"]) < size() and 5 * size(pcap_bytes=96) < size()
    with pytest.raises(pp.UnknownName, match='no link is named "a->c"; did you mean "a->b"'):
        size(pcap_links=["a->c"])
    with pytest.raises(ValueError, match="say where to with pcap"):
        pp.run(one_link(), pcap_bytes=96)


def test_a_figure_has_the_lines_of_the_report(tmp_path: Path) -> None:
    exp = one_link().grid("link.a->b.delay", ["10ms", "30ms"], name="delay")
    exp = exp.figure("sweep", "goodput", [{"flow": "bulk"}], axis="delay", metric="goodput", line=8.0)
    results = pp.run(exp.figure("time", "course", [{"flow": "bulk"}], log_y=True))
    figure = results.figure("goodput")
    assert figure.axes[0].get_ylabel() == "goodput, Mbit/s"
    ours = [line for line in figure.axes[0].lines if line.get_label() == "bulk"]
    points = results.points.where(title="goodput").to_pandas()
    assert list(ours[0].get_ydata()) == list(points["y"])
    for n, drawn in enumerate(results.figures()):
        drawn.savefig(tmp_path / f"{n}.pdf")
        assert (tmp_path / f"{n}.pdf").stat().st_size > 1000
    with pytest.raises(pp.UnknownName, match="there are: goodput, course"):
        results.figure("none")
    with pytest.raises(pp.UnknownName, match="add one"):
        pp.run(one_link(), seeds="1..1").figure()


def test_runs_are_drawn_as_distributions_boxes_densities_and_squares(tmp_path: Path) -> None:
    exp = one_link().grid("link.a->b.delay", ["10ms", "30ms"], name="delay").grid("link.a->b.queue", ["20p", "80p"], name="queue")
    for kind, more in {"cdf": {}, "box": {"axis": "delay"}, "violin": {"axis": "delay"}, "heat": {"axis": "delay", "rows": "queue"}}.items():
        exp = exp.figure(kind, kind, [{"flow": "bulk"}], metric="goodput", **more)
    results = pp.run(exp)
    for drawn in results.figures():
        drawn.savefig(tmp_path / "figure.pdf")
    points = results.points.to_pandas()
    runs = points[points["source"] == "run"]
    assert runs.groupby("title").size().to_dict() == {"box": 16, "violin": 16}, "every run of four cells with four seeds"
    medians = points[(points["title"] == "box") & (points["source"] == "ours")]
    assert list(medians["y"]) == list(runs[runs["title"] == "box"].groupby(["series", "x"], sort=False)["y"].median())
    shares = points[points["title"] == "cdf"].groupby("series")["y"].max()
    assert list(shares) == [1.0] * 4
    assert list(points[points["title"] == "heat"]["series"]) == ["20p", "20p", "80p", "80p"]


def test_other_threads_run_meanwhile() -> None:
    turns, ended = [0], threading.Event()

    def count() -> None:
        while not ended.wait(0.001):
            turns[0] += 1

    thread = threading.Thread(target=count)
    thread.start()
    pp.run(one_link("200s"), seeds="1..8", jobs=1)
    ended.set()
    thread.join()
    assert turns[0] > 10


def test_progress_is_told_and_what_it_raises_stops_the_runs() -> None:
    def fail(ended: int) -> None:
        raise ZeroDivisionError(ended)

    native = one_link("20s")._native
    with pytest.raises(ZeroDivisionError):
        native.run(1, 1000, jobs=1, told=fail)


def test_ctrl_c_stops_a_long_run() -> None:
    code = """
        import sys
        import polypath as pp
        exp = pp.Experiment("long", duration="10000000s").link("a", "b", "100Mbit/s", "1ms").flow("f", "a", "b")
        exp.check()
        print("ready", flush=True)
        try:
            pp.run(exp)
        except KeyboardInterrupt:
            sys.exit(42)
    """
    with subprocess.Popen([sys.executable, "-c", textwrap.dedent(code)], stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None and child.stdout.readline() == "ready\n"
        threading.Event().wait(0.3)
        child.send_signal(signal.SIGINT)
        assert child.wait(60) == 42
