"""The pictures of the guard are what the program shows today."""

from tests.tools.docs import guard_pictures
from tests.tools.docs.site import DOCS, read


def test_the_pictures_show_what_the_program_shows_today() -> None:
    for path, picture in guard_pictures.pictures().items():
        assert read(DOCS / path) == picture, "run `make references`"
