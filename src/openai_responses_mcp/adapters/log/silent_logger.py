"""A logger that writes nothing, for a process whose stderr belongs to another server."""

from openai_responses_mcp.domain.ports import Logger


class SilentLogger(Logger):
    @property
    def is_debugging(self) -> bool:
        return False

    def debug(self, event: str, **facts: object) -> None:
        pass

    def warning(self, event: str, **facts: object) -> None:
        pass

    def error(self, event: str, **facts: object) -> None:
        pass
