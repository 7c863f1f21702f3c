"""The command `openai-responses-mcp`, also as `python -m openai_responses_mcp`."""

import os
import signal
from typing import NoReturn


def entry_point() -> NoReturn:
    # An interrupt while the command line loads must not print a traceback.
    signal.signal(signal.SIGINT, lambda *_: os._exit(130))
    from openai_responses_mcp.cli import run_and_leave

    signal.signal(signal.SIGINT, signal.default_int_handler)
    run_and_leave()


if __name__ == "__main__":
    entry_point()
