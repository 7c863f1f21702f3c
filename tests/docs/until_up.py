"""Starts a command that never ends by itself, and ends it: a server once its address answers, `watch` once it prints."""

import os
import pty
import re
import select
import signal
import ssl
import subprocess
import sys
import time
import urllib.error
import urllib.request

WAIT_SECONDS = 60.0
ADDRESS = re.compile(rb"https?://[^\s/\"]+")


def main(command: list[str]) -> None:
    if "watch" in command:
        watch(command)
    else:
        serve(command)


def watch(command: list[str]) -> None:
    """On a terminal, until it prints something; then Ctrl-C."""
    ours, theirs = pty.openpty()
    with subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True) as watching:
        os.close(theirs)
        try:
            assert select.select([ours], [], [], WAIT_SECONDS)[0], "nothing is shown"
            assert os.read(ours, 4096)
            watching.send_signal(signal.SIGINT)
            code = watching.wait(WAIT_SECONDS)
        except BaseException:
            watching.kill()
            raise
    assert code in (0, 128 + signal.SIGINT), f"{command} ended with {code}"


def serve(command: list[str]) -> None:
    with subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    ) as server:
        try:
            address = address_of(server)
            if "--http" in command:  # It may print its public address, that of a proxy.
                port = command[command.index("--http") + 1].rpartition(":")[2]
                address = f"{'https' if '--tls-cert' in command else 'http'}://127.0.0.1:{port}"
            assert answers(address), address
            server.send_signal(signal.SIGTERM)
            code = server.wait(WAIT_SECONDS)
        except BaseException:
            server.kill()
            raise
    assert code in (0, 128 + signal.SIGTERM), f"{command} ended with {code}"


def address_of(server: "subprocess.Popen[bytes]") -> str:
    assert server.stdout is not None
    printed = b""
    end = time.monotonic() + WAIT_SECONDS
    while not (found := ADDRESS.search(printed)):
        if not select.select([server.stdout], [], [], max(0, end - time.monotonic()))[0]:
            raise SystemExit(f"no address within {WAIT_SECONDS:.0f} s: {printed.decode()}")
        piece = os.read(server.stdout.fileno(), 4096)
        if not piece:
            raise SystemExit(f"it ended: {printed.decode()}")
        printed += piece
    return found[0].decode()


def answers(address: str) -> bool:
    """True if an HTTP server is there, whatever the status."""
    # The certificate was made for this test.
    trusting = ssl.create_default_context()
    trusting.check_hostname, trusting.verify_mode = False, ssl.CERT_NONE
    try:
        urllib.request.urlopen(address, timeout=WAIT_SECONDS, context=trusting).close()
    except urllib.error.HTTPError:
        return True
    return True


if __name__ == "__main__":
    main(sys.argv[1:])
