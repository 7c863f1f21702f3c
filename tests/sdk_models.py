"""The models that the installed SDK lists, and those that it notes as ending or never served."""

import inspect
import re
from typing import get_args

from openai.types.shared import chat_model

LISTED: frozenset[str] = frozenset(get_args(chat_model.ChatModel))


def _noted() -> frozenset[str]:
    """The note is the text below the list: ids in quotes, each group with the day of its end."""
    _, _, note = inspect.getsource(chat_model).partition('"""Deprecated values:')
    return frozenset(re.findall(r'"([^"\s]+)"', note))


ENDING: frozenset[str] = _noted()
