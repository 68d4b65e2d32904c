#!/usr/bin/env python3
"""The gateway beside nginx, on loopback, in the same run.

    apt-get install wrk nginx-light
    cargo build --release -p hookgate && cargo build --release -p hookgate-server --example fake_upstream
    benches/gateway/bench.py --rounds 5

Peers: the upstream directly, nginx as a plain proxy, hookgate without hooks, hookgate with 20 hooks and the audit trail.
What is measured runs alone on one core (--core), upstream and client on the other (--other); rounds are interleaved, in
another order each; figures are medians. Added latency is a peer's median minus the direct one of the same round. CPU is
the process's own, so it holds on a busy machine too.
"""
import argparse
import json
import os
import random
import shutil
import socket
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TICK = os.sysconf("SC_CLK_TCK")
UPSTREAM = 9100
SCENES = [  # name, streamed, callers
    ("1 KB answer, 1 caller", False, 1),
    ("1 KB answer, 32 callers", False, 32),
    ("200-event stream, 1 caller", True, 1),
    ("200-event stream, 32 callers", True, 32),
]
WRK = """
wrk.method = "POST"
wrk.headers["content-type"] = "application/json"
wrk.headers["authorization"] = "Bearer key"
local body = '{"model":"bench","stream":STREAM,"messages":[{"role":"user","content":"hello there"}]}'
wrk.body = body
function done(summary, latency)
  local e = summary.errors
  io.write(string.format('{"n":%d,"us":%d,"p50":%d,"p99":%d,"bad":%d}\\n', summary.requests, summary.duration,
    latency:percentile(50), latency:percentile(99), e.connect + e.read + e.write + e.status + e.timeout))
end
"""
NGINX = """
worker_processes 1; daemon off; pid DIR/pid; error_log DIR/error.log warn;
events { worker_connections 1024; }
http {
  access_log off; keepalive_requests 100000000;
  client_body_temp_path DIR/b; proxy_temp_path DIR/p; fastcgi_temp_path DIR/f; uwsgi_temp_path DIR/u; scgi_temp_path DIR/s;
  upstream up { server 127.0.0.1:UPSTREAM; keepalive 128; keepalive_requests 100000000; }
  server { listen 127.0.0.1:PORT; location / {
    proxy_pass http://up; proxy_http_version 1.1; proxy_set_header Connection ""; proxy_buffering off; } }
}
"""


def hooks():
    """Twenty: patterns on the stream, a condition, a gate on tool calls."""
    words = [r"\brm\s+-rf\s+/", r"\bCONFIDENTIAL\b", "-----BEGIN [A-Z ]{0,20}PRIVATE KEY-----"]
    secrets = ["AKIA[A-Z2-7]{16}", "gh[pousr]_[A-Za-z0-9]{36}", "github_pat_[A-Za-z0-9_]{22,}", "glpat-[A-Za-z0-9_-]{20}"]
    secrets += ["sk-[A-Za-z0-9_-]{20,}", "sk_live_[A-Za-z0-9]{24}", "AIza[A-Za-z0-9_-]{35}", "ya29[.][A-Za-z0-9_-]{20,}"]
    secrets += ["xox[abprs]-[A-Za-z0-9-]{10,}", "hf_[A-Za-z]{34}", "npm_[A-Za-z0-9]{36}", "SG[.][A-Za-z0-9_-]{22}[.]"]
    secrets += ["dop_v1_[a-f0-9]{64}", "eyJ[A-Za-z0-9_-]{10,}[.]eyJ", "postgres://[^\\s:]{1,40}:[^\\s@]{1,80}@"]
    words += [rf"\b{secret}" for secret in secrets]
    stop = [{"type": "interrupt"}]
    made = [{"label": f"s{n}", "target": "stream", "chunks": ["content"], "regex": w, "actions": stop} for n, w in enumerate(words)]
    script = "function handle(event) { return { decision: 'allow' }; }"
    made.append({"id": "gate", "event": "pre_tool_use", "handler": {"type": "script", "source": script}})
    condition = "rawInput.contains('drop table')"
    blocks = "function handle(event) { return { decision: 'block', reason: 'no' }; }"
    made.append({"id": "cond", "event": "user_prompt_submit", "if_expr": condition, "handler": {"type": "script", "source": blocks}})
    return made


