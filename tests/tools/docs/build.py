"""Builds the site from docs/ into dist/site, strictly: `make docs`. Pages in Japanese say so to browsers."""

import subprocess
import sys
from pathlib import Path

from tests.tools.docs.site import CONFIGURATION, ROOT

SITE = ROOT / "dist" / "site"


def build(program: Path) -> None:
    subprocess.run([program, "build", "--config-file", CONFIGURATION, "--clean", "--strict"], cwd=ROOT, check=True)
    for page in SITE.rglob("*.ja.html"):
        text = page.read_text(encoding="utf-8")
        assert text.count('<html lang="en"') == 1, f"{page} does not name its language as it used to"
        page.write_text(text.replace('<html lang="en"', '<html lang="ja"'), encoding="utf-8")


if __name__ == "__main__":
    build(Path(sys.argv[1]))
