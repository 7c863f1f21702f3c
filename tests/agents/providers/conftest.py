"""Nothing of the machine's own settings."""

import pytest

from tests.agents.environment import forget_providers


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    forget_providers(monkeypatch)
