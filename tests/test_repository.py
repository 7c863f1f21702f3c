"""Rules for files that no compiler reads: registry hosts, workflows, the changelog."""

import re
import subprocess
from pathlib import Path

from openai_responses_mcp import __version__
from tests.fakes import SLOW_SECONDS

ROOT = Path(__file__).parents[1]
WORKFLOWS = sorted(ROOT.glob(".github/workflows/*.yml"))

# In pieces, so that this file does not name one either.
REGISTRY_HOSTS = [".".join(parts) for parts in (("pypi", "org"), ("pythonhosted", "org"), ("npmjs", "org"))]
REGISTRY_HOSTS += [".".join(parts) for parts in (("npmjs", "com"), ("docker", "io"), ("ghcr", "io"))]


def tracked() -> list[Path]:
    """What is or would be committed."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, timeout=SLOW_SECONDS, check=True).stdout
    return [ROOT / path for path in listed.decode().split("\0") if path and (ROOT / path).is_file()]


def name_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def test_no_file_names_the_host_of_a_package_registry() -> None:
    pattern = re.compile("|".join(map(re.escape, REGISTRY_HOSTS)).encode(), re.IGNORECASE)
    assert [name_of(path) for path in tracked() if pattern.search(path.read_bytes())] == []


def test_actions_are_pinned_by_hash_and_say_their_version() -> None:
    used = [action for workflow in WORKFLOWS for action in re.findall(r"uses: (.*)", workflow.read_text("utf-8"))]
    assert used
    assert [action for action in used if not re.fullmatch(r"[\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", action)] == []


def test_the_changelog_has_the_version_with_its_day_on_top() -> None:
    text = (ROOT / "docs" / "changelog.md").read_text("utf-8")
    headings = re.findall(r"^## \[(.*?)\](?: - (\d{4}-\d\d-\d\d))?$", text, re.MULTILINE)
    released = [heading for heading in headings if heading[0] != "Unreleased"]
    assert released[0][0] == __version__
    assert released[0][1]
    assert f"[{__version__}]: " in text
