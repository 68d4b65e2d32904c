#!/usr/bin/env python3
"""Blocks a tool that was called more often in this session than the first argument says."""

import fcntl, hashlib, json, os, sys, tempfile

event = json.load(sys.stdin)
limit = int(sys.argv[1])
session = event.get("rootSessionId") or event["sessionId"]
name = hashlib.sha256(f"{session} {event['toolName']}".encode()).hexdigest()
folder = os.path.join(tempfile.gettempdir(), f"tool-loop-limit-{os.getuid()}")
os.makedirs(folder, mode=0o700, exist_ok=True)

with open(os.path.join(folder, name), "a+") as file:
    fcntl.flock(file, fcntl.LOCK_EX)
    file.seek(0)
    calls = int(file.read() or 0) + 1
    file.truncate(0)
    file.write(str(calls))

if calls > limit:
    print(f"{event['toolName']} was called {limit} times in this session; sum up and ask the user", file=sys.stderr)
    sys.exit(2)
