"""The options of the guard's command line, and the name and fingerprint of the server behind it.

Most servers are started by a launcher (npx, uvx, docker). Without `--name`, the name comes from what is launched. The
fingerprint differs for another command of the same name.
"""

import os
import re
from collections.abc import Callable, Mapping, Sequence
from hashlib import sha256
from typing import Literal, NamedTuple

from openai_responses_mcp.gate.calls import GuardedServer

AskedAt = Literal["auto", "client", "desk"]


class OverHttp(NamedTuple):
    """The options for serving over HTTP, as texts: parsing them needs the extra `http`."""

    where: str
    config: str | None = None
    most_servers: int = 32
    drain: str | None = None
    tls_cert: str | None = None
    tls_key: str | None = None


class HeaderVariable(NamedTuple):
    """A header for a remote server: the value of an environment variable, after `scheme` if there is one."""

    name: str
    scheme: str
    variable: str


class GuardOptions(NamedTuple):
    """None: not given, so the policy file or the default counts. With a `url`, the command is that URL alone."""

    command: tuple[str, ...]
    name: str
    policy: str | None = None
    profile: str | None = None
    store: str | None = None
    wait_seconds: float | None = None
    observe: bool = False
    ask: AskedAt | None = None
    over_http: OverHttp | None = None
    url: str | None = None
    headers: tuple[HeaderVariable, ...] = ()


class _Launcher(NamedTuple):
    """`verbs` may come before the launched program. `values` are options that take a value."""

    verbs: frozenset[str] = frozenset()
    values: frozenset[str] = frozenset()


def _launcher(verbs: str = "", values: str = "") -> _Launcher:
    return _Launcher(frozenset(verbs.split()), frozenset(values.split()))


_NODE_PACKAGES = "-p --package -w --workspace --registry --cache --prefix --dir -C"
_PYTHON_PACKAGES = (
    "--from --with --with-editable --with-requirements --python -p --index --index-url --extra-index-url --env-file"
    " --directory --project --spec --pip-args --cache-dir"
)
_CONTAINERS = (
    "-e --env --env-file -v --volume --mount -p --publish --name --network --net -w --workdir -u --user --entrypoint -l"
    " --label --platform --pull -m --memory --cpus --add-host --hostname -h --tmpfs --cap-drop --cap-add --security-opt"
    " --gpus --runtime --dns --ulimit --shm-size --restart --log-driver"
)
_LAUNCHERS: Mapping[str, _Launcher] = {
    "npx": _launcher(values=_NODE_PACKAGES),
    "bunx": _launcher(values=_NODE_PACKAGES),
    "npm": _launcher("exec x", _NODE_PACKAGES),
    "pnpm": _launcher("dlx exec", _NODE_PACKAGES),
    "yarn": _launcher("dlx exec", _NODE_PACKAGES),
    "bun": _launcher("x run", _NODE_PACKAGES),
    "uvx": _launcher(values=_PYTHON_PACKAGES),
    "uv": _launcher("tool run", _PYTHON_PACKAGES),
    "pipx": _launcher("run", _PYTHON_PACKAGES),
    "docker": _launcher("container run", _CONTAINERS),
    "podman": _launcher("container run", _CONTAINERS),
    "python": _launcher(values="-W -X"),
    "node": _launcher(values="-r --require --import --loader --env-file -C --conditions"),
    "tsx": _launcher(),
    **dict.fromkeys(("sh", "bash", "zsh"), _launcher()),
    "go": _launcher("run"),
    "deno": _launcher("run", "--config -c --import-map --lock --cert"),
    "ruby": _launcher(values="-I -r"),
    "php": _launcher(values="-d -c"),
    "java": _launcher(values="-cp -classpath --class-path --module-path --add-modules"),
    "dotnet": _launcher("run exec"),
    "env": _launcher(values="-u --unset -C --chdir"),
    "sudo": _launcher(values="-u --user -g --group"),
    "cmd": _launcher("/c /C"),
}
_NUMBERED = re.compile(r"(python|node|ruby|php|java)w?[0-9.]*")
_INLINE_CODE = re.compile(r"-[a-zI]*c")
_ASSIGNMENT = re.compile(r"\w+=.*", re.ASCII | re.DOTALL)
_PROGRAM_ENDING = re.compile(r"\.(exe|cmd|bat)", re.IGNORECASE)
_ENDING = re.compile(r"\.(pyz?|[mc]?[jt]s|jar|rb|php|sh|dll|exe|cmd|bat)", re.IGNORECASE)


