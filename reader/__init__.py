"""Turn text into an n-gram lexicon, a corpus of units, and masked batches. This package is independent of any model.

`Lexicon`, `Corpus` and `Tokenizer` are for Python code (docs/api.md).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from reader.corpus.memmap import Corpus as Corpus
    from reader.errors import InputError as InputError
    from reader.lexicon.lexicon_file import Lexicon as Lexicon
    from reader.tokenization.tokenizer import Tokenizer as Tokenizer
    from reader.tokenization.vocabulary_file import load_vocabulary as load_vocabulary

# The version of the project; setup.py reads it here.
__version__ = "0.2.0"
_HOMES = {
    "Corpus": "reader.corpus.memmap",
    "InputError": "reader.errors",
    "Lexicon": "reader.lexicon.lexicon_file",
    "Tokenizer": "reader.tokenization.tokenizer",
    "load_vocabulary": "reader.tokenization.vocabulary_file",
}


def imported_late(package: str, homes: Mapping[str, str]) -> Callable[[str], Any]:
    """Return the `__getattr__` of a package: a name of its Python interface is imported when it is first used.

    `homes` has the module of each name.
    """

    def find(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(import_module(homes[name]), name)

    return find


__getattr__ = imported_late(__name__, _HOMES)
