"""Runs ns-2 over all settings of the validation and writes its figures to validate/reference/.

An entry of a reference file holds the parameters of a setting and what ns-2 did; our simulator reads
the parameters from the same file (`cargo run --release --example validate`), so both run the same.
"""

import argparse
import itertools
import json
import os
import random
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

HERE = Path(__file__).resolve().parent
SEEDS = range(1, 6)  # ns-2 draws the phase of its 10 ms clock: its own spread is part of the answer

ONE_FLOW = [
    {"variant": v, "window": w, "queue": q}
    for v, q, w in itertools.product(["Newreno", "Reno"], [36, 72, 144], [40, 100, 200, 240, 1000, 10000])
]

SERVICE = 0.00125  # one packet at 8 Mbit/s: the jitter that breaks phase effects
TWO_FLOWS = [
    {"variant": v, "topology": t, "queue": q, "ssthresh": s, "jitter": j}
    for v, t, q, s, j in [
        ("Newreno", "same", 144, 0, SERVICE),
        ("Newreno", "same", 144, 96, SERVICE),
        ("Newreno", "same", 36, 48, SERVICE),
        ("Newreno", "cross", 144, 0, SERVICE),
        ("Newreno", "cross", 36, 0, SERVICE),
        ("Reno", "same", 144, 96, SERVICE),
        ("Reno", "cross", 144, 0, SERVICE),
        ("Newreno", "same", 144, 0, 0),
        ("Newreno", "cross", 144, 0, 0),
    ]
]

# The links of Arshad and Mian, Mbit/s and one-way delay in ms, with the packets that FAST keeps queued.
VEGAS = [{"rate": r, "delay": d, "alpha": a} for r, d in [(20, 60), (30, 40), (10, 80)] for a in [20, 100, 200]]

# Mbit/s, one-way delay in ms, packets of queue, initial threshold: pipes of 16 to 1250 packets, queues that outlast a reduction
# and queues that do not.
CUBIC = [
    {"rate": r, "delay": d, "queue": q, "ssthresh": s}
    for r, d, q, s in [
        (20, 60, 200, 250),
        (20, 60, 40, 250),
        (10, 80, 30, 150),
        (30, 40, 300, 200),
        (100, 50, 1000, 1000),
        (100, 50, 100, 1000),
        (8, 10, 40, 15),
        (8, 10, 4, 15),
    ]
]


# Flows over 8 Mbit/s and 60 ms before a queue under RED: thresholds in packets.
RED = [
    {"flows": f, "min": low, "max": high, "probability": 0.1, "weight": w}
    for f, low, high, w in [(1, 5, 15, 0.002), (8, 5, 15, 0.002), (4, 20, 60, 0.002), (4, 10, 30, 0.02), (16, 20, 60, 0.002)]
]


def ns(script, **arguments):
    """One run of ns-2; the JSON object it prints (TCP/Linux prints its commands beside it)."""
    command = ["ns", str(HERE / "ns2" / script)] + [f"{k}={v}" for k, v in arguments.items()]
    run = subprocess.run(command, capture_output=True, text=True, check=True)
    return json.loads(next(line for line in run.stdout.splitlines() if line.startswith("{")))


def one_flow(pool):
    """Every setting with every seed; the window's trace of the first seed."""
    jobs = [[pool.submit(ns, "one_flow.tcl", seed=s, **e) for s in SEEDS] for e in ONE_FLOW]
    entries = []
    for setting, futures in zip(ONE_FLOW, jobs):
        runs = [f.result() for f in futures]
        entries.append(setting | {"runs": [r["marks"] for r in runs], "step": runs[0]["step"], "cwnd": runs[0]["cwnd"]})
    return entries


def two_flows(pool, runs):
    """Every case with `runs` pairs of start times, the same pairs in every case."""
    draw = random.Random(2026)
    starts = [[round(draw.random(), 6), round(draw.random(), 6)] for _ in range(runs)]

    def run(case, index, pair):
        return ns("two_flows.tcl", seed=index + 1, starts=" ".join(map(str, pair)), **case)

    jobs = [[pool.submit(run, c, i, p) for i, p in enumerate(starts)] for c in TWO_FLOWS]
    entries = []
    for case, futures in zip(TWO_FLOWS, jobs):
        flows = [f.result() for f in futures]
        entries.append(case | {k: [[f[k] for f in pair] for pair in flows] for k in ("bytes", "retransmissions", "timeouts")})
    return {"duration": 20, "starts": starts, "cases": entries}


def cubic(pool):
    """What CUBIC does alone from 20 s to 120 s: packets, retransmissions, mean and largest window."""
    run = lambda e: ns("cubic.tcl", **e | {"rate": f"{e['rate']}Mb", "delay": f"{e['delay']}ms"})
    figures = lambda r: {k: r[k] for k in ["acked", "retransmissions"]} | {
        "mean": round(sum(r["cwnd"]) / len(r["cwnd"]), 1),
        "largest": max(r["cwnd"]),
    }
    return [e | figures(r) for e, r in zip(CUBIC, pool.map(run, CUBIC))]


def vegas(pool):
    """The mean window of each setting once it has settled."""
    run = lambda e: ns("vegas.tcl", rate=f"{e['rate']}Mb", delay=f"{e['delay']}ms", alpha=e["alpha"])["cwnd"]
    windows = pool.map(run, VEGAS)
    return [e | {"window": round(sum(w) / len(w), 2)} for e, w in zip(VEGAS, windows)]


def red(pool):
    """Every setting with 20 seeds, which decide what RED drops."""
    jobs = [[pool.submit(ns, "red.tcl", seed=s, **e) for s in range(1, 21)] for e in RED]
    return [e | {"runs": [f.result() for f in futures]} for e, futures in zip(RED, jobs)]


def write(path, value):
    """Compact JSON, one entry a line, so that differences can be read."""
    text = json.dumps(value, separators=(",", ":"))
    for first in ("variant", "rate", "flows"):
        text = text.replace(f'{{"{first}"', f'\n{{"{first}"')
    path.write_text(text + "\n")
    print(f"{path}: {path.stat().st_size // 1024} kB")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=200, help="runs of each case of two flows")
    parser.add_argument("--out", type=Path, default=HERE / "reference")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        write(options.out / "one_flow.json", one_flow(pool))
        write(options.out / "two_flows.json", two_flows(pool, options.runs))
        write(options.out / "vegas.json", vegas(pool))
        write(options.out / "cubic.json", cubic(pool))
        write(options.out / "red.json", red(pool))


if __name__ == "__main__":
    main()
