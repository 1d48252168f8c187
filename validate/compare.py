"""Compares our simulator's figures with ns-2's: prints tables, draws plots, fails when they disagree.

Both directories hold `one_flow.json` and `two_flows.json` with the same settings (see run_ns2.py).
"""

import argparse
import json
import sys
from pathlib import Path

import matplotlib
import numpy as np

matplotlib.use("Agg")
import matplotlib.pyplot as plt

HERE = Path(__file__).resolve().parent
GOODPUT_TOLERANCE = 0.01
RETRANSMISSION_TOLERANCE = (0.05, 5)  # of the count, or packets: whichever is larger
MIN_P = 0.05
GATES = {"Newreno same q144", "Newreno cross q144", "Newreno same q36 ssthresh 48"}  # of nine one fails by chance
TRACES = [("Newreno", 36, 10000), ("Newreno", 72, 200), ("Newreno", 144, 10000), ("Reno", 36, 200)]


def goodput(mark):
    """Mbit/s since the start, headers included as ns-2's sink counts them."""
    return mark["bytes"] * 8e-6 / mark["t"]


def nearest(ours, theirs):
    """The value of `theirs` nearest to `ours`: ns-2's runs differ by the phase of its clock."""
    return min(theirs, key=lambda x: abs(x - ours))


def span(values, form):
    low, high = form.format(min(values)), form.format(max(values))
    return low if low == high else f"{low}–{high}"


def compare_mark(ours, theirs):
    """Table cells of one point in time, and whether it agrees."""
    g, gs = goodput(ours), [goodput(m) for m in theirs]
    r, rs = ours["retransmissions"], [m["retransmissions"] for m in theirs]
    share, packets = RETRANSMISSION_TOLERANCE
    near = nearest(r, rs)
    good = abs(g / nearest(g, gs) - 1) <= GOODPUT_TOLERANCE
    sent = abs(r - near) <= max(share * near, packets)
    cells = [f"{g:.3f}", span(gs, "{:.3f}"), str(r), span(rs, "{}")]
    cells += [str(ours["timeouts"]), span([m["timeouts"] for m in theirs], "{}")]
    return cells, good and sent


def one_flow(ours, theirs):
    """One row a setting; goodput in Mbit/s, each pair of columns ours and ns-2's."""
    print("| variant | queue | window | t | Mbit/s | ns-2 | retransmissions | ns-2 | timeouts | ns-2 | |")
    print("|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|---|")
    wrong = 0
    for a, b in zip(ours, theirs, strict=True):
        for i, mark in enumerate(a["runs"][0]):
            cells, fine = compare_mark(mark, [run[i] for run in b["runs"]])
            wrong += not fine
            name = [a["variant"], a["queue"], a["window"], f"{mark['t']:.0f} s"]
            print("|", " | ".join(map(str, name + cells + ["ok" if fine else "**differs**"])), "|")
    print(f"\n{wrong} of {2 * len(ours)} points outside {GOODPUT_TOLERANCE:.0%} of goodput or "
          f"max({RETRANSMISSION_TOLERANCE[0]:.0%}, {RETRANSMISSION_TOLERANCE[1]}) retransmissions\n")
    return wrong


def kolmogorov_smirnov(a, b):
    """Two-sample statistic and its asymptotic p-value (Stephens' correction)."""
    a, b = np.sort(a), np.sort(b)
    both = np.concatenate([a, b])
    d = np.abs(np.searchsorted(a, both, "right") / len(a) - np.searchsorted(b, both, "right") / len(b)).max()
    n = np.sqrt(len(a) * len(b) / (len(a) + len(b)))
    x = (n + 0.12 + 0.11 / n) * d
    k = np.arange(1, 101)
    p = 2 * np.sum((-1.0) ** (k - 1) * np.exp(-2 * (k * x) ** 2))
    return d, float(np.clip(p, 0, 1)) if x > 0.2 else 1.0


def fairness(case):
    """FF = bytes of flow 1 / bytes of flow 2, of each run."""
    flows = np.array(case["bytes"], float)
    return flows[:, 0] / flows[:, 1]


