#!/usr/bin/env python3
"""What the gateway promises beside its speed, measured on loopback with the 20 hooks of bench.py.

    cargo build --release -p hookgate
    benches/gateway/limits.py

- open: memory while so many streams are open, each in the middle of an answer
- cancel: from the chunk that a hook interrupts at, to the moment the provider sees that nobody listens any more
- reload: hooks are edited and loaded again so often while streams run; every stream must come whole
- clean: of clean text, how many bytes go on with the chunk that brought them
"""
import argparse
import asyncio
import json
import random
import re
import socket
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

from bench import ROOT, hooks

HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"


def event(text):
    delta = {"id": "a", "object": "chat.completion.chunk", "choices": [{"index": 0, "delta": {"content": text}}]}
    return f"data: {json.dumps(delta)}\n\n".encode()


END = b'data: {"id":"a","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n'


def chunk(data):
    return b"%x\r\n%s\r\n" % (len(data), data)


async def read_request(reader):
    """The body of the next request; none at the end."""
    try:
        head = await reader.readuntil(b"\r\n\r\n")
        length = int(re.search(rb"content-length: (\d+)", head, re.I)[1])
        return json.loads(await reader.readexactly(length))
    except (asyncio.IncompleteReadError, ConnectionError):
        return None


class Upstream:
    """A provider; the model's name says what it does."""

    def __init__(self):
        self.release = asyncio.Event()
        self.matched, self.gone = [], []
        self.paced = None

    async def serve(self, reader, writer):
        try:
            while (request := await read_request(reader)) is not None:
                writer.transport.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                writer.write(HEAD)
                await getattr(self, request["model"])(reader, writer)
                writer.write(chunk(END) + b"0\r\n\r\n")
                await writer.drain()
        except (ConnectionError, asyncio.CancelledError):
            pass
        finally:
            writer.close()

    async def open(self, reader, writer):
        for n in range(10):
            writer.write(chunk(event(f"word {n} ")))
        await self.release.wait()

    async def cancel(self, reader, writer):
        for n in range(10):
            writer.write(chunk(event(f"word {n} ")))
        await asyncio.sleep(0.05)
        self.matched.append(time.perf_counter())
        writer.write(chunk(event("now rm -rf / goes ")))
        while await reader.read(1 << 16):
            pass
        self.gone.append(time.perf_counter())
        raise ConnectionError

    async def short(self, reader, writer):
        for n in range(20):
            writer.write(chunk(event(f"word {n} ")))
            await asyncio.sleep(0.001)

    async def clean(self, reader, writer):
        for piece in self.paced.pieces:
            writer.write(chunk(event(piece)))
            await self.paced.wait(len(piece))


class Paced:
    """Counts what goes on with its chunk: the provider goes on when it came, or when it surely does not come."""

    def __init__(self, pieces):
        self.pieces, self.sent, self.came, self.at_once, self.news = pieces, 0, 0, 0, asyncio.Event()

    async def wait(self, more):
        before, self.sent = self.came, self.sent + more
        until = time.perf_counter() + 0.05
        while self.came < self.sent and (left := until - time.perf_counter()) > 0:
            self.news.clear()
            try:
                await asyncio.wait_for(self.news.wait(), left)
            except asyncio.TimeoutError:
                break
        # of this piece, and not of pieces that were held before it
        self.at_once += min(self.came - before, more) if self.came == self.sent else max(0, self.came - (self.sent - more))

    def got(self, n):
        self.came += n
        self.news.set()


