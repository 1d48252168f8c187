"""The laboratory of Polypath: experiments on secure multipath transport in a deterministic simulator.

>>> import polypath as pp
>>> exp = pp.Experiment("two paths", duration="5s", seeds="1..2")
>>> for via, rate in (("x", "8Mbit/s"), ("y", "4Mbit/s")):
...     exp = exp.link("a", via, rate, "20ms", queue="1bdp").link(via, "b", "100Mbit/s", "1ms")
>>> exp = exp.flow("bulk", "a", "b", paths=[["x"], ["y"]])
>>> goodput = pp.run(exp).values.where(metric="goodput", path=None)
>>> [round(bits.as_py() / 1e6) for bits in goodput["value"]]  # Mbit/s, of 12
[11, 11]

The same experiment, seeds and version give the same bytes, on every machine.
"""

from . import traces
from ._errors import SpecError, UnknownName, VersionMismatch
from ._experiment import Experiment, from_dict, from_toml, load, names, schema
from ._native import template, version
from ._own import Controller, Scheduler
from ._run import Results, run, trace
from ._sweep import Sweep, sweep
from ._table import Table

__version__ = version().split("+")[0]

__all__ = [
    "Controller",
    "Experiment",
    "Results",
    "Scheduler",
    "SpecError",
    "Sweep",
    "Table",
    "UnknownName",
    "VersionMismatch",
    "from_dict",
    "from_toml",
    "load",
    "names",
    "run",
    "schema",
    "sweep",
    "template",
    "trace",
    "traces",
    "version",
]
