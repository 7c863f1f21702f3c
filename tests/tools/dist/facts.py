"""What every manifest says of the package, each thing once.

Name, version, texts and addresses come from pyproject.toml and the package itself, variables with their kinds from the
settings. Only the words for people are written here.
"""

import tomllib
from pathlib import Path
from typing import Any, NamedTuple, get_args

from openai_responses_mcp import __version__
from openai_responses_mcp.config.loading import VARIABLES
from openai_responses_mcp.config.settings import Settings, kind_at, wanted

ROOT = Path(__file__).resolve().parents[3]
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]

NAME: str = PROJECT["name"]
VERSION = __version__
DESCRIPTION: str = PROJECT["description"]
LICENSE: str = PROJECT["license"]
KEYWORDS: list[str] = PROJECT["keywords"]
AUTHOR: str = PROJECT["authors"][0]["name"]
PYTHONS: str = PROJECT["requires-python"]
REPOSITORY: str = PROJECT["urls"]["Repository"]
HOMEPAGE: str = PROJECT["urls"]["Homepage"]
ISSUES: str = PROJECT["urls"]["Issues"]

TITLE = "OpenAI Responses"
LONG_DESCRIPTION = (
    "Ask a question, get an answer with dated sources. The server asks a model through the OpenAI Responses API, with web"
    " search always on offer. It runs on your machine and needs an API key of yours."
)
ENTRY = "openai-responses"
"""What the server is called in a client's configuration."""

OWNER = REPOSITORY.split("/")[-2]
REGISTRY_NAME = f"io.github.{OWNER}/{NAME}"
"""The name in the MCP registry. README has it too: that is how the registry knows that the package agrees."""

PRIVACY_POLICIES = ["https://openai.com/policies/privacy-policy/", f"{REPOSITORY}/blob/main/docs/security.md"]

COMMAND = "uvx"
SERVE = "--stdio"
PINNED = [f"{NAME}=={VERSION}", SERVE]
"""Arguments of `uvx` in a file that has a version: it starts the version that it says."""
NEWEST = [NAME, SERVE]
"""Arguments of `uvx` in what has none and is pasted into documents, where a version would go stale."""

KEY = Settings().openai.api_key_env

_IN_WORDS = {
    KEY: "API key of the OpenAI platform.",
    "OPENAI_BASE_URL": "Where the API is.",
    "OPENAI_API_TIMEOUT": "How long one attempt may take, in milliseconds.",
    "OPENAI_MAX_RETRIES": "How often a busy or unreachable API is asked again.",
    "MODEL_ANSWER": "Which model answers.",
    "ANSWER_EFFORT": "How hard the model thinks.",
    "ANSWER_VERBOSITY": "How much the model says.",
    "MODEL_DETAILED": "Which model does research (answer_detailed); without it, the one that answers.",
    "MODEL_QUICK": "Which model does simple lookups (answer_quick); without it, the one that answers.",
    "MAX_CITATIONS": "How many sources an answer shows.",
    "SEARCH_RECENCY_DAYS": "How many days old sources may be, for calls that do not say otherwise.",
    "SEARCH_MAX_RESULTS": "How many search results are enough, for calls that do not say otherwise.",
    "DEBUG": "1 for a debug log on stderr, or the path of a file for it.",
}


class Variable(NamedTuple):
    """A variable that the server reads."""

    name: str
    words: str
    default: str | None = None
    choices: tuple[str, ...] = ()
    is_number: bool = False
    is_secret: bool = False


def variables() -> list[Variable]:
    """The key first, then those that set a key of the configuration, then the debug log."""
    configuring = [_configuring(name, path) for name, path in VARIABLES.items()]
    return [Variable(KEY, _IN_WORDS[KEY], is_secret=True), *configuring, Variable("DEBUG", _IN_WORDS["DEBUG"])]


def _configuring(name: str, path: tuple[str, ...]) -> Variable:
    kind, value = kind_at(path), _default(path)
    choices = get_args(kind) if wanted(kind).startswith("one of ") else ()
    is_number = "number" in wanted(kind)
    return Variable(name, _IN_WORDS[name], None if value is None else str(value), choices, is_number)


def _default(path: tuple[str, ...]) -> Any:
    value: Any = Settings()
    for step in path:
        value = getattr(value, step, None)
    return value
