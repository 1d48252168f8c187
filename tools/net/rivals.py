"""What a user would pick instead: kernel TCP and MPTCP, curl over TLS, scp."""

import contextlib
import math
import os
import random
import shlex
import shutil
import socket
import struct
import threading
import time

from bed import run, same_files

CHUNK = 1 << 18
# Bytes of a packet of the trickle, and of its headers.
MEAN, UDP = 200, 28
# In `socket` from Python 3.10 on.
IPPROTO_MPTCP = 262
# A connection over which nothing goes for so long stands still, s. Kernel MPTCP may for ever: what comes early fills the buffer of the
# receiver, and the bytes before it wait for room there.
STILL = 30


def tcp(bed, size, seconds=None, mptcp=False, to=None, cc="cubic", side=0, server=1, watch=None):
    """Moves `size` bytes, or as many as go in `seconds`, from host a (or another, by `side`) to host b (or another, by `server`) over a new
    connection, to its address on the first path unless `to` is another: seconds until the receiver has all, and the samples (time, bytes
    received). `watch` gets the sending socket, in a thread of its own, as soon as it is connected."""
    protocol = IPPROTO_MPTCP if mptcp else 0
    server, client = bed.socket(server, protocol), bed.socket(side, protocol)
    for end in (server, client):
        end.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, cc.encode())
        for timeout in (socket.SO_RCVTIMEO, socket.SO_SNDTIMEO):
            end.setsockopt(socket.SOL_SOCKET, timeout, struct.pack("ll", STILL, 0))
    server.bind((to or bed.links[0][1], 0))
    server.listen(1)
    samples, began = [(0.0, 0)], time.monotonic()

    def receive():
        connection, _ = server.accept()
        buffer, got = bytearray(CHUNK), 0
        with connection, contextlib.suppress(BlockingIOError):
            while count := connection.recv_into(buffer):
                got += count
                samples.append((time.monotonic() - began, got))

    receiver = threading.Thread(target=receive, daemon=True)
    receiver.start()
    client.connect(server.getsockname())
    if watch:
        threading.Thread(target=watch, args=(client,), daemon=True).start()
    sent = _send(client, size, seconds and began + seconds)
    client.close()
    receiver.join()
    server.close()
    took, got = samples[-1]
    if got < (size or sent):
        print(f"  a connection stands still: {got} bytes came of {size or sent}", flush=True)
    return (took if got >= (size or 0) else math.inf), samples


def trickle(bed, rate, until, side=0):
    """Sends UDP packets of up to 400 bytes from host a (or another, by `side`) to host b over the first path at random times, `rate`
    Mbit/s in all; the samples (time, bytes on the wire)."""
    sink, out = (bed.socket(end, kind=socket.SOCK_DGRAM) for end in (1, side))
    sink.bind((bed.links[0][1], 0))
    pause, samples, began = (MEAN + UDP) * 8 / (rate * 1e6), [(0.0, 0)], time.monotonic()
    due = began
    while due < until:
        size, due = random.randrange(2 * MEAN), due + random.expovariate(1 / pause)
        time.sleep(max(0.0, due - time.monotonic()))
        out.sendto(bytes(size), sink.getsockname())
        samples.append((time.monotonic() - began, samples[-1][1] + size + UDP))
    sink.close()
    out.close()
    return samples


def _send(client, size, until):
    """Bytes that the kernel took, until they are all, the time is over or nothing goes any more."""
    block, sent, most = bytes(CHUNK), 0, size or 1 << 60
    with contextlib.suppress(BlockingIOError):
        while sent < most and not (until and time.monotonic() > until):
            sent += client.send(block[: min(most - sent, CHUNK)])
    return sent


def enable_mptcp(bed):
    """Every address but the first becomes a subflow of the host that connects."""
    bed.sysctl("net.mptcp.enabled", 1)
    for name in bed.names:
        run("ip", "-n", name, "mptcp", "limits", "set", "subflow", "8", "add_addr_accepted", "8")
    for i, (a, b) in enumerate(bed.links[1:], 1):
        run("ip", "-n", bed.names[0], "mptcp", "endpoint", "add", a, "dev", f"path{i}", "subflow")
        run("ip", "-n", bed.names[1], "mptcp", "endpoint", "add", b, "dev", f"path{i}", "signal", "subflow")


