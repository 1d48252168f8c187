"""Our simulator and ns-2 on the same scenarios, in turns: user CPU per delivered packet.

    speed.py target/release/examples/speed

Set-up is the user CPU of a run of 1 ms, taken off before dividing. Of several rounds the cheapest counts:
whatever else the machine does only ever adds. Prints a table in Markdown.
"""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).resolve().parent / "ns2" / "speed.tcl"
# Name, our arguments, those of the script, simulated seconds, rounds.
CASES = [
    ("one flow, 1 Gbit/s, 20 ms", ["link"], {"case": "link"}, 20, 5),
    ("dumbbell, 10 flows", ["dumbbell", "10"], {"case": "dumbbell", "flows": 10}, 10, 5),
    ("dumbbell, 100 flows", ["dumbbell", "100"], {"case": "dumbbell", "flows": 100}, 10, 5),
    ("dumbbell, 1000 flows", ["dumbbell", "1000"], {"case": "dumbbell", "flows": 1000}, 10, 1),
    ("papers' topology", ["mhip"], {"case": "papers"}, 1000, 3),
]


def measure(command):
    """What it printed, its user CPU in s and its largest resident set in MB."""
    child = subprocess.Popen(command, stdout=subprocess.PIPE)
    out = child.stdout.read()
    _, status, usage = os.wait4(child.pid, 0)
    if status:
        sys.exit(f"{' '.join(command)}: exit status {status}")
    return json.loads(out), usage.ru_utime, usage.ru_maxrss / 1024


class Program:
    """Runs one scenario; `command` makes the command line of a duration."""

    def __init__(self, command, duration):
        self.command, self.duration = command, duration
        _, self.set_up, _ = measure(command(0.001))
        self.cost = float("inf")

    def round(self):
        result, total, self.memory = measure(self.command(self.duration))
        self.packets = result["delivered"]
        self.cost = min(self.cost, (total - self.set_up) / self.packets * 1e9)

    def row(self, name):
        figures = f"{self.packets / 1e6:.2f} M | {self.cost:.0f} | {self.set_up:.2f} | {self.memory:.0f}"
        return f"| {name} | {figures} |"


def main():
    ours, ns = sys.argv[1], shutil.which("ns")
    print(f"Load of the machine at the start: {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores.\n")
    print("| case | delivered | ns of CPU a packet | set-up, s | MB |\n|---|--:|--:|--:|--:|")
    for name, args, params, duration, rounds in CASES:
        mine = Program(lambda t: [ours, *args, str(t)], duration)
        pairs = [f"{k}={v}" for k, v in params.items()]
        theirs = ns and Program(lambda t: [ns, str(SCRIPT), *pairs, f"duration={t}"], duration)
        for _ in range(rounds):
            mine.round()
            if theirs:
                theirs.round()
        print(mine.row(f"{name}: ours"))
        if theirs:
            print(theirs.row("ns-2"))
            memory = theirs.memory / mine.memory
            print(f"| **ratio** | | **{theirs.cost / mine.cost:.1f}** | | {memory:.1f} |")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
