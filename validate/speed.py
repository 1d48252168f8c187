"""Our simulator beside htsim and ns-2 on the same scenarios, in turns: user CPU per delivered packet.

    speed.py target/release/polypath [--beside NAME=PROGRAM ...] [--rounds N] [--case WORD]

Each round runs every program once, for the same simulated time, in an order that alternates; set-up, the user CPU of a
run of 1 ms, is taken off. The ratio of a round is their time a packet over ours: medians with quartiles over the
rounds. A program beside ours is another `polypath…`, or takes a case's words and the seconds, as htsim's
`validate/htsim/speed.cpp` does. ns-2 is run where `ns` is installed. Prints a table in Markdown.
"""

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).resolve().parent / "ns2" / "speed.tcl"
# Name, the programs' arguments, those of ns-2's script, simulated seconds.
CASES = [
    ("one flow, 1 Gbit/s, 20 ms", ["link"], {"case": "link"}, 20),
    ("dumbbell, 10 flows", ["dumbbell", "10"], {"case": "dumbbell", "flows": 10}, 10),
    ("dumbbell, 100 flows", ["dumbbell", "100"], {"case": "dumbbell", "flows": 100}, 10),
    ("dumbbell, 1000 flows", ["dumbbell", "1000"], {"case": "dumbbell", "flows": 1000}, 10),
    ("dumbbell, 10,000 flows", ["dumbbell", "10000"], None, 10),
    ("papers' topology", ["mhip"], {"case": "papers"}, 1000),
]
# ns-2 takes a minute to set up a thousand flows.
MOST_FLOWS_NS2 = 100


def measure(command):
    """What it printed, or None if it does not know the scenario, and its user CPU in s."""
    child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    out = child.stdout.read()
    _, status, usage = os.wait4(child.pid, 0)
    # htsim says more before it
    return (None if status else json.loads(out.splitlines()[-1])), usage.ru_utime


class Program:
    """Runs one scenario; `command` makes the command line of a duration."""

    def __init__(self, name, command, duration):
        self.name, self.command, self.duration, self.costs = name, command, duration, []
        result, self.set_up = measure(command(0.001))
        self.runs = result is not None

    def round(self):
        result, total = measure(self.command(self.duration))
        self.packets = result["delivered"]
        self.costs.append((total - self.set_up) / self.packets * 1e9)


def spread(values, digits):
    low, middle, high = statistics.quantiles(values, n=4, method="inclusive")
    return f"{middle:.{digits}f} ({low:.{digits}f}–{high:.{digits}f})"


def command(program, words, t):
    if not Path(program).name.startswith("polypath"):
        return [program, *words, str(t)]
    scenario, *flows = words
    return [program, "lab", "speed", scenario, str(t), *(f"--flows={n}" for n in flows), "--json"]


def programs(ours, beside, case):
    """Those that run `case`, ours first."""
    _, args, params, duration = case
    found = [
        Program(name, lambda t, path=path: command(path, args, t), duration)
        for name, path in [("ours", ours), *beside]
    ]
    ns = shutil.which("ns")
    if ns and params and params.get("flows", 1) <= MOST_FLOWS_NS2:
        pairs = [f"{k}={v}" for k, v in params.items()]
        found.append(Program("ns-2", lambda t: [ns, str(SCRIPT), *pairs, f"duration={t}"], duration))
    if not found[0].runs:
        sys.exit(f"error: {' '.join(found[0].command(0.001))} failed")
    return [program for program in found if program.runs]


def rows(name, found):
    ours = found[0]
    for program in found:
        ratios = [theirs / mine for theirs, mine in zip(program.costs, ours.costs)]
        beside = "" if program is ours else spread(ratios, 2)
        packets = f"{program.packets / 1e6:.2f} M"
        yield f"| {name}: {program.name} | {packets} | {spread(program.costs, 0)} | {beside} | {program.set_up:.2f} |"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("ours")
    parser.add_argument("--beside", action="append", default=[], metavar="NAME=PROGRAM")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--case", default="", help="only the cases whose name contains this")
    args = parser.parse_args()
    if args.rounds < 2:
        sys.exit("error: quartiles take two rounds at least")
    beside = [tuple(given.split("=", 1)) for given in args.beside]
    print(f"Load of the machine at the start: {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores.\n")
    print("| case | delivered | ns of CPU a packet | theirs ÷ ours | set-up, s |\n|---|--:|--:|--:|--:|")
    for case in CASES:
        if args.case not in case[0]:
            continue
        found = programs(args.ours, beside, case)
        for n in range(args.rounds):
            for program in found[:: 1 if n % 2 == 0 else -1]:
                program.round()
        print("\n".join(rows(case[0], found)), flush=True)


if __name__ == "__main__":
    main()