def name_of(command: Sequence[str]) -> str:
    """The name of a server without `--name`: `npx -y @scope/server-files@1 ~/notes` is `server-files`."""
    launcher = _LAUNCHERS.get(_launcher_name(command[0]))
    launched = _launched(launcher, command[1:]) if launcher else command
    if not launched:
        return _last_part(command[0], _PROGRAM_ENDING)
    if launcher and len(launched) > 1 and _launcher_name(launched[0]) in _LAUNCHERS:
        return name_of(launched)
    # Without version and tag, such as @1.2, :latest or [extra]==1.2.
    name = re.split(r"(?<=.)[@:\[=<>~!]", _last_part(launched[0]))[0]
    return _last_part(name, _ENDING)


def former_names(options: GuardOptions) -> dict[str, str]:
    """Current name -> the name that earlier versions used, which was the launcher's. Rules may still use it."""
    former = _last_part(options.command[0], _PROGRAM_ENDING)
    is_given = options.url is not None or not name_of(options.command).startswith(options.name)
    return {} if is_given or former == options.name else {options.name: former}


def guarded_server(name: str, command: Sequence[str], shown: Callable[[str], str]) -> GuardedServer:
    """`shown` replaces secrets by labels: the command is stored and shown to people."""
    resolved = [_resolved(part) for part in command]
    fingerprint = sha256("\0".join(resolved).encode("utf-8", "surrogatepass")).hexdigest()
    return GuardedServer(name, fingerprint, shown(" ".join(resolved)))


def _launched(launcher: _Launcher, words: Sequence[str]) -> Sequence[str]:
    """The launched program and its arguments. Empty if the command line does not name it."""
    rest, can_be_verb = list(words), True
    while rest:
        word = rest.pop(0)
        if word in ("-m", "-jar"):
            return rest
        if _INLINE_CODE.fullmatch(word) and word not in launcher.values:
            return ()
        if can_be_verb and word in launcher.verbs:
            continue
        if word in launcher.values:
            rest[:1] = []
        elif not word.startswith("-") and not _ASSIGNMENT.fullmatch(word):
            return [word, *rest]
        can_be_verb = word.startswith("-")
    return ()


def _launcher_name(program: str) -> str:
    base = _last_part(program, _PROGRAM_ENDING)
    numbered = _NUMBERED.fullmatch(base)
    return numbered[1] if numbered else base


def _last_part(path: str, ending: re.Pattern[str] | None = None) -> str:
    base = re.split(r"[/\\]", path.rstrip("/\\"))[-1]
    stem, dot, last = base.rpartition(".")
    return stem if ending and stem and ending.fullmatch(dot + last) else base


def _resolved(part: str) -> str:
    """Relative paths become absolute: in another folder they mean another file. Packages and other words stay."""
    is_path = part in (".", "..") or part.startswith(("./", "../", ".\\", "..\\"))
    is_file = not part.startswith("-") and not os.path.isabs(part) and os.path.exists(part)
    return os.path.abspath(part) if is_path or is_file else part


def environment_for_server(environ: Mapping[str, str], own: str | None = None) -> dict[str, str]:
    """The guard's environment without its own settings, which may hold a password. `own` names one more of them."""
    others = {name: value for name, value in environ.items() if not name.upper().startswith("AGENTS_")}
    return {name: value for name, value in others.items() if own is None or name.upper() != own.upper()}


def is_header_value(text: str) -> bool:
    return bool(text) and text.isascii() and text.isprintable() and text == text.strip()


def with_named_secrets(environ: Mapping[str, str], headers: Sequence[HeaderVariable]) -> dict[str, str]:
    """The environment, with the values of these variables also under names that mark them as secrets."""
    secrets = {f"SECRET_{one.variable.upper()}": environ.get(one.variable, "") for one in headers}
    return {**secrets, **environ}
