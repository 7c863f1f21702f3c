"""Single keys from a terminal, without waiting for Enter. The terminal mode is restored at the end."""

import asyncio
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType

if sys.platform != "win32":
    import select
    import termios
    import tty

    class Keys:
        def __init__(self, descriptor: int) -> None:
            self._descriptor = descriptor
            self._before = termios.tcgetattr(descriptor)

        def __enter__(self) -> "Keys":
            tty.setcbreak(self._descriptor)
            return self

        def __exit__(
            self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
        ) -> None:
            termios.tcsetattr(self._descriptor, termios.TCSADRAIN, self._before)

        def forget(self) -> None:
            """Throw away what was typed until now."""
            termios.tcflush(self._descriptor, termios.TCIFLUSH)

        @contextmanager
        def lent(self) -> Iterator[None]:
            """Restores the terminal mode while another program uses it."""
            self.__exit__(None, None, None)
            try:
                yield
            finally:
                self.__enter__()

        async def next(self, seconds: float) -> str | None:
            """The next key, or None after so many seconds. The end of input is Ctrl-C."""
            ready: asyncio.Event = asyncio.Event()
            loop = asyncio.get_running_loop()
            loop.add_reader(self._descriptor, ready.set)
            try:
                async with asyncio.timeout(seconds):
                    await ready.wait()
            except TimeoutError:
                return None
            finally:
                loop.remove_reader(self._descriptor)
            return self._read()

        def _read(self) -> str | None:
            if not select.select([self._descriptor], [], [], 0)[0]:
                return None
            typed = os.read(self._descriptor, 64)
            if not typed:
                raise KeyboardInterrupt
            # Several bytes at once are a key such as an arrow, or pasted text: neither decides anything.
            return typed.decode("ascii", "replace") if len(typed) == 1 else ""

else:
    import msvcrt

    class Keys:
        def __init__(self, descriptor: int) -> None:
            pass

        def __enter__(self) -> "Keys":
            return self

        def __exit__(
            self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
        ) -> None:
            pass

        def forget(self) -> None:
            """Throw away what was typed until now."""
            while msvcrt.kbhit():
                msvcrt.getwch()

        @contextmanager
        def lent(self) -> Iterator[None]:
            yield

        async def next(self, seconds: float) -> str | None:
            """The next key, or None after so many seconds."""
            for _ in range(max(int(seconds / 0.05), 1)):
                if msvcrt.kbhit():
                    key = msvcrt.getwch()
                    if key == "\x03":
                        raise KeyboardInterrupt
                    return key
                await asyncio.sleep(0.05)
            return None
