"""Everything that tells a registry or a client how to install the server, from one source.

    python -m tests.tools.dist.manifests

`files` maps the path of each file to its text. What comes from where is in `facts`. Files stand under config/dist, but
for the three catalogues that clients look for at the root of a repository.
"""

import json
import sys
from base64 import b64encode
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlencode

from openai_responses_mcp.config.settings import Settings
from openai_responses_mcp.server.tools import TOOLS
from tests.tools.dist import facts
from tests.tools.dist.container_image import caddyfile, compose, dockerfile, dockerignore
from tests.tools.dist.facts import ENTRY, KEY, NAME, ROOT, VERSION, Variable

Json = dict[str, Any]

REGISTRY_SCHEMA = "https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json"
PATIENCE_SECONDS = 600
"""The timeout of a tool, for clients that have such a setting: research takes minutes."""

_IDENTITY: Json = {"name": NAME, "version": VERSION, "description": facts.DESCRIPTION}
_ORIGIN: Json = {"homepage": facts.HOMEPAGE, "repository": facts.REPOSITORY, "license": facts.LICENSE}


def files() -> dict[str, str]:
    """Path below the root -> text."""
    documents = dict(_documents())
    texts = {path: json.dumps(document, indent=2, ensure_ascii=False) + "\n" for path, document in documents.items()}
    return texts | {
        "config/dist/cursor/install-links.txt": "".join(f"{link}\n" for link in cursor_links()),
        "config/dist/mcpb/pyproject.toml": _bundle_project(),
        "config/dist/mcpb/server.py": _BUNDLE_SERVER,
        "config/dist/Dockerfile": dockerfile(),
        "config/dist/Dockerfile.dockerignore": dockerignore(),
        "config/dist/compose.yaml": compose(),
        "config/dist/Caddyfile": caddyfile(),
    }


def _documents() -> Iterator[tuple[str, Json]]:
    yield "config/dist/server.json", registry_entry()
    yield "config/dist/mcpb/manifest.json", bundle()
    yield ".claude-plugin/marketplace.json", claude_marketplace()
    yield "config/dist/claude-code/.claude-plugin/plugin.json", plugin()
    yield "config/dist/claude-code/.mcp.json", servers(env={KEY: f"${{{KEY}}}"})
    yield ".agents/plugins/marketplace.json", codex_marketplace()
    yield "config/dist/codex/.codex-plugin/plugin.json", codex_plugin()
    yield "config/dist/codex/.mcp.json", servers(env_vars=[KEY], tool_timeout_sec=PATIENCE_SECONDS)
    yield ".cursor-plugin/marketplace.json", cursor_marketplace()
    yield "config/dist/cursor/.cursor-plugin/plugin.json", plugin() | {"displayName": facts.TITLE}
    yield "config/dist/cursor/mcp.json", servers(type="stdio", env=_CURSOR_KEY)
    yield "config/dist/gemini/gemini-extension.json", gemini_extension()


# The MCP registry


def registry_entry() -> Json:
    package = {
        "registryType": "pypi",
        "identifier": NAME,
        "version": VERSION,
        "runtimeHint": facts.COMMAND,
        "transport": {"type": "stdio"},
        "packageArguments": [
            {"type": "positional", "value": facts.SERVE, "description": "Serve a client over stdin and stdout."}
        ],
        "environmentVariables": [_registry_variable(variable) for variable in facts.variables()],
    }
    return {
        "$schema": REGISTRY_SCHEMA,
        "name": facts.REGISTRY_NAME,
        "title": facts.TITLE,
        "description": facts.DESCRIPTION,
        "version": VERSION,
        "websiteUrl": facts.HOMEPAGE,
        "repository": {"url": facts.REPOSITORY, "source": "github"},
        "packages": [package],
    }


def _registry_variable(variable: Variable) -> Json:
    # A default would be set as the variable, and win over the user's configuration file. So it is only shown.
    described: Json = {"name": variable.name, "description": variable.words}
    described |= {"isRequired": True, "isSecret": True} if variable.is_secret else {}
    described |= {"format": "number"} if variable.is_number else {}
    described |= {"choices": list(variable.choices)} if variable.choices else {}
    return described | ({"placeholder": variable.default} if variable.default else {})


# Claude Desktop: an .mcpb bundle