def summary(case):
    """Mean throughputs in 20 s, quartiles of FF and retransmissions a run."""
    ff, (t1, t2) = fairness(case), np.mean(case["bytes"], axis=0) * 8e-6 / 20
    low, middle, high = np.quantile(ff, [0.25, 0.5, 0.75])
    rx = np.sum(case["retransmissions"], axis=1).mean()
    return f"{t1:.2f} + {t2:.2f} | {low:.2f} **{middle:.2f}** {high:.2f} | {rx:.0f}"


def describe(case):
    return f"{case['variant']} {case['topology']} q{case['queue']}" + (
        f" ssthresh {case['ssthresh']}" if case["ssthresh"] else "") + ("" if case["jitter"] else ", no jitter")


def two_flows(ours, theirs):
    """One row a case; the cases in GATES decide, the others inform."""
    print("| case | who | Mbit/s | FF quartiles | retransmissions | D | p | |")
    print("|---|---|--:|--:|--:|--:|--:|---|")
    wrong = 0
    for a, b in zip(ours["cases"], theirs["cases"], strict=True):
        d, p = kolmogorov_smirnov(fairness(a), fairness(b))
        fine = p > MIN_P
        wrong += not fine and describe(a) in GATES
        verdict = "ok" if fine else "**differs**"
        print(f"| {describe(a)} | ours | {summary(a)} | {d:.3f} | {p:.2f} | {verdict} |")
        print(f"| | ns-2 | {summary(b)} | | | |")
    print()
    return wrong


def plot_traces(ours, theirs, path):
    figure, axes = plt.subplots(2, 2, figsize=(10, 5.5), sharex=True, layout="constrained")
    for ax, key in zip(axes.flat, TRACES):
        for entries, style in ((theirs, {"color": "0.6", "lw": 2.5, "label": "ns-2"}),
                               (ours, {"color": "tab:blue", "lw": 1, "label": "ours"})):
            entry = next(e for e in entries if (e["variant"], e["queue"], e["window"]) == key)
            cwnd = np.array(entry["cwnd"])
            ax.plot(entry["step"] * np.arange(1, len(cwnd) + 1), cwnd, **style)
        ax.set_title("{}, queue {}, window {}".format(*key), fontsize=9)
        ax.set_ylabel("cwnd, packets")
        ax.set_xlim(0, 60)
    axes[1, 0].set_xlabel("s"), axes[1, 1].set_xlabel("s")
    axes[0, 0].legend(frameon=False)
    figure.savefig(path, dpi=80)


def plot_fairness(ours, theirs, path):
    cases = list(zip(ours["cases"], theirs["cases"]))
    figure, axes = plt.subplots(-(-len(cases) // 3), 3, figsize=(10, 7), sharey=True, layout="constrained")
    for ax, (a, b) in zip(axes.flat, cases):
        ax.ecdf(fairness(b), color="0.6", lw=2.5, label="ns-2")
        ax.ecdf(fairness(a), color="tab:blue", lw=1, label="ours")
        ax.set_xscale("log")
        ax.set_title(describe(a), fontsize=8)
    axes[0, 0].legend(frameon=False)
    figure.supxlabel("FF = bytes of flow 1 / bytes of flow 2 in 20 s")
    figure.savefig(path, dpi=80)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("ours", type=Path)
    parser.add_argument("--ns2", type=Path, default=HERE / "reference")
    parser.add_argument("--plots", type=Path, help="directory for cwnd.png and ff.png")
    options = parser.parse_args()
    load = lambda name: [json.loads((d / name).read_text()) for d in (options.ours, options.ns2)]
    one, two = load("one_flow.json"), load("two_flows.json")
    wrong = one_flow(*one) + two_flows(*two)
    if options.plots:
        options.plots.mkdir(parents=True, exist_ok=True)
        plot_traces(*one, options.plots / "cwnd.png")
        plot_fairness(*two, options.plots / "ff.png")
    sys.exit(wrong > 0)


if __name__ == "__main__":
    main()
