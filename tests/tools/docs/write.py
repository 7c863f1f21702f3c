"""Writes what the pages take from the program: `make references`."""

from tests.tools.docs import config_tables, llms, tool_tables
from tests.tools.docs.regions import replaced
from tests.tools.docs.site import DOCS, read


def references() -> dict[str, str]:
    """Path below docs -> what should stand there: the pages that are written from settings and tools."""
    page = read(DOCS / config_tables.PAGE)
    for section in config_tables.SECTIONS:
        page = replaced(page, section, f"\n{config_tables.table_of(section)}\n")
    tools = replaced(read(DOCS / tool_tables.PAGE), tool_tables.REGION, tool_tables.tool_tables())
    return {config_tables.PAGE: page, tool_tables.PAGE: tools}


def write() -> None:
    from tests.tools.docs import guard_pictures, recording  # Here: they need a terminal as only POSIX has it.

    for path, text in references().items():
        (DOCS / path).write_text(text, encoding="utf-8")
    # After the pages, since it quotes them.
    (DOCS / llms.FILE).write_text(llms.llms_text(), encoding="utf-8")
    for path, picture in guard_pictures.pictures().items():
        (DOCS / path).write_text(picture, encoding="utf-8")
    printed = recording.answers()
    (DOCS / recording.CAST).write_text(recording.cast(printed), encoding="utf-8")
    (DOCS / recording.PICTURE).write_text(recording.picture(printed), encoding="utf-8")


if __name__ == "__main__":
    write()
