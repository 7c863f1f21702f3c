import os
import stat
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from openai_responses_mcp.adapters.log.line_sink import (
    MOST_WAITING_BYTES,
    ROTATE_AT_BYTES,
    Descriptor,
    Destination,
    LineSink,
    RotatingFile,
)


class GatedDestination(Destination):
    """Blocks until `may_write` is set; records what it gets."""

    def __init__(self) -> None:
        self.has_been_asked = threading.Event()
        self.may_write = threading.Event()
        self.written = bytearray()

    def write(self, data: memoryview) -> int:
        self.has_been_asked.set()
        assert self.may_write.wait(5)
        self.written += data
        return len(data)

    def close(self) -> None:
        pass


def sink_for(destination: Destination, on_first_failure: Callable[[OSError], None] = lambda _: None) -> LineSink:
    return LineSink(destination, describe_lost=lambda count: b"lost %d\n" % count, on_first_failure=on_first_failure)


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    reading, writing = os.pipe()
    yield reading, writing
    os.close(reading)
    os.close(writing)


def test_closing_ends_the_thread_and_drops_later_lines(tmp_path: Path) -> None:
    before = threading.active_count()
    sink = sink_for(RotatingFile(str(tmp_path / "log")))
    sink.put(b"before\n")
    sink.close(5)
    sink.put(b"after\n")
    assert threading.active_count() == before
    assert (tmp_path / "log").read_bytes() == b"before\n"


def test_full_sink_drops_lines_and_writes_their_count_once_drained() -> None:
    destination = GatedDestination()
    sink = sink_for(destination)
    line = b"x" * 1023 + b"\n"
    sink.put(line)
    assert destination.has_been_asked.wait(5)
    fitting = MOST_WAITING_BYTES // len(line)
    for _ in range(fitting + 7):
        sink.put(line)
    destination.may_write.set()
    sink.close(5)
    assert destination.written == line * (1 + fitting) + b"lost 7\n"


def test_line_longer_than_the_limit_is_taken_when_nothing_else_waits(tmp_path: Path) -> None:
    sink = sink_for(RotatingFile(str(tmp_path / "log")))
    line = b"x" * (MOST_WAITING_BYTES + 1) + b"\n"
    sink.put(line)
    sink.close(5)
    assert (tmp_path / "log").read_bytes() == line


def test_closing_waits_only_for_its_timeout_if_the_destination_hangs() -> None:
    destination = GatedDestination()
    sink = sink_for(destination)
    sink.put(b"a\n")
    sink.close(0.05)
    assert destination.written == b""
    destination.may_write.set()
    sink.close(5)
    assert destination.written == b"a\n"


def test_closed_reader_is_reported_once() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    failures: list[int | None] = []
    sink = sink_for(Descriptor(writing), on_first_failure=lambda exc: failures.append(exc.errno))
    for _ in range(100):
        sink.put(b"a\n")
    sink.close(5)
    os.close(writing)
    assert len(failures) == 1


def test_closed_descriptor_is_never_written_to_again(tmp_path: Path) -> None:
    reading, writing = os.pipe()
    os.close(writing)
    has_failed = threading.Event()
    sink = sink_for(Descriptor(writing), on_first_failure=lambda _: has_failed.set())
    sink.put(b"a\n")
    assert has_failed.wait(5)
    other = os.open(tmp_path / "other", os.O_WRONLY | os.O_CREAT)
    assert other == writing
    sink.put(b"b\n")
    sink.close(5)
    os.close(other)
    os.close(reading)
    assert (tmp_path / "other").read_bytes() == b""


def test_folders_are_made_and_lines_appended(tmp_path: Path) -> None:
    path = tmp_path / "a" / "b" / "log"
    for line in (b"one\n", b"two\n"):
        sink = sink_for(RotatingFile(str(path)))
        sink.put(line)
        sink.close(5)
    assert path.read_bytes() == b"one\ntwo\n"


def test_file_is_rotated_before_it_grows_too_long_and_only_one_old_one_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "log"
    file = RotatingFile(str(path))
    for letter in (b"a", b"b", b"c"):
        file.write(memoryview(letter * (ROTATE_AT_BYTES - 1) + b"\n"))
    file.close()
    assert path.read_bytes()[:1] == b"c"
    assert (tmp_path / "log.1").read_bytes()[:1] == b"b"
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["log", "log.1"]


