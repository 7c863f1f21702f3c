"""AGENTS_LOG_LEVEL: how much this library says through the standard `logging`, under the name `openai_responses_mcp.agents`."""

import logging
from collections.abc import Mapping

from openai_responses_mcp.gate.errors import AgentsError

VARIABLE = "AGENTS_LOG_LEVEL"
LEVELS = {"debug": logging.DEBUG, "info": logging.INFO, "warning": logging.WARNING, "error": logging.ERROR}


def apply_log_level(environ: Mapping[str, str]) -> None:
    """Without the variable nothing changes. With it, lines go to stderr unless the program has set up logging."""
    written = environ.get(VARIABLE, "").strip().lower()
    if not written:
        return
    if written not in LEVELS:
        raise AgentsError("AGENTS-E-RUNNER-CONFIG", f"{VARIABLE} is one of {', '.join(LEVELS)}")
    logger = logging.getLogger("openai_responses_mcp.agents")
    logger.setLevel(LEVELS[written])
    if not logger.hasHandlers():
        logger.addHandler(logging.StreamHandler())