def bundle() -> Json:
    command = ["run", "--directory", "${__dirname}", "server.py", facts.SERVE]
    return {
        "manifest_version": "0.4",
        **_IDENTITY,
        "display_name": facts.TITLE,
        "long_description": facts.LONG_DESCRIPTION,
        "author": {"name": facts.AUTHOR, "url": facts.REPOSITORY},
        "repository": {"type": "git", "url": facts.REPOSITORY},
        "homepage": facts.HOMEPAGE,
        "documentation": f"{facts.REPOSITORY}/blob/main/docs/reference/clients.md",
        "support": facts.ISSUES,
        "license": facts.LICENSE,
        "keywords": facts.KEYWORDS,
        "privacy_policies": facts.PRIVACY_POLICIES,
        "server": {
            "type": "uv",
            "entry_point": "server.py",
            "mcp_config": {"command": "uv", "args": command, "env": {KEY: "${user_config.openai_api_key}"}},
        },
        "tools": [{"name": name, "description": TOOLS[name].description} for name in Settings().server.tools],
        "user_config": {
            "openai_api_key": {
                "type": "string",
                "title": "OpenAI API key",
                "description": facts.variables()[0].words,
                "sensitive": True,
                "required": True,
            }
        },
        "compatibility": {"platforms": ["darwin", "win32", "linux"], "runtimes": {"python": facts.PYTHONS}},
    }


def _bundle_project() -> str:
    return f"""\
# What uv installs for the bundle. There is nothing to build.
[project]
name = "{NAME}-bundle"
version = "{VERSION}"
requires-python = "{facts.PYTHONS}"
dependencies = ["{NAME}=={VERSION}"]

[tool.uv]
package = false
"""


_BUNDLE_SERVER = """\
from openai_responses_mcp.__main__ import entry_point

entry_point()
"""


# Plugins of Claude Code, Codex and Cursor


def plugin() -> Json:
    return {**_IDENTITY, "author": {"name": facts.AUTHOR}, **_ORIGIN, "keywords": facts.KEYWORDS}


def servers(**more: Any) -> Json:
    """The one entry of a client's `mcpServers`, with what this client needs besides."""
    return {"mcpServers": {ENTRY: {"command": facts.COMMAND, "args": facts.PINNED, **more}}}


def claude_marketplace() -> Json:
    return {
        "$schema": "https://anthropic.com/claude-code/marketplace.schema.json",
        "name": NAME,
        "description": facts.DESCRIPTION,
        "owner": {"name": facts.AUTHOR},
        "plugins": [{**_IDENTITY, "source": "./config/dist/claude-code", "category": "productivity"}],
    }


def codex_plugin() -> Json:
    return {
        **plugin(),
        "mcpServers": "./.mcp.json",
        "interface": {
            "displayName": facts.TITLE,
            "shortDescription": "Answers with dated sources",
            "longDescription": facts.LONG_DESCRIPTION,
            "developerName": facts.AUTHOR,
            "category": "Productivity",
            "capabilities": ["Read"],
            "websiteURL": facts.HOMEPAGE,
            "privacyPolicyURL": facts.PRIVACY_POLICIES[0],
        },
    }


def codex_marketplace() -> Json:
    return {
        "name": NAME,
        "interface": {"displayName": facts.TITLE},
        "plugins": [
            {
                "name": NAME,
                "source": {"source": "local", "path": "./config/dist/codex"},
                "policy": {"installation": "AVAILABLE", "authentication": "ON_INSTALL"},
                "category": "Productivity",
            }
        ],
    }


def cursor_marketplace() -> Json:
    return {
        "name": NAME,
        "owner": {"name": facts.AUTHOR},
        "metadata": {"description": facts.DESCRIPTION, "version": VERSION},
        "plugins": [{"name": NAME, "source": "./config/dist/cursor", "description": facts.DESCRIPTION}],
    }


_CURSOR_KEY = {KEY: f"${{env:{KEY}}}"}


def cursor_links() -> tuple[str, str]:
    """Links that install the server in Cursor: one that the system opens, and one for pages that allow only https."""
    entry = {"command": facts.COMMAND, "args": facts.NEWEST, "env": _CURSOR_KEY}
    config = b64encode(json.dumps(entry, separators=(",", ":")).encode()).decode()
    query = urlencode({"name": ENTRY, "config": config})
    return (
        f"cursor://anysphere.cursor-deeplink/mcp/install?{query}",
        f"https://cursor.com/en/install-mcp?{query}",
    )


# Gemini CLI


def gemini_extension() -> Json:
    key = facts.variables()[0]
    return {
        **_IDENTITY,
        **servers(env={KEY: f"${KEY}"}, timeout=PATIENCE_SECONDS * 1000),
        "settings": [{"name": "OpenAI API key", "description": key.words, "envVar": KEY, "sensitive": True}],
    }


def stale() -> list[str]:
    """The paths whose file is missing or differs from what would be written."""
    texts = files().items()
    return [path for path, text in texts if not (ROOT / path).is_file() or (ROOT / path).read_text("utf-8") != text]


def main() -> None:
    changing = stale()
    for path in changing:
        (ROOT / path).parent.mkdir(parents=True, exist_ok=True)
        (ROOT / path).write_text(files()[path], "utf-8", newline="\n")
    sys.stdout.write("".join(f"wrote {path}\n" for path in changing) or "every manifest is as it should be\n")


if __name__ == "__main__":
    main()
