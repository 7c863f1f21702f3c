"""Which command installs an extra of this package.

From the repository: until the first release no registry has the package.
"""

import os
import sys
from typing import Literal

from openai_responses_mcp.domain.texts import Sentence

REPOSITORY = "git+https://github.com/uchimanajet7/openai-responses-mcp"


def is_run_by_uvx(executable: str = sys.executable) -> bool:
    """uvx runs from its cache, which is emptied now and then, and where nothing can be installed."""
    return {"uv", "archive-v0"} <= {*os.path.dirname(executable).replace("\\", "/").split("/")}


def install_line(
    extra: Literal["agents", "guard", "http", "otel", "postgres"], executable: str = sys.executable
) -> str:
    """A command that works today, for the way in which this program was started."""
    wanted = f'"openai-responses-mcp[{extra}] @ {REPOSITORY}"'
    return f"uvx --from {wanted} openai-responses-mcp" if is_run_by_uvx(executable) else f"pip install {wanted}"


def needs_extra(extra: Literal["agents", "guard", "http"], missing: str | None = None) -> str:
    """`missing` is the package that could not be imported."""
    because = Sentence(" ({missing} is missing)", missing=missing) if missing else ""
    return Sentence(
        'this needs the extra "{extra}"{because}: {command}',
        extra=extra,
        because=because,
        command=install_line(extra),
    )
