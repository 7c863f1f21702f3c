"""Which of the SDK's tests are about its public behaviour: the list in `names.txt`, and the rule that made it.

A file counts if it is one of the SDK's plain unit tests (the folders and words below leave out those about other things:
providers' wire formats, sandboxes, voice, tracing, the SDK's own examples and release tools) and imports a name from
the top of the SDK or one of its public modules.

A test in such a file counts if it reads nothing private, neither itself nor in the helpers, fixtures and classes of
the SDK's tests that it uses:
- no attribute that begins with an underscore, unless it is one of `self` or `cls`, and no such name in `getattr`,
  `setattr`, `hasattr`, `delattr` or `patch.object`;
- no module of the SDK outside the list that the SDK itself keeps of its public ones (`public_modules` of its
  released API contract), unless the name taken from it is also exported at the top;
- no module of the SDK as an object, and no dotted path of one in a string: that is how tests patch its insides.
"""

import ast
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

FOLDERS = ("tests", "tests/memory")

# Files about something else, by a word in their name: the SDK's insides; tool kinds that are refused here; tracing, which
# is off here; what talks to a provider; the SDK's own examples, helpers and release tools.
LEFT_OUT = (
    "_internal", "run_impl", "run_step", "process_model_response", "tool_identity", "tool_converter", "memory_leak",
    "apply_diff", "apply_patch", "computer", "custom_tool", "shell", "native_tool", "sandbox", "image_generation",
    "trac", "provider_span", "logging", "debug", "pretty_print", "visualization",
    "compaction", "conversations_session", "test_config", "extra_headers", "openai_provider", "prompt_cache",
    "asyncio_", "change_detection", "code_change", "doc_parsing", "example", "financial", "rclone", "release",
    "repository", "run_serial", "scripted", "source_compat", "test_environment", "truthiness", "usaspending",
)  # fmt: skip

# Groups by a word in the file's name, the first that fits.
GROUPS = {
    "guardrails": ("guardrail",),
    "HITL and state": ("hitl", "approv", "run_state", "resume"),
    "streaming": ("stream", "cancel"),
    "handoffs": ("handoff", "extension_filters"),
    "sessions": ("session", "memory/"),
    "hooks": ("hook",),
    "function tools": ("tool", "function_schema", "strict_schema", "decorators"),
}


@dataclass
class Definition:
    """A module-level name of a test file: does it read something private, and which other names does it use?"""

    reads_private: bool = False
    uses: set[str] = field(default_factory=set)


class PublicNames:
    """What the SDK calls public, from the contract that its sdist carries."""

    def __init__(self, sdist: Path) -> None:
        contract = json.loads((sdist / "tests/fixtures/released_api_contract.json").read_text())
        self.modules = frozenset(contract["public_modules"])
        self.top = frozenset(contract["required_top_level_exports"])

    def has(self, module: str, name: str) -> bool:
        return name in self.top or (
            module in self.modules and not name.startswith("_") and not self.is_module(module, name)
        )

    def is_module(self, module: str, name: str) -> bool:
        return module == "agents" and name not in self.top


def group_of(name: str) -> str:
    file = name.partition("::")[0]
    return next((group for group, words in GROUPS.items() if any(word in file for word in words)), "others")


def files(sdist: Path) -> list[Path]:
    found = [path for folder in FOLDERS for path in sorted((sdist / folder).glob("test_*.py"))]
    public = PublicNames(sdist)
    return [
        path for path in found if not any(word in path.name for word in LEFT_OUT) and _is_about_the_sdk(path, public)
    ]


def _is_about_the_sdk(path: Path, public: PublicNames) -> bool:
    imports = [node for node in ast.walk(_tree(path)) if isinstance(node, ast.ImportFrom)]
    return any(public.has(node.module or "", alias.name) for node in imports for alias in node.names if not node.level)


def is_public(sdist: Path, name: str) -> bool:
    """Whether the test `file::[Class::]function[parameters]` reads nothing private."""
    file, *parts = name.partition("[")[0].split("::")
    return not _reads_private(sdist, sdist / file, parts[-1] if len(parts) == 1 else ".".join(parts), set())


def _reads_private(sdist: Path, path: Path, name: str, seen: set[tuple[Path, str]]) -> bool:
    if (path, name) in seen:
        return False
    seen.add((path, name))
    definitions, elsewhere = _definitions(sdist, path)
    if name in elsewhere:
        return _reads_private(sdist, elsewhere[name], name, seen)
    definition = definitions.get(name)
    if definition is None:
        return False
    return definition.reads_private or any(_reads_private(sdist, path, used, seen) for used in definition.uses)


