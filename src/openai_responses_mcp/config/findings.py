"""What is found wrong or odd on the way to a configuration, and the lines that say so.

Lines are made at the end, when it is known what they must not show.
"""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from openai_responses_mcp.config.settings import Settings, wanted
from openai_responses_mcp.domain.texts import one_line

_LONGEST_SHOWN_VALUE = 60


class ConfigFinding(NamedTuple):
    """A problem or a warning; `found` holds the value that is wrong, if there is one to show."""

    text: str
    found: tuple[Any, ...] = ()


class Findings:
    def __init__(self) -> None:
        self.problems: list[ConfigFinding] = []
        self.warnings: list[ConfigFinding] = []

    def problem(self, text: str, *found: Any) -> None:
        self.problems.append(ConfigFinding(text, found))

    def warning(self, text: str) -> None:
        self.warnings.append(ConfigFinding(text))

    def misfit(self, name: str, kind: Any, found: Any) -> None:
        """The one form of a message about a wrong value, wherever it comes from."""
        self.problem(f"{name} must be {wanted(kind)}", found)


def finding_lines(
    findings: list[ConfigFinding], environ: Mapping[str, str], key_variable: str, settings: Settings
) -> tuple[str, ...]:
    if not findings:
        return ()
    mask = mask_for(environ, key_variable, settings)
    return tuple(_line(finding, mask) for finding in findings)


def _line(finding: ConfigFinding, mask: Callable[[str], str]) -> str:
    text = mask(finding.text) + "".join(f" (found {_shown(value, mask)})" for value in finding.found)
    return one_line(text)


def _shown(value: Any, mask: Callable[[str], str]) -> str:
    """Masked before it is cut, so that no half of a key is left over; nested data could hide one and is not shown."""
    import json

    items = value if isinstance(value, list) else [value]
    if any(isinstance(item, dict | list) for item in items):
        return "a list" if isinstance(value, list) else "a mapping"
    text = mask(json.dumps(value, ensure_ascii=False))
    return text if len(text) <= _LONGEST_SHOWN_VALUE else text[:_LONGEST_SHOWN_VALUE] + "..."


def mask_for(environ: Mapping[str, str], key_variable: str, settings: Settings) -> Callable[[str], str]:
    from openai_responses_mcp.domain.masking import SecretMask, secrets_in

    return SecretMask(secrets_in(environ, key_variable=key_variable, base_url=settings.openai.base_url))
