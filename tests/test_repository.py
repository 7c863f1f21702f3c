"""The repository as those find it who do not read the code: its top level, its links, its workflows, its version."""

import os
import re
import subprocess
import tomllib
from pathlib import Path

from openai_responses_mcp import __version__
from tests.fakes import SLOW_SECONDS

ROOT = Path(__file__).parents[1]
PAGES = sorted([*ROOT.glob(".github/**/*.md"), *ROOT.glob("config/**/*.md")])
WORKFLOWS = sorted(ROOT.glob(".github/workflows/*.yml"))
TOP_LEVEL = {"pyproject.toml", "README.md", "LICENSE", "src", "tests", "config", "docs", "Makefile"}

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


def test_the_top_level_holds_what_it_should_and_dot_files() -> None:
    names = {name_of(path).split("/")[0] for path in tracked()}
    assert {name for name in names if not name.startswith(".")} == TOP_LEVEL


def test_no_file_names_the_host_of_a_package_registry() -> None:
    pattern = re.compile("|".join(map(re.escape, REGISTRY_HOSTS)).encode(), re.IGNORECASE)
    assert [name_of(path) for path in tracked() if pattern.search(path.read_bytes())] == []


def test_links_lead_to_files() -> None:
    for page in PAGES:
        links = re.findall(r"\]\((?!https?:)([^)#\s]+)", page.read_text("utf-8"))
        # A template is shown inside a pull request, whose address is two steps below the repository's.
        base = ROOT / "x" if page.name == "pull_request_template.md" else page.parent
        targets = [(base / link.replace("../blob/main/", "../")).resolve() for link in links]
        assert [str(target) for target in targets if not target.exists()] == [], page.name


def test_actions_are_pinned_by_hash_and_say_their_version() -> None:
    used = [action for workflow in WORKFLOWS for action in re.findall(r"uses: (.*)", workflow.read_text("utf-8"))]
    assert used
    assert [action for action in used if not re.fullmatch(r"[\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", action)] == []


def test_continuous_integration_runs_the_local_script_the_validation_and_the_site() -> None:
    remote = (ROOT / ".github" / "workflows" / "ci.yml").read_text("utf-8")
    assert "command: [.ci/run, make validate, make docs]\n" in remote
    local = (ROOT / ".ci" / "run").read_text("utf-8")
    made = {word for line in re.findall(r"^make (.+)", local, re.MULTILINE) for word in line.split()}
    assert {"test", "slow", "lint", "smoke", "clients", "browser", "sdk-tests", "schema-tests"} <= made
    assert os.access(ROOT / ".ci" / "run", os.X_OK)


def test_dependabot_looks_into_every_folder_with_something_to_update() -> None:
    text = (ROOT / ".github" / "dependabot.yml").read_text("utf-8")
    folders = re.findall(r"^ +- (/\S+)$", text, re.MULTILINE)
    locked = {f"/{name_of(path.parent)}" for path in tracked() if path.name == "package-lock.json"}
    assert set(folders) == locked


# The version


def test_the_changelog_has_the_version_with_its_day_on_top() -> None:
    text = (ROOT / "docs" / "changelog.md").read_text("utf-8")
    headings = re.findall(r"^## \[(.*?)\](?: - (\d{4}-\d\d-\d\d))?$", text, re.MULTILINE)
    released = [heading for heading in headings if heading[0] != "Unreleased"]
    assert released[0][0] == __version__
    assert released[0][1]
    assert f"[{__version__}]: " in text


def test_the_package_says_where_its_changelog_and_its_security_policy_are() -> None:
    urls = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["urls"]
    base = f"{urls['Repository']}/blob/main/"
    for name, page in (("Changelog", "docs/changelog.md"), ("Security", "docs/security.md"), ("Documentation", "docs")):
        assert urls[name].removeprefix(base).removeprefix(f"{urls['Repository']}/tree/main/") == page
        assert (ROOT / page).exists()
