"""One TCP alone over one emulated link: what comparisons of a kernel's with the laboratory's share."""

import json
import platform
import shutil
import subprocess

from bed import TARGET


def enlarge_buffers(bed):
    """Lets a TCP of the kernel use buffers of up to 64 MiB."""
    for key in ("tcp_wmem", "tcp_rmem"):
        bed.sysctl(f"net.ipv4.{key}", "'4096 262144 67108864'")


def link_of(link):
    """Of the first link of a spec: `rate` in Mbit/s, `delay` one way in ms, `queue` in bytes."""
    return {"rate": link.rates[0], "delay": link.delay, "queue": link.hops()[0]["queue"]["bytes"]}


def laboratory(out, spec, *words, files=()):
    """Runs a spec, with `files` (name, text) beside it, in the directory `out`, which is made anew. Returns what is printed."""
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    for name, text in (("alone.toml", spec), *files):
        (out / name).write_text(text)
    words = [TARGET / "polypath", "lab", "run", out / "alone.toml", *words, "--out", out]
    return subprocess.run(words, check=True, capture_output=True, text=True).stdout


def keep(out, entries):
    """Writes what was measured of the kernel's, an entry a line, to `out`/kernel.json. Returns the kernel's name."""
    lines = ",\n".join(map(json.dumps, entries))
    out.mkdir(parents=True, exist_ok=True)
    (out / "kernel.json").write_text(f"[\n{lines}\n]\n")
    return f"Linux {platform.release().split('-')[0]}"
