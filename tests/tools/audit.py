"""The supply chain: known holes in packages, risky code, secrets in the tree, and what the wheel carries.

    python -m tests.tools.audit --tools <folder with pip-audit and bandit>

The advisory check needs a service on the network. Where that cannot be asked, it is told as not made: it neither passes
nor fails, unless `--strict` says that it must be made.
"""

import argparse
import json
import math
import re
import subprocess
import sys
import zipfile
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from fnmatch import fnmatch
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from tests.tools.talking import say

ROOT = Path(__file__).resolve().parents[2]
LOCKS = ("config/lock/runtime.txt", "config/lock/team.txt", "config/lock/dev.txt")
SECONDS = 300.0
PASSED, FAILED, NOT_MADE = "passed", "FAILED", "NOT MADE"


class Check(NamedTuple):
    name: str
    state: str
    details: list[str]


def run(*command: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=SECONDS)


# Packages

# Advisories that do not concern us: their id, and why.
ACCEPTED_ADVISORIES: dict[str, str] = {}


def advisories(tools: Path, lock: str) -> Check:
    name = f"advisories for {lock}"
    options = ("--require-hashes", "--disable-pip", "--progress-spinner=off", "--format=json", "-r", lock)
    try:
        done = run(str(tools / "pip-audit"), *options)
        packages: list[dict[str, Any]] = json.loads(done.stdout)["dependencies"]
    except (subprocess.TimeoutExpired, ValueError, KeyError) as exc:
        return Check(name, NOT_MADE, [f"the advisory service could not be asked ({type(exc).__name__})"])
    unasked = [package["name"] for package in packages if "skip_reason" in package]
    found = [
        f"{package['name']} {package['version']}: {hole['id']}, mended in {', '.join(hole['fix_versions']) or 'none'}"
        for package in packages
        for hole in package.get("vulns", [])
        if hole["id"] not in ACCEPTED_ADVISORIES
    ]
    if found:
        return Check(name, FAILED, found)
    if unasked:
        return Check(
            name, NOT_MADE, [f"the advisory service knows nothing of {len(unasked)} of {len(packages)} packages"]
        )
    return Check(name, PASSED, [f"{len(packages)} packages"])


# Code


def risky_code(tools: Path) -> Check:
    """What bandit finds, unless the line says with ruff's number of the same rule why it is so."""
    done = run(str(tools / "bandit"), "-q", "-r", "src", "-f", "json")
    report = json.loads(done.stdout)
    issues: list[dict[str, Any]] = report["results"]
    unexplained = [issue for issue in issues if not _is_explained(issue)]
    found = [f"{i['filename']}:{i['line_number']}: {i['test_id']} {i['issue_text']}" for i in unexplained]
    found += [f"{error['filename']}: {error['reason']}" for error in report["errors"]]
    lines = report["metrics"]["_totals"]["loc"]
    counted = f"{lines} lines, {len(issues) - len(unexplained)} findings explained where they stand"
    return Check("risky code", FAILED if found else PASSED, found or [counted])


def _is_explained(issue: dict[str, Any]) -> bool:
    rule = issue["test_id"].replace("B", "S", 1)
    return re.search(rf"#\s*noqa:[^#]*\b{rule}\b", issue["code"]) is not None


# Secrets

_LIKELY = {
    "OpenAI key": re.compile(r"\b(?:sk|rk)-(?:proj-|svcacct-|admin-)?[A-Za-z0-9_-]{16,}"),
    "cloud key": re.compile(r"\b(?:AKIA|ASIA)[A-Z0-9]{16}\b|\bAIza[A-Za-z0-9_-]{35}\b"),
    "forge token": re.compile(r"\b(?:gh[pousr]_[A-Za-z0-9]{30,}|glpat-[A-Za-z0-9_-]{20,}|github_pat_\w{30,})"),
    "chat token": re.compile(r"\bxox[abprs]-[A-Za-z0-9-]{10,}"),
    "registry token": re.compile(r"\b(?:npm_[A-Za-z0-9]{30,}|pypi-[A-Za-z0-9_-]{30,})"),
    "private key": re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----"),
    "web token": re.compile(r"\beyJ[A-Za-z0-9_-]{10,}\.eyJ[A-Za-z0-9_-]{10,}\."),
    "address with a password": re.compile(r"\b[a-z][a-z0-9+]*://[^\s/:@'\"{}<>]+:[^\s/@'\"{}<>*$]{6,}@"),
    "assigned secret": re.compile(
        r"(?i)(?:api_?key|secret|token|passw(?:or)?d|credential)s?['\"]?\s*[:=]\s*['\"]([A-Za-z0-9+/_=.-]{20,})['\"]"
    ),
}
_LEAST_ENTROPY = 3.7

