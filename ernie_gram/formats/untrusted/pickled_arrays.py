"""The names that a pickle of numpy arrays may refer to, and the records that take their place."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ernie_gram.formats.untrusted.arrays import RawArray, quoted, view_of_bytes
from ernie_gram.formats.untrusted.pickle_machine import Buildable, Global

# Type codes of numpy, as they stand in a pickle without the byte order.
TYPE_CODES = {"f2": "float16", "f4": "float32", "f8": "float64", "b1": "bool"} | {
    f"{kind[0]}{bits // 8}": f"{kind}{bits}" for kind in ("int", "uint") for bits in (8, 16, 32, 64)
}


@dataclass
class PickledType(Buildable):
    """A numpy dtype: the name of the element type."""

    stored_as: str

    @classmethod
    def make(cls, code: Any, align: Any = False, copy: Any = True) -> PickledType:
        if not isinstance(code, str) or code.lstrip("<|=") not in TYPE_CODES:
            raise ValueError(f"arrays of type {quoted(code)} are not read")
        return cls(TYPE_CODES[code.lstrip("<|=")])

    def build(self, state: Any) -> None:
        """Accept (version, byte order, None, None, None, -1, -1, flags): no fields, no sub-arrays."""
        if not isinstance(state, tuple) or len(state) < 5 or any(part is not None for part in state[2:5]):
            raise ValueError("arrays of records are not read")
        if state[1] not in ("<", "|", "="):
            raise ValueError(f"the byte order {quoted(state[1])} is not little-endian")


@dataclass
class PickledArray(Buildable):
    """A numpy array; `raw` is None until its state was set."""

    text: LatinText
    raw: RawArray | None = None

    def build(self, state: Any) -> None:
        """Accept (version, shape, dtype, is in Fortran order, bytes)."""
        if not isinstance(state, tuple) or len(state) != 5:
            raise ValueError("the state of an array has 5 parts")
        self.set(state[4], state[2], state[1], bool(state[3]))

    def set(self, data: Any, kind: Any, shape: Any, fortran: bool = False) -> PickledArray:
        """Set bytes, type and shape; raises ValueError unless they fit. Pickles of Python 2 give the bytes as text."""
        if not isinstance(kind, PickledType):
            raise ValueError("an array without a type")
        if isinstance(data, str):
            data = self.text.encode(data, "latin1")
        if not isinstance(data, bytes | bytearray):
            raise ValueError("arrays of Python objects are not read")
        self.raw = view_of_bytes(data, kind.stored_as, shape, fortran)
        return self


@dataclass
class LatinText:
    """Makes bytes of text, and counts them: a small file could ask for the bytes of one long text again and again.

    Protocol 2 has no opcode for bytes, and stores them as text of the same code points in Latin-1.
    """

    budget: int
    spent: int = 0

    def encode(self, text: Any, encoding: Any) -> bytes:
        """Return text as bytes, in Latin-1 only; raises ValueError if the file asked for more bytes than it holds."""
        if not isinstance(text, str) or encoding not in ("latin1", "latin-1"):
            raise ValueError("the only text encoding of arrays is latin1")
        self.spent += len(text)
        if self.spent > self.budget:
            raise ValueError("asks for more bytes than the file holds")
        return text.encode("latin1")


@dataclass(frozen=True)
class ArrayMakers:
    """The functions that stand in for those of numpy, with the budget that they share."""

    text: LatinText

    def reconstruct(self, kind: Any, shape: Any, code: Any) -> PickledArray:
        """Return an array without a state."""
        if not isinstance(kind, Global) or kind.name != "numpy ndarray":
            raise ValueError("an array of an unknown class")
        return PickledArray(self.text)

    def scalar(self, kind: Any, data: Any) -> PickledArray:
        """Return a numpy scalar as an array without dimensions."""
        return PickledArray(self.text).set(data, kind, ())

    def from_buffer(self, data: Any, kind: Any, shape: Any, order: Any) -> PickledArray:
        """Return an array of protocol 5."""
        return PickledArray(self.text).set(data, kind, shape, order == "F")


def _no_bytes(*arguments: Any) -> bytes:
    if arguments:
        raise ValueError("only empty bytes are made by a call")
    return b""


def _tuple(values: Any) -> tuple:
    if not isinstance(values, tuple):
        raise ValueError("a tuple is only made of a tuple")
    return values


def _ordered_dict(pairs: Any = ()) -> dict[str, Any]:
    # Pickles of Python 2 give the items as a list of lists.
    if not isinstance(pairs, list | tuple):
        raise ValueError("an OrderedDict is made of a list of pairs")
    made: dict[str, Any] = {}
    for pair in pairs:
        if not isinstance(pair, list | tuple) or len(pair) != 2 or not isinstance(pair[0], str):
            raise ValueError("an OrderedDict is made of pairs of a text and a value")
        made[pair[0]] = pair[1]
    return made


def array_globals(file_size: int) -> dict[str, Global]:
    """Return the names that a pickle of numpy arrays in plain containers may refer to, for a file of this size.

    `numpy.core` is the package's name before numpy 2, `__builtin__` is that of `builtins` up to protocol 2.
    """
    arrays = ArrayMakers(LatinText(file_size))
    makers: dict[str, Any] = {
        "numpy ndarray": None,
        "numpy dtype": PickledType.make,
        "_codecs encode": arrays.text.encode,
        "collections OrderedDict": _ordered_dict,
    }
    for core in ("numpy.core", "numpy._core"):
        makers[f"{core}.multiarray _reconstruct"] = arrays.reconstruct
        makers[f"{core}.multiarray scalar"] = arrays.scalar
        makers[f"{core}.numeric _frombuffer"] = arrays.from_buffer
    for builtins in ("__builtin__", "builtins"):
        makers[f"{builtins} bytes"] = _no_bytes
        makers[f"{builtins} tuple"] = _tuple
    return {name: Global(name, make) for name, make in makers.items()}
