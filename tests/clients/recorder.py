"""Stands between a client and the server that it starts: passes every line on, and writes down every message.

    python recorder.py FOLDER COMMAND...

A client that starts the server twice (some probe with a process of their own) leaves two recordings: each is called
by the number of the server's process. A record is one line of JSON: `{"pid": …}` first, then `{"from": "client"}` or
`{"from": "server"}` with the `line`, and `{"exit": …}` last. Nothing but the standard library, to start quickly.
"""

import json
import os
import signal
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path
from typing import IO, Any


class Recording:
    def __init__(self, path: Path) -> None:
        self._file = path.open("a", encoding="utf-8")
        self._lock = threading.Lock()

    def note(self, **record: Any) -> None:
        with self._lock:
            self._file.write(json.dumps(record) + "\n")
            self._file.flush()


def pass_on(source: IO[bytes], target: IO[bytes], sender: str, recording: Recording) -> None:
    """Until the source ends or the target is gone; written down first, so that a reply never stands before its request."""
    with suppress(BrokenPipeError), target:
        while line := source.readline():
            recording.note(**{"from": sender}, line=line.decode(errors="replace"))
            target.write(line)
            target.flush()


def main(folder: str, *command: str) -> int:
    server = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert server.stdin is not None
    assert server.stdout is not None
    signal.signal(signal.SIGTERM, lambda number, frame: server.send_signal(number))
    recording = Recording(Path(folder, f"{server.pid}.jsonl"))
    recording.note(pid=server.pid)
    to_server = (sys.stdin.buffer, server.stdin, "client", recording)
    to_client = threading.Thread(target=pass_on, args=(server.stdout, sys.stdout.buffer, "server", recording))
    threading.Thread(target=pass_on, args=to_server, daemon=True).start()
    to_client.start()
    code = server.wait()
    to_client.join()
    recording.note(exit=code)
    return code if code >= 0 else 128 - code


if __name__ == "__main__":
    # The thread that reads stdin may still wait there; an ordinary end would wait for its lock.
    os._exit(main(*sys.argv[1:]))
