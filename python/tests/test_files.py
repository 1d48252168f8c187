"""Every file that the laboratory writes opens in pandas, polars and DuckDB."""

from pathlib import Path

import duckdb
import pandas
import polars
import polypath as pp
import pyarrow as pa
import pytest


def experiment() -> pp.Experiment:
    exp = pp.Experiment("files", duration="3s", seeds="1..3")
    exp = exp.link("a", "x", "8Mbit/s", "10ms", queue="20p").link("x", "b", "100Mbit/s", "1ms")
    exp = exp.flow("bulk", "a", "b", paths=[["x"]], start=["0s", "1s"], size="1MB")
    exp = exp.grid("link.a->x.loss", [0.0, 0.01], name="loss")
    exp = exp.measure("completion", flow="bulk", claim="it ends")
    exp = exp.figure("sweep", "by, loss", [{"flow": "bulk"}], axis="loss", metric="completion")
    return exp.figure("time", "course", [{"flow": "bulk"}])


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("written")
    pp.run(experiment(), trace=out, pcap=out).write(out)
    return out


TABLES = ["values.parquet", "values.csv", "results.csv", "results.arrow", "figures.parquet", "figures.csv", "figure-1.csv"]


def test_all_files_are_known_here(written: Path) -> None:
    runs = {row["run"] for row in pp.run(experiment()).runs.to_arrow().to_pylist()}
    kept = {f"{run}.{kind}" for run in runs for kind in ("arrow", "pcapng")}
    drawn = {f"figure-{n}.{kind}" for n in (1, 2, 3) for kind in ("svg", "pdf", "csv")}
    assert {f.name for f in written.iterdir()} == {*TABLES, *kept, *drawn}
    assert len(runs) == 6


def arrow(file: Path) -> pa.Table:
    return pa.ipc.open_file(file).read_all()


@pytest.mark.parametrize("name", TABLES)
def test_all_three_read_the_same(written: Path, name: str) -> None:
    file = written / name
    if name.endswith(".parquet"):
        frames = pandas.read_parquet(file), polars.read_parquet(file)
        rows = duckdb.sql(f"from read_parquet('{file}')").arrow()
    elif name.endswith(".csv"):
        frames = pandas.read_csv(file), polars.read_csv(file, infer_schema_length=None)
        rows = duckdb.sql(f"from read_csv('{file}')").arrow()
    else:
        rows = arrow(file)
        frames = rows.to_pandas(), polars.read_ipc(file)
        rows = duckdb.sql("from rows").arrow()
    rows = rows.read_all() if hasattr(rows, "read_all") else rows
    assert len(frames[0]) == frames[1].height == rows.num_rows > 0
    assert list(frames[0].columns) == frames[1].columns == rows.column_names


def test_numbers_survive_every_format(written: Path) -> None:
    parquet, csv = pandas.read_parquet(written / "values.parquet"), pandas.read_csv(written / "values.csv")
    pandas.testing.assert_series_equal(parquet["value"], csv["value"], check_exact=True)
    assert set(parquet["loss"]) == {0.0, 0.01}
    ends = parquet[parquet["claim"] == "it ends"]
    assert list(ends["seed"]) == [1, 2, 3, 1, 2, 3] and set(ends["unit"]) == {"s"}
    completion = pandas.read_csv(written / "results.csv")["completion_s"]
    assert list(ends["value"]) == list(completion)


def test_a_trace_opens_everywhere(written: Path) -> None:
    file = next(f for f in written.glob("*.arrow") if f.name != "results.arrow")
    observed = arrow(file)
    frame = pandas.read_feather(file)
    assert len(frame) == observed.num_rows == polars.read_ipc(file).height > 1000
    counts = dict(duckdb.sql("select event, count(*) from observed group by event").fetchall())
    assert counts["sent"] == (frame["event"] == "sent").sum() > 500
    assert frame["detail"].cat.categories.is_unique
    traced = pp.trace(experiment(), seed=1, cell="0.0").to_pandas()
    assert list(traced.columns) == list(frame.columns)


def test_figures_have_every_point(written: Path) -> None:
    points = pandas.read_parquet(written / "figures.parquet")
    sweep = points[points["title"] == "by, loss"]
    assert list(sweep["x"]) == [0.0, 0.01] and (sweep["low"] <= sweep["y"]).all()
    assert points["figure"].nunique() == 3, "one over the axis, one of the course in each cell"
