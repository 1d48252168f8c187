"""Our simulator and ns-2 on the same scenarios, one after the other: user CPU per delivered packet.

    speed.py target/release/examples/speed

Set-up is the user CPU of a run of 1 ms, taken off before dividing. Prints a table in Markdown.
"""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).resolve().parent / "ns2" / "speed.tcl"
CASES = [
    ("one flow, 1 Gbit/s, 20 ms", ["link"], {"case": "link"}, 100),
    ("dumbbell, 10 flows", ["dumbbell", "10"], {"case": "dumbbell", "flows": 10}, 30),
    ("dumbbell, 100 flows", ["dumbbell", "100"], {"case": "dumbbell", "flows": 100}, 30),
    ("dumbbell, 1000 flows", ["dumbbell", "1000"], {"case": "dumbbell", "flows": 1000}, 30),
    ("papers' topology", ["mhip"], {"case": "papers"}, 2000),
]


def measure(command):
    """What it printed, its user CPU in s and its largest resident set in MB."""
    child = subprocess.Popen(command, stdout=subprocess.PIPE)
    out = child.stdout.read()
    _, status, usage = os.wait4(child.pid, 0)
    if status:
        sys.exit(f"{' '.join(command)}: exit status {status}")
    return json.loads(out), usage.ru_utime, usage.ru_maxrss / 1024


def cost(command):
    """CPU of the set-up in s, ns per delivered packet, packets, MB; `command` makes one of a duration."""
    _, set_up, _ = measure(command(0.001))
    result, total, memory = measure(command(None))
    return set_up, (total - set_up) / result["delivered"] * 1e9, result["delivered"], memory


def row(name, figures):
    set_up, each, packets, memory = figures
    return f"| {name} | {packets / 1e6:.2f} M | {each:.0f} | {set_up:.2f} | {memory:.0f} |"


def main():
    ours = sys.argv[1]
    ns = shutil.which("ns")
    print("| case | delivered | ns of CPU a packet | set-up, s | MB |\n|---|--:|--:|--:|--:|")
    for name, args, params, duration in CASES:
        mine = cost(lambda t: [ours, *args, str(t or duration)])
        print(row(f"{name}: ours", mine))
        if ns:
            pairs = [f"{k}={v}" for k, v in params.items()]
            theirs = cost(lambda t: [ns, str(SCRIPT), *pairs, f"duration={t or duration}"])
            print(row("ns-2", theirs))
            print(f"| **ratio** | | **{theirs[1] / mine[1]:.1f}** | {theirs[0] / max(mine[0], 0.01):.0f} | {theirs[3] / mine[3]:.1f} |")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
