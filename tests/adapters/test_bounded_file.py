import os
import sys
from pathlib import Path

import pytest

from openai_responses_mcp.adapters.bounded_file import read_bytes, read_text, reason_of


@pytest.mark.parametrize(
    ("limit", "words"), [(3 * 1024, "is larger than 3 KiB"), (2 * 1024 * 1024, "is larger than 2 MiB")]
)
def test_a_file_up_to_the_limit_is_read_and_a_larger_one_refused(tmp_path: Path, limit: int, words: str) -> None:
    file = tmp_path / "file"
    file.write_bytes(bytes(limit))
    assert read_bytes(str(file), most_bytes=limit) == bytes(limit)
    file.write_bytes(bytes(limit + 1))
    with pytest.raises(ValueError, match=words):
        read_bytes(str(file), most_bytes=limit)


def test_text_is_utf_8_without_its_byte_order_mark(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_bytes("\ufeff東京".encode())
    assert read_text(str(file), most_bytes=100) == "東京"
    file.write_bytes(b"\xff\xfe")
    with pytest.raises(ValueError, match="is not UTF-8 text"):
        read_text(str(file), most_bytes=100)


def test_a_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="is a directory, not a file"):
        read_bytes(str(tmp_path), most_bytes=100)


if sys.platform != "win32":

    def test_a_named_pipe_is_refused_without_waiting_for_a_writer(tmp_path: Path) -> None:
        pipe = tmp_path / "pipe"
        os.mkfifo(pipe)
        with pytest.raises(ValueError, match="is not a regular file"):
            read_bytes(str(pipe), most_bytes=100)

    def test_a_symbolic_link_is_refused_if_links_are_not_followed(tmp_path: Path) -> None:
        (tmp_path / "file").write_bytes(b"1234")
        link = tmp_path / "link"
        link.symlink_to("file")
        assert read_bytes(str(link), most_bytes=4) == b"1234"
        with pytest.raises(OSError, match="symbolic links"):
            read_bytes(str(link), most_bytes=4, follows_link=False)


def test_a_reason_ends_a_sentence_that_begins_with_the_path(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError) as missing:
        read_bytes(str(tmp_path / "missing"), most_bytes=100)
    assert reason_of(missing.value) == "cannot be read (No such file or directory)"
    assert reason_of(ValueError("is larger than 1 KiB")) == "is larger than 1 KiB"
