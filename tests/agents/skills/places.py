"""Where the skill folders of the tests lie, and how to make more."""

from pathlib import Path

FOLDERS = Path(__file__).parent / "folders"
GOOD = FOLDERS / "good"
BAD = FOLDERS / "bad"

GOOD_TEXT = "---\nname: {name}\ndescription: Does what {name} does.\n---\n\nDo it.\n"


def write_skill(folder: Path, text: str | None = None, *, name: str | None = None) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / "SKILL.md"
    file.write_text(text if text is not None else GOOD_TEXT.format(name=name or folder.name), encoding="utf-8")
    return file