class Https:
    """nginx on host b, curl on host a: a file over TLS 1.3 from memory to memory."""

    def __init__(self, bed):
        if not (shutil.which("nginx") or os.path.exists("/usr/sbin/nginx")):
            raise FileNotFoundError("nginx (apt-get install nginx-light)")
        self.bed, key, cert = bed, bed.dir / "key.pem", bed.dir / "cert.pem"
        run("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
            "-subj", "/CN=b", "-keyout", str(key), "-out", str(cert))
        os.chmod(bed.dir, 0o755)
        config = bed.dir / "nginx.conf"
        config.write_text(f"""daemon off; master_process off; pid {bed.dir}/nginx.pid; error_log stderr;
user root; events {{}}
http {{ access_log off; client_body_temp_path {bed.dir}/t1; proxy_temp_path {bed.dir}/t2;
fastcgi_temp_path {bed.dir}/t3; uwsgi_temp_path {bed.dir}/t4; scgi_temp_path {bed.dir}/t5;
server {{ listen 443 ssl; root {bed.dir}; ssl_certificate {cert}; ssl_certificate_key {key};
ssl_protocols TLSv1.3; }} }}""")
        self.server = bed.spawn(1, "/usr/sbin/nginx", "-c", config)
        time.sleep(0.5)

    def transfer(self, path):
        """Seconds from the start of curl until it has the file, and CPU seconds of both."""
        out, before = self.bed.dir / "fetched", cpu_of(self.server.pid)
        began = time.monotonic()
        curl = self.bed.spawn(0, "curl", "-sk", "-o", out, f"https://{self.bed.links[0][1]}/{path.name}")
        curl.wait()
        took = time.monotonic() - began
        if curl.returncode != 0 or out.stat().st_size != path.stat().st_size:
            raise RuntimeError(f"curl: {curl.returncode}")
        out.unlink()
        return took, curl.cpu + cpu_of(self.server.pid) - before


class Scp:
    """sshd on host b with keys of its own, scp on host a."""

    def __init__(self, bed):
        if not os.path.exists("/usr/sbin/sshd"):
            raise FileNotFoundError("sshd (apt-get install openssh-server)")
        self.bed, self.key = bed, bed.dir / "user"
        host = bed.dir / "host"
        for key in (self.key, host):
            run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(key))
        os.makedirs("/run/sshd", exist_ok=True)
        authorized = bed.dir / "user.pub"
        self.server = bed.spawn(
            1, "/usr/sbin/sshd", "-D", "-f", "/dev/null", "-p", "22", "-h", host, "-o", f"AuthorizedKeysFile={authorized}",
            "-o", "StrictModes=no", "-o", "PermitRootLogin=yes", "-o", "UsePAM=no", "-o", f"PidFile={bed.dir}/sshd.pid",
            "-o", "Subsystem=sftp internal-sftp")
        time.sleep(0.5)

    def transfer(self, path):
        out, before = self.bed.dir / "copied", cpu_of(self.server.pid, children=True)
        took, cpu = self._copy(path, out)
        time.sleep(0.3)
        out.unlink()
        return took, cpu + cpu_of(self.server.pid, children=True) - before

    def transfer_tree(self, tree):
        """Seconds that a directory takes."""
        out = self.bed.dir / "copied"
        took, _ = self._copy(tree, out, "-r")
        same_files(tree, out)
        shutil.rmtree(out)
        return took

    def tar_tree(self, tree):
        """The same with `tar | ssh tar`."""
        out = self.bed.dir / "copied"
        ssh = shlex.join(["ssh", *self._options(), f"root@{self.bed.links[0][1]}", f"mkdir {out} && tar -x -C {out}"])
        began = time.monotonic()
        both = self.bed.spawn(0, "sh", "-c", f"tar -c -C {tree} . | {ssh}")
        error = both.communicate()[1]
        took = time.monotonic() - began
        if both.returncode != 0:
            raise RuntimeError(f"tar over ssh: {error}")
        same_files(tree, out)
        shutil.rmtree(out)
        return took

    def _options(self):
        return ["-q", "-i", str(self.key), "-F", "/dev/null", "-o", "StrictHostKeyChecking=no", "-o", "UserKnownHostsFile=/dev/null"]

    def _copy(self, path, out, *more):
        began = time.monotonic()
        scp = self.bed.spawn(0, "scp", *more, *self._options(), path, f"root@{self.bed.links[0][1]}:{out}")
        error = scp.communicate()[1]
        if scp.returncode != 0:
            raise RuntimeError(f"scp: {error}")
        return time.monotonic() - began, scp.cpu


def cpu_of(pid, children=False):
    """CPU seconds of a process so far, with its ended children's if asked."""
    fields = open(f"/proc/{pid}/stat").read().rsplit(")", 1)[1].split()
    ticks = sum(int(n) for n in fields[11 : 15 if children else 13])
    return ticks / os.sysconf("SC_CLK_TCK")


def allocated_by(pid):
    """kB that a process allocated."""
    lines = open(f"/proc/{pid}/smaps_rollup").read().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("Anonymous:"))