# Made-up ones say so in themselves; any other that is meant to be there stands here, with the reason.
_MADE_UP = re.compile(
    r"(?i)planted|made-?up|example|fake|dummy|rehears|never-be-seen|placeholder|not-a-real|0123456789|1234567890|abc[d_]|verysecret|"
    r"secret-?of|your|another|hunter2|pl4nted|x{6,}"
)
EXPECTED: tuple[tuple[str, str, str], ...] = (
    ("tests/**", "private key", "a key or certificate that only a test uses"),
    ("tests/**", "address with a password", "the mask is tested with addresses like this"),
)
_BINARY = {".png", ".jpg", ".gif", ".ico", ".whl", ".gz", ".zip"}
_HASHES = re.compile(r"sha(?:256|384|512)[:-][A-Za-z0-9+/=]+")


def entropy(text: str) -> float:
    counts = Counter(text).values()
    return -sum(count / len(text) * math.log2(count / len(text)) for count in counts)


def secrets_in(text: str) -> Iterator[tuple[int, str, str]]:
    """Line, kind and match of what looks like a secret."""
    for number, line in enumerate(text.splitlines(), 1):
        plain = _HASHES.sub("", line)
        for kind, pattern in _LIKELY.items():
            for match in pattern.finditer(plain):
                secret = match[match.lastindex or 0]
                is_random = kind != "assigned secret" or entropy(secret) >= _LEAST_ENTROPY
                if is_random and not _MADE_UP.search(match[0]):
                    yield number, kind, match[0]


def _is_expected(path: str, kind: str) -> bool:
    return any(fnmatch(path, pattern) and kind == expected for pattern, expected, _ in EXPECTED)


def scan(files: Iterable[tuple[str, bytes]], name: str) -> Check:
    found, count = [], 0
    for path, content in files:
        count += 1
        text = content.decode("utf-8", "replace")
        for line, kind, match in secrets_in(text):
            if not _is_expected(path, kind):
                found.append(f"{path}:{line}: {kind}, starts with {match[:12]}")
    return Check(name, FAILED if found else PASSED, found or [f"{count} files"])


def files_of_the_tree() -> Iterator[tuple[str, bytes]]:
    """Everything that is or would be committed."""
    listed = run("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard").stdout.split("\0")
    for path in filter(None, listed):
        file = ROOT / path
        if file.is_file() and file.suffix not in _BINARY and "node_modules" not in file.parts:
            yield path, file.read_bytes()


def files_of_history() -> Iterator[tuple[str, bytes]]:
    """Every line that was ever added, by the file it was added to."""
    added: dict[str, list[str]] = defaultdict(list)
    path = ""
    for line in run("git", "log", "-p", "--no-color", "--unified=0", "--all").stdout.splitlines():
        if line.startswith("+++ "):
            path = line.removeprefix("+++ ").removeprefix("b/")
        elif line.startswith("+"):
            added[path].append(line[1:])
    for path, lines in added.items():
        yield path, "\n".join(lines).encode()


# The wheel

ALLOWED = re.compile(
    r"openai_responses_mcp/(?:[\w/]+\.py|py\.typed|examples/[\w.]+\.example"
    r"|desk/page/static/\w+\.(?:css|html|js|svg))|[\w.-]+\.dist-info/[\w./]+"
)


def wheel(python: str) -> list[Check]:
    with TemporaryDirectory() as folder:
        done = run(python, "-m", "hatchling", "build", "--target", "wheel", "--directory", folder)
        built = list(Path(folder).glob("*.whl"))
        if not built:
            return [Check("the wheel", FAILED, [(done.stderr or done.stdout).strip()[-300:]])]
        with zipfile.ZipFile(built[0]) as archive:
            content = [(name, archive.read(name)) for name in archive.namelist()]
    misplaced = [name for name, _ in content if not ALLOWED.fullmatch(name)]
    contents = Check("the wheel's contents", FAILED if misplaced else PASSED, misplaced or [f"{len(content)} files"])
    return [contents, scan(content, "secrets in the wheel")]


def checks(options: argparse.Namespace) -> Iterator[Check]:
    for lock in LOCKS:
        yield advisories(options.tools, lock)
    yield risky_code(options.tools)
    yield scan(files_of_the_tree(), "secrets in the tree")
    yield scan(files_of_history(), "secrets in the history")
    yield from wheel(options.python)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tools", type=Path, required=True)
    parser.add_argument("--python", default=sys.executable, help="the interpreter that has hatchling")
    parser.add_argument("--strict", action="store_true", help="a check that could not be made fails")
    options = parser.parse_args()
    states: Counter[str] = Counter()
    for check in checks(options):
        states[check.state] += 1
        say(f"{check.name}: {check.state} ({check.details[0]})" if check.state != FAILED else f"{check.name}: {FAILED}")
        for detail in check.details if check.state == FAILED else []:
            say(f"  {detail}")
    say(f"{states[PASSED]} passed, {states[FAILED]} failed, {states[NOT_MADE]} could not be made")
    return 1 if states[FAILED] or (options.strict and states[NOT_MADE]) else 0


if __name__ == "__main__":
    sys.exit(main())
