from collections.abc import Callable
from pathlib import Path

import pytest

from openai_responses_mcp.config.loading import (
    ConfigError,
    Configuration,
    Flags,
    load,
)

Load = Callable[..., Configuration]


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / ".config" / "openai-responses-mcp").mkdir(parents=True)
    return tmp_path


@pytest.fixture
def file(home: Path) -> Path:
    return home / ".config" / "openai-responses-mcp" / "config.yaml"


@pytest.fixture
def configured(home: Path, file: Path) -> Load:
    """Loads with this text as the file at the default place."""

    def configured(text: str, flags: Flags | None = None, **environ: str) -> Configuration:
        file.write_text(text, encoding="utf-8")
        return load(flags or Flags(), {"HOME": str(home), **environ})

    return configured


@pytest.fixture
def problems(configured: Load, file: Path) -> Callable[..., list[str]]:
    """The problems with this text, the path of the file cut to its name."""

    def problems(text: str, flags: Flags | None = None, **environ: str) -> list[str]:
        with pytest.raises(ConfigError) as caught:
            configured(text, flags, **environ)
        assert str(caught.value) == "\n".join(caught.value.problems)
        return [line.replace(str(file), "config.yaml") for line in caught.value.problems]

    return problems
