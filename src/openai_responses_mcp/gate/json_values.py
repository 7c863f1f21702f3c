"""JSON as it comes from models, tools, servers and stores, under one name.

Its form is unknown until it is checked, so it is an `object` to the type checker. So is what belongs to the SDK,
outside of the adapters: it is passed on and never looked into. What this library has written itself is read as it was
written, once its hash has been checked.
"""

from collections.abc import Mapping
from typing import Any, TypeAlias

JsonValue: TypeAlias = object
JsonObject: TypeAlias = Mapping[str, JsonValue]
OwnJson: TypeAlias = Mapping[str, Any]