def test_file_that_fits_exactly_is_not_rotated(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_bytes(b"a" * (ROTATE_AT_BYTES - 2))
    file = RotatingFile(str(path))
    file.write(memoryview(b"b\n"))
    assert not (tmp_path / "log.1").exists()
    file.write(memoryview(b"c\n"))
    file.close()
    assert path.read_bytes() == b"c\n"


def test_file_that_cannot_be_renamed_keeps_growing(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_bytes(b"a" * ROTATE_AT_BYTES)
    (tmp_path / "log.1").mkdir()
    file = RotatingFile(str(path))
    file.write(memoryview(b"b\n"))
    file.close()
    assert path.stat().st_size == ROTATE_AT_BYTES + 2


def test_invalid_path_is_reported_once_like_a_file_that_cannot_be_opened(tmp_path: Path) -> None:
    failures: list[OSError] = []
    sink = sink_for(RotatingFile(str(tmp_path / "bad\0path")), on_first_failure=failures.append)
    sink.put(b"a\n")
    sink.put(b"b\n")
    sink.close(5)
    assert len(failures) == 1


def test_file_that_can_be_opened_later_gets_the_count_of_lost_lines(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.mkdir()
    has_failed = threading.Event()
    sink = sink_for(RotatingFile(str(path)), on_first_failure=lambda _: has_failed.set())
    sink.put(b"a\n")
    assert has_failed.wait(5)
    path.rmdir()
    sink.put(b"b\n")
    sink.close(5)
    assert path.read_bytes() == b"lost 1\nb\n"


# These need file modes, renaming of open files, and process limits.
if sys.platform != "win32":
    import resource

    def test_new_file_is_readable_by_its_owner_only(tmp_path: Path) -> None:
        path = tmp_path / "log"
        usual_mask = os.umask(0)
        try:
            file = RotatingFile(str(path))
            file.write(memoryview(b"a\n"))
            file.close()
        finally:
            os.umask(usual_mask)
        assert stat.S_IMODE(path.stat().st_mode) == 0o600

    def test_existing_file_becomes_readable_by_its_owner_only(tmp_path: Path) -> None:
        path = tmp_path / "log"
        path.write_bytes(b"")
        path.chmod(0o666)
        file = RotatingFile(str(path))
        file.write(memoryview(b"a\n"))
        file.close()
        assert stat.S_IMODE(path.stat().st_mode) == 0o600

    def test_two_servers_with_one_file_rotate_it_once(tmp_path: Path) -> None:
        path = tmp_path / "log"
        one, other = RotatingFile(str(path)), RotatingFile(str(path))
        one.write(memoryview(b"a" * (ROTATE_AT_BYTES - 1) + b"\n"))
        other.write(memoryview(b"b\n"))
        one.write(memoryview(b"c\n"))
        other.write(memoryview(b"d\n"))
        one.close()
        other.close()
        assert path.read_bytes() == b"b\nc\nd\n"
        assert (tmp_path / "log.1").stat().st_size == ROTATE_AT_BYTES

    def test_named_pipe_is_written_to_and_keeps_its_mode(tmp_path: Path) -> None:
        path = tmp_path / "pipe"
        os.mkfifo(path)
        path.chmod(0o640)
        reading = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
        sink = sink_for(RotatingFile(str(path)))
        sink.put(b"a\n")
        sink.close(5)
        assert os.read(reading, 100) == b"a\n"
        os.close(reading)
        assert stat.S_IMODE(path.stat().st_mode) == 0o640

    def test_line_cut_by_a_full_disk_is_terminated_once_there_is_room(tmp_path: Path) -> None:
        path = tmp_path / "log"
        has_failed = threading.Event()
        sink = sink_for(RotatingFile(str(path)), on_first_failure=lambda _: has_failed.set())
        usual_limits = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (10, usual_limits[1]))
        try:
            sink.put(b"1234567\n")
            sink.put(b"abcdefg\n")
            assert has_failed.wait(5)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, usual_limits)
        sink.put(b"h\n")
        sink.close(5)
        assert path.read_bytes() == b"1234567\nab\nlost 1\nh\n"

    def test_pipe_made_non_blocking_by_others_still_gets_every_line(pipe: tuple[int, int]) -> None:
        reading, writing = pipe
        os.set_blocking(writing, False)
        sink = sink_for(Descriptor(writing))
        line = b"x" * 1023 + b"\n"
        for _ in range(1000):
            sink.put(line)
        received = 0
        while received < 1000 * len(line):
            received += len(os.read(reading, 65536))
        sink.close(5)
        assert received == 1000 * len(line)


if sys.platform == "linux":

    def test_sink_that_cannot_start_its_thread_counts_lines_as_lost(tmp_path: Path) -> None:
        sink = sink_for(RotatingFile(str(tmp_path / "log")))
        usual_size = threading.stack_size(2**46)  # More than any machine has.
        try:
            sink.put(b"a\n")
        finally:
            threading.stack_size(usual_size)
        sink.put(b"b\n")
        sink.close(5)
        assert (tmp_path / "log").read_bytes() == b"lost 2\n"