@cache
def _tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


@cache
def _definitions(sdist: Path, path: Path) -> tuple[dict[str, Definition], dict[str, Path]]:
    """The names of a test file, and those that it takes from other test files."""
    public = PublicNames(sdist)
    definitions: dict[str, Definition] = {}
    elsewhere: dict[str, Path] = {}
    for node in _statements(_tree(path).body):
        if isinstance(node, ast.ImportFrom) and _test_module(sdist, path, node) is not None:
            elsewhere |= {alias.asname or alias.name: _module_or(sdist, path, node, alias.name) for alias in node.names}
        elif isinstance(node, ast.Import | ast.ImportFrom):
            definitions |= {name: Definition(private) for name, private in _imported(node, public)}
        elif isinstance(node, ast.ClassDef):
            own = [member for member in node.body if not _is_test(member)]
            shared = [_described(member, public) for member in own]
            bases = _described(ast.Module([ast.Expr(base) for base in [*node.bases, *node.decorator_list]], []), public)
            definitions[node.name] = _joined([*shared, bases])
            for member in node.body:
                if isinstance(member, ast.FunctionDef | ast.AsyncFunctionDef) and _is_test(member):
                    described = _described(member, public)
                    described.uses.add(node.name)
                    definitions[f"{node.name}.{member.name}"] = described
        else:
            for name in _bound(node):
                definitions[name] = _joined([definitions.get(name, Definition()), _described(node, public)])
    return definitions, elsewhere


def _statements(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """Module-level statements, also those below `if` and `try`."""
    for node in body:
        if isinstance(node, ast.If | ast.Try | ast.With):
            yield from _statements(node.body)
        else:
            yield node


def _test_module(sdist: Path, path: Path, node: ast.ImportFrom) -> Path | None:
    if node.level:
        folder = path.parents[node.level - 1]
    elif (node.module or "").partition(".")[0] == "tests":
        folder = sdist
    else:
        return None
    return folder.joinpath(*(node.module or "").split("."))


def _module_or(sdist: Path, path: Path, node: ast.ImportFrom, name: str) -> Path:
    module = _test_module(sdist, path, node)
    assert module is not None
    return module.with_suffix(".py") if module.with_suffix(".py").exists() else module / "__init__.py"


def _imported(node: ast.Import | ast.ImportFrom, public: PublicNames) -> Iterator[tuple[str, bool]]:
    for alias in node.names:
        name = alias.asname or alias.name.partition(".")[0]
        if isinstance(node, ast.ImportFrom):
            module = node.module or ""
            is_sdk = module.partition(".")[0] == "agents"
            yield name, is_sdk and not public.has(module, alias.name)
        else:
            yield name, alias.name.startswith("agents.")


def _is_test(node: ast.AST) -> bool:
    return isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test")


def _bound(node: ast.stmt) -> list[str]:
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        return [node.name]
    return [name.id for name in ast.walk(node) if isinstance(name, ast.Name) and isinstance(name.ctx, ast.Store)]


def _joined(parts: list[Definition]) -> Definition:
    return Definition(any(part.reads_private for part in parts), set().union(*(part.uses for part in parts)))


def _described(node: ast.AST, public: PublicNames) -> Definition:
    found = Definition()
    for part in ast.walk(node):
        match part:
            case ast.Name(id=name):
                found.uses.add(name)
            case ast.arg(arg=name):  # A fixture is used by the name of a parameter.
                found.uses.add(name)
            case ast.Attribute(value=owner, attr=name) if _is_private(name):
                found.reads_private |= not (isinstance(owner, ast.Name) and owner.id in ("self", "cls"))
            case ast.Import() | ast.ImportFrom():
                found.reads_private |= any(private for _, private in _imported(part, public))
            case ast.Constant(value=str(text)) if re.fullmatch(r"agents(\.\w+)+", text):
                found.reads_private = True
            case ast.Call(func=function, args=arguments) if _name_of(function) in _BY_NAME:
                texts = [argument.value for argument in arguments if isinstance(argument, ast.Constant)]
                found.reads_private |= any(isinstance(text, str) and _is_private(text) for text in texts)
    return found


_BY_NAME = ("getattr", "setattr", "hasattr", "delattr", "object")


def _name_of(function: ast.expr) -> str:
    return (
        function.id if isinstance(function, ast.Name) else function.attr if isinstance(function, ast.Attribute) else ""
    )


def _is_private(name: str) -> bool:
    return name.startswith("_") and not name.endswith("__")
