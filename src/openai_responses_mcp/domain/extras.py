"""Which command installs an extra of this package.

From the repository: until the first release no registry has the package.
"""

from typing import Literal

REPOSITORY = "git+https://github.com/uchimanajet7/openai-responses-mcp"


def install_line(extra: Literal["agents", "guard", "http", "otel", "postgres"]) -> str:
    return f'pip install "openai-responses-mcp[{extra}] @ {REPOSITORY}"'


def needs_extra(extra: Literal["agents", "guard", "http"], missing: str | None = None) -> str:
    """`missing` is the package that could not be imported."""
    because = f" ({missing} is missing)" if missing else ""
    return f'this needs the extra "{extra}"{because}: {install_line(extra)}'
