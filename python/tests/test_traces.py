"""Traces that are drawn."""

from pathlib import Path

import polypath as pp
import pytest
from polypath import traces


@pytest.mark.parametrize("draw", [traces.lte, traces.starlink, traces.wifi])
def test_a_link_follows_a_drawn_trace(draw, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:  # type: ignore[no-untyped-def]
    monkeypatch.chdir(tmp_path)
    trace = draw(seed=2, seconds=20, mean="8Mbit/s")
    assert trace == draw(seed=2, seconds=20, mean="8Mbit/s") != draw(seed=3, seconds=20, mean="8Mbit/s")
    exp = pp.Experiment("drawn", duration="20s").link("a", "b", trace.write("drawn.trace"), "20ms", queue="100p")
    goodput = pp.run(exp.flow("bulk", "a", "b")).values.where(metric="goodput")["value"][0].as_py() / 1e6
    assert 0.3 * trace.mean_rate < goodput < trace.mean_rate


def test_what_cannot_be_drawn_is_told() -> None:
    with pytest.raises(ValueError, match="lasts 1 s to 3600 s"):
        traces.lte(seconds=0)
    with pytest.raises(ValueError, match="Mbit/s"):
        traces.wifi(mean="fast")
    with pytest.raises(ValueError, match="from 100kbit/s to 1Gbit/s"):
        traces.wifi(mean="90Gbit/s")
