"""The ERNIE-Gram model and its pre-training. For Python code: `Model` (docs/api.md)."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from reader import __version__ as __version__

if TYPE_CHECKING:
    from ernie_gram.api import Model as Model
    from ernie_gram.api import Vectors as Vectors

_HOMES = {"Model": "ernie_gram.api", "Vectors": "ernie_gram.api"}


def __getattr__(name: str) -> Any:
    """Return a name of this package's Python interface, which is imported when it is first used."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
