"""Keeps what follows the ? of an MCP server's address, often a key, out of what vendors write to the standard `logging`."""

import logging
from urllib.parse import urlsplit

from openai_responses_mcp.domain.masking import MASK

VENDORS = ("httpx2", "mcp.client.streamable_http")


class _QueryFilter(logging.Filter):
    def __init__(self) -> None:
        super().__init__()
        self.queries: set[str] = set()

    def filter(self, record: logging.LogRecord) -> bool:
        message = record.getMessage()
        for query in self.queries:
            if query in message:
                message = message.replace(query, MASK)
                record.msg, record.args = message, ()
        return True


_filter = _QueryFilter()


def hide_query(url: str) -> None:
    query = urlsplit(url).query
    if query:
        _filter.queries.add(query)
        for name in VENDORS:
            # Adding a filter that is there already changes nothing.
            logging.getLogger(name).addFilter(_filter)