class Peer:
    def __init__(self, name, port, command=None):
        self.name, self.port, self.command, self.process = name, port, command, None

    def start(self, core, work):
        if self.command is None:
            return
        log = open(work / f"{self.name}.log", "wb")
        self.process = subprocess.Popen(["taskset", "-c", str(core), *self.command], stdout=log, stderr=log)
        wait_for(self.port, self.process)

    def processes(self):
        own = self.process.pid
        kids = Path(f"/proc/{own}/task/{own}/children").read_text().split()
        return [own, *map(int, kids)]

    def cpu(self):
        """Seconds so far."""
        ticks = 0
        for pid in self.processes() if self.process else []:
            fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
            ticks += int(fields[11]) + int(fields[12])
        return ticks / TICK

    def memory(self):
        """MB in use."""
        of = lambda pid: Path(f"/proc/{pid}/smaps_rollup").read_text().split("Pss:")[1].split()[0]
        return sum(int(of(pid)) for pid in self.processes()) / 1024 if self.process else 0

    def stop(self):
        if self.process:
            self.process.terminate()
            self.process.wait(10)


def wait_for(port, process):
    for _ in range(200):
        if process.poll() is not None:
            raise SystemExit(f"{process.args} ended at once")
        try:
            return socket.create_connection(("127.0.0.1", port), 1).close()
        except OSError:
            time.sleep(0.05)
    raise SystemExit(f"nobody listens on {port}")


def load(peer, script, callers, seconds, core):
    command = ["taskset", "-c", str(core), "wrk", "-t1", f"-c{callers}", f"-d{seconds}s", "-s", str(script), f"http://127.0.0.1:{peer.port}/v1/chat/completions"]
    before = peer.cpu()
    out = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    got = json.loads(out.strip().splitlines()[-1])
    got["cpu"] = (peer.cpu() - before) * 1e6 / max(got["n"], 1)
    got["rate"] = got["n"] * 1e6 / got["us"]
    return got


def peers(work, program):
    conf = NGINX.replace("DIR", str(work)).replace("UPSTREAM", str(UPSTREAM)).replace("PORT", "9110")
    (work / "nginx.conf").write_text(conf)
    (work / "hooks").mkdir()
    (work / "hooks/all.json").write_text(json.dumps(hooks()))
    ours = lambda port, *more: [program, "gateway", "--upstream", f"http://127.0.0.1:{UPSTREAM}", "--listen", f"127.0.0.1:{port}", "--log", "off", "--data-dir", str(work / str(port)), *more]
    return [
        Peer("direct", UPSTREAM),
        Peer("nginx", 9110, [shutil.which("nginx") or "/usr/sbin/nginx", "-c", str(work / "nginx.conf"), "-p", str(work)]),
        Peer("hookgate", 9120, ours(9120)),
        Peer("hookgate, 20 hooks", 9130, ours(9130, "--hooks", str(work / "hooks"))),
    ]


def table(name, all_peers, results, n_rounds):
    print(f"\n{name}\n{'':20}{'per s':>9}{'p50 µs':>9}{'added':>8}{'p99 µs':>9}{'CPU µs':>8}{'MB':>6}{'bad':>5}")
    for peer in all_peers:
        rows = [results[name, peer.name, n] for n in range(n_rounds)]
        middle = lambda key: statistics.median(row[key] for row in rows)
        added = statistics.median(row["p50"] - results[name, "direct", n]["p50"] for n, row in enumerate(rows))
        bad = sum(row["bad"] for row in rows)
        print(f"{peer.name:20}{middle('rate'):9.0f}{middle('p50'):9.0f}{added:8.0f}{middle('p99'):9.0f}{middle('cpu'):8.0f}{peer.memory():6.0f}{bad:5}")


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--rounds", type=int, default=5)
    arguments.add_argument("--seconds", type=int, default=3)
    arguments.add_argument("--core", type=int, default=1)
    arguments.add_argument("--other", type=int, default=0)
    arguments.add_argument("--target", default=str(ROOT / "target/release"))
    given = arguments.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        work, target = Path(folder), Path(given.target)
        upstream = Peer("upstream", UPSTREAM, [str(target / "examples/fake_upstream"), f"127.0.0.1:{UPSTREAM}"])
        measured = peers(work, str(target / "hookgate"))
        scripts = {}
        for streamed in (False, True):
            scripts[streamed] = work / f"{streamed}.lua"
            scripts[streamed].write_text(WRK.replace("STREAM", str(streamed).lower()))
        try:
            upstream.start(given.other, work)
            for peer in measured:
                peer.start(given.core, work)
                for streamed in (False, True):
                    load(peer, scripts[streamed], 8, 1, given.other)  # warms up
            results = {}
            for n in range(given.rounds):
                for name, streamed, callers in SCENES:
                    for peer in random.sample(measured, len(measured)):
                        results[name, peer.name, n] = load(peer, scripts[streamed], callers, given.seconds, given.other)
            for name, *_ in SCENES:
                table(name, measured, results, given.rounds)
        finally:
            for peer in [*measured, upstream]:
                peer.stop()


if __name__ == "__main__":
    main()
