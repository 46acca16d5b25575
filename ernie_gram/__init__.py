"""The ERNIE-Gram model and its pre-training. For Python code: `Model` (docs/api.md)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reader import __version__ as __version__
from reader import imported_late

if TYPE_CHECKING:
    from ernie_gram.api import Model as Model
    from ernie_gram.api import Vectors as Vectors

__getattr__ = imported_late(__name__, {"Model": "ernie_gram.api", "Vectors": "ernie_gram.api"})
