"""``python -m polypath run SPEC --out DIR``: a sweep from the command line, on this machine or on a Dask cluster."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from typing import Any

from . import SpecError, UnknownName, VersionMismatch, load, sweep, version
from ._experiment import seed_range

EXAMPLES = """\
examples:
  python -m polypath run foundation/two_paths --out out/two                    on all cores of this machine
  python -m polypath run my.toml --seeds 1..1000 --out out/my --dask tcp://host:8786

DIR gets a Parquet file for every few seconds of work, the same bytes wherever they were made. Called again, it goes on where
it stopped. Bands and findings are judged by `polypath lab run` and `lab check`, which know no cluster.
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """What the arguments ask for; 0, or 1 if that failed, 2 if they make no sense, 130 after Ctrl-C."""
    args = _parser().parse_args(arguments)
    try:
        return _run(args)
    except KeyboardInterrupt:
        print(f"interrupted; what has ended is in {args.out}, and the same command goes on", file=sys.stderr)
        return 130
    except (SpecError, UnknownName) as error:
        print(error, file=sys.stderr)
        return 2
    except (VersionMismatch, OSError, ValueError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m polypath", description="Experiments from the command line.")
    parser.add_argument("--version", action="version", version=version())
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    help = "every cell with every seed, into Parquet files; on a Dask cluster with --dask"
    raw = argparse.RawDescriptionHelpFormatter
    run = commands.add_parser("run", help=help, description=help, epilog=EXAMPLES, formatter_class=raw)
    run.add_argument("spec", metavar="SPEC", help="a spec file, or the name of one below experiments/ or built in")
    run.add_argument("--out", metavar="DIR", required=True, help="where the files go")
    run.add_argument("--seeds", metavar="A..B", type=_seeds, help="these instead of the spec's, the last included")
    where = run.add_mutually_exclusive_group()
    where.add_argument("--dask", metavar="ADDRESS", help="of a scheduler: tcp://host:8786; it needs polypath[dask]")
    where.add_argument("--jobs", metavar="N", type=_count, help="how many runs at once; without it one a core")
    return parser


def _seeds(text: str) -> range:
    return _told(lambda: range(seed_range(text)[0], seed_range(text)[1] + 1))


def _count(text: str) -> int:
    if not text.isdecimal() or int(text) == 0:
        raise argparse.ArgumentTypeError(f'"{text}" is no number from 1')
    return int(text)


def _told(read: Callable[[], range]) -> range:
    try:
        return read()
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def _run(args: argparse.Namespace) -> int:
    experiment = load(args.spec)
    with _cluster(args.dask) as client:
        swept = sweep(experiment, seeds=args.seeds, out=args.out, client=client, jobs=args.jobs)
    files = swept.files
    kept = len(swept.seeds) * len(experiment.cells) - swept.ran
    print(f"{swept.ran} runs made, {kept} were there; {len(files)} files in {swept.out}")
    return 0


def _cluster(address: str | None) -> Any:
    """A client of the scheduler at ``address``; without one nothing."""
    if address is None:
        from contextlib import nullcontext

        return nullcontext()
    try:
        from distributed import Client
    except ImportError:
        raise ValueError("--dask needs Dask: pip install 'polypath[dask]'") from None
    return Client(address, set_as_default=False)


if __name__ == "__main__":
    sys.exit(main())