async def ask(port, model, see=lambda text: None):
    """Asks, shows each text; the whole text, and whether the stream ended as it should."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1 << 20)
    body = json.dumps({"model": model, "stream": True, "messages": [{"role": "user", "content": f"{model} {random.random()}"}]}).encode()
    writer.write(b"POST /v1/chat/completions HTTP/1.1\r\nhost: h\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n%s" % (len(body), body))
    whole, done = "", False
    try:
        await reader.readuntil(b"\r\n\r\n")
        rest = b""
        while (size := int(await reader.readline(), 16)) > 0:
            rest += (await reader.readexactly(size + 2))[:-2]
            *events, rest = rest.split(b"\n\n")
            for one in events:
                if one == b"data: [DONE]":
                    done = True
                    continue
                text = json.loads(one[6:])["choices"][0]["delta"].get("content", "")
                whole += text
                see(text)
    except (asyncio.IncompleteReadError, ConnectionError, ValueError):
        done = False
    finally:
        writer.close()
    return whole, done


class Gateway:
    def __init__(self, program, work, upstream, port):
        self.hooks, self.port, self.log = work / "hooks", port, work / "log"
        self.hooks.mkdir()
        self.edit(0)
        (work / "hookgate.toml").write_text(f'[gateway]\nreload_ms = 10\nmax_requests = 20000\nupstream = "{upstream}"\n[hooks]\ndir = "hooks"\n')
        command = [program, "gateway", "--listen", f"127.0.0.1:{port}", "--data-dir", str(work / "data")]
        self.process = subprocess.Popen(command, cwd=work, stdout=subprocess.DEVNULL, stderr=open(self.log, "wb"))

    def edit(self, n):
        """As editors do: a new file in the place of the old."""
        new = self.hooks / ".new"
        more = {"label": f"edit{n}", "target": "chat", "regex": f"never-{n}", "actions": [{"type": "log", "message": "x"}]}
        new.write_text(json.dumps([*hooks(), more]))
        new.rename(self.hooks / "all.json")

    def loads(self):
        return self.log.read_text().count("hooks loaded again")

    def memory(self):
        """MB in use."""
        return int(re.search(r"VmRSS:\s+(\d+)", Path(f"/proc/{self.process.pid}/status").read_text())[1]) / 1024

    def stop(self):
        self.process.terminate()
        self.process.wait(20)


async def measure_open(gateway, upstream, n):
    idle = gateway.memory()
    streams = [asyncio.create_task(ask(gateway.port, "open")) for _ in range(n)]
    await asyncio.sleep(2 + n / 1000)
    used = gateway.memory()
    upstream.release.set()
    whole = [done for _, done in await asyncio.gather(*streams)]
    print(f"open     {n} streams: {used:.0f} MB (idle {idle:.0f} MB), {whole.count(True)} came whole")


async def measure_cancel(gateway, upstream, n):
    for _ in range(n):
        text, _ = await ask(gateway.port, "cancel")
        assert "rm -rf /" not in text
        while len(upstream.gone) < len(upstream.matched):
            await asyncio.sleep(0.001)
    took = [(gone - matched) * 1000 for matched, gone in zip(upstream.matched, upstream.gone)]
    print(f"cancel   {n} interrupts: median {statistics.median(took):.2f} ms, worst {max(took):.2f} ms")


async def measure_reload(gateway, n):
    stop, whole, broken = False, 0, 0

    async def stream():
        nonlocal whole, broken
        while not stop:
            text, done = await ask(gateway.port, "short")
            if done and text == "".join(f"word {n} " for n in range(20)):
                whole += 1
            else:
                broken += 1

    streams = [asyncio.create_task(stream()) for _ in range(16)]
    began = time.perf_counter()
    for edit in range(1, n + 1):
        before = gateway.loads()
        gateway.edit(edit)
        while gateway.loads() == before:
            await asyncio.sleep(0.005)
    took = time.perf_counter() - began
    stop = True
    await asyncio.gather(*streams)
    print(f"reload   {n} in {took:.0f} s: {whole} streams came whole, {broken} did not")


async def measure_clean(gateway, upstream, paths):
    text = "\n".join(path.read_text() for path in paths)
    # about as models cut: a word with the blank before it, or a part of a long one
    pieces = re.findall(r"'(?:s|t|re|ve|m|ll|d)\b| ?[A-Za-z]{1,8}| ?\d{1,3}| ?[^\sA-Za-z\d]{1,3}|\s+", text)
    assert "".join(pieces) == text
    upstream.paced = Paced(pieces)
    got, done = await ask(gateway.port, "clean", lambda text: upstream.paced.got(len(text)))
    assert done and got == text, (done, len(got), len(text))
    share = 100 * upstream.paced.at_once / len(text)
    print(f"clean    {len(text)} characters in {len(pieces)} chunks: {share:.2f} % went on with their chunk")


async def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--program", default=str(ROOT / "target/release/hookgate"))
    arguments.add_argument("--streams", type=int, default=1000)
    arguments.add_argument("--interrupts", type=int, default=100)
    arguments.add_argument("--reloads", type=int, default=1000)
    given = arguments.parse_args()
    upstream = Upstream()
    server = await asyncio.start_server(upstream.serve, "127.0.0.1", 0, backlog=4096)
    address = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    with tempfile.TemporaryDirectory() as folder:
        gateway = Gateway(str(Path(given.program).resolve()), Path(folder), address, 9140)
        try:
            while True:
                try:
                    (await asyncio.open_connection("127.0.0.1", gateway.port))[1].close()
                    break
                except ConnectionError:
                    assert gateway.process.poll() is None, gateway.log.read_text()
                    await asyncio.sleep(0.05)
            await measure_open(gateway, upstream, given.streams)
            await measure_cancel(gateway, upstream, given.interrupts)
            await measure_clean(gateway, upstream, [ROOT / "ARCHITECTURE.md", ROOT / "docs/design/gateway.md"])
            await measure_reload(gateway, given.reloads)
        finally:
            gateway.stop()
            server.close()


asyncio.run(main())
