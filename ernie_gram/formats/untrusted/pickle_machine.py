"""An interpreter for the part of pickle that arrays and plain containers need. It can call nothing from a file.

`pickle.Unpickler` with a restricted `find_class` is not enough: its opcodes call whatever callable is on the stack, set
attributes of any object, and allocate memory for sizes that the file merely claims. Here `pickletools` splits the bytes
into opcodes, and each opcode that is not in the table below is refused. A global is a name with a function of ours that
builds an inert record; every other global is refused by name, before anything else of the file is looked at. The
interpreter is not recursive, so deep nesting is harmless.
"""

from __future__ import annotations

import pickletools
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from mmap import mmap
from typing import Any, BinaryIO

from ernie_gram.formats.untrusted.arrays import quoted

HIGHEST_PROTOCOL = 5
# An array takes about 40 operations, an operation of one byte up to 64 bytes of memory.
MAX_OPERATIONS = 2_000_000


@dataclass(frozen=True)
class Global:
    """A name that a file may refer to, and the function of ours that is used in place of what the name stands for.

    `make` takes the positional arguments that the file gives, and raises ValueError or TypeError if they are invalid.
    It is None for names that are only mentioned, such as the type of a storage.
    """

    name: str
    make: Callable[..., Any] | None = None


class Buildable(ABC):
    """A record that accepts a state after it was made (opcode BUILD)."""

    @abstractmethod
    def build(self, state: Any) -> None:
        """Set the state; raises ValueError or TypeError if it is invalid."""


class Refused(ValueError):
    """The pickle asks for something that is never done, whether the file is damaged or not."""


@dataclass
class Machine:
    """Reads pickles, one after another, and holds the state of the one that is being read.

    Attributes:
        globals: "module name" -> global; everything else is refused.
        resolve: maps a persistent ID (PyTorch's reference to a storage) to a record; None refuses persistent IDs.
    """

    globals: Mapping[str, Global]
    resolve: Callable[[Any], Any] | None = None
    stack: list[Any] = field(default_factory=list)
    marks: list[int] = field(default_factory=list)
    memo: dict[int, Any] = field(default_factory=dict)

    def load(self, file: BinaryIO | mmap) -> Any:
        """Return the object of the pickle at the current position of a file, and leave the position after it.

        Raises ValueError for everything that is not a pickle of arrays and plain containers.
        """
        self.stack, self.marks, self.memo = [], [], {}
        # genops reads, and asks for the position; memory-mapped files can do both.
        operations = pickletools.genops(file)  # type: ignore[arg-type]
        for count, (opcode, argument, position) in enumerate(operations):
            if count >= MAX_OPERATIONS:
                raise ValueError(f"has more than {MAX_OPERATIONS:,} operations; this is not a file of arrays")
            try:
                if opcode.name == "STOP":
                    return self._only_value()
                if opcode.name in VALUES:
                    self.stack.append(argument)
                elif opcode.name in OPERATIONS:
                    OPERATIONS[opcode.name](self, argument)
                else:
                    raise Refused(f"the operation {opcode.name} is not needed for arrays and is not done")
            except Refused:
                raise
            except (ValueError, TypeError, LookupError, OverflowError) as error:
                raise ValueError(f"damaged at byte {position} ({opcode.name}): {error}") from error
        raise ValueError("truncated")

    def _only_value(self) -> Any:
        if len(self.stack) != 1 or self.marks:
            raise ValueError(f"{len(self.stack)} values are left at the end")
        return self.stack.pop()

    def pop(self) -> Any:
        """Remove and return the last value, which must lie above the last mark."""
        if len(self.stack) <= (self.marks[-1] if self.marks else 0):
            raise ValueError("a value is missing")
        return self.stack.pop()

    def pop_to_mark(self) -> list[Any]:
        """Remove and return the values above the last mark."""
        if not self.marks:
            raise ValueError("a mark is missing")
        first = self.marks.pop()
        values = self.stack[first:]
        del self.stack[first:]
        return values

    def top(self, kind: type) -> Any:
        """Return the last value without removing it; raises ValueError unless it is exactly of this type."""
        value = self.pop()
        self.stack.append(value)
        if type(value) is not kind:
            raise ValueError(f"applied to a value of type {type(value).__name__}")
        return value


def _protocol(machine: Machine, number: int) -> None:
    if number > HIGHEST_PROTOCOL:
        raise ValueError(f"protocol {number} is unknown")


def _no_operation(machine: Machine, argument: Any) -> None:
    """FRAME: a hint of the size to read in advance."""


def _mark(machine: Machine, argument: None) -> None:
    machine.marks.append(len(machine.stack))


def _put(machine: Machine, index: int) -> None:
    value = machine.pop()
    machine.stack.append(value)
    machine.memo[index] = value


def _memoize(machine: Machine, argument: None) -> None:
    _put(machine, len(machine.memo))


def _get(machine: Machine, index: int) -> None:
    if index not in machine.memo:
        raise ValueError(f"refers to value {index}, which was not stored")
    machine.stack.append(machine.memo[index])


def _append(machine: Machine, argument: None) -> None:
    value = machine.pop()
    machine.top(list).append(value)


def _appends(machine: Machine, argument: None) -> None:
    values = machine.pop_to_mark()
    machine.top(list).extend(values)


def _set_item(machine: Machine, argument: None) -> None:
    value, key = machine.pop(), machine.pop()
    _set_items_of(machine, [key, value])


def _set_items(machine: Machine, argument: None) -> None:
    _set_items_of(machine, machine.pop_to_mark())


def _set_items_of(machine: Machine, values: list[Any]) -> None:
    if len(values) % 2:
        raise ValueError("a key without a value")
    target = machine.top(dict)
    for key, value in zip(values[::2], values[1::2], strict=True):
        # The hash of a nested tuple can take exponential time.
        if not isinstance(key, str):
            raise ValueError(f"a key has type {type(key).__name__}, it is not text")
        target[key] = value


def _tuple(size: int) -> Callable[[Machine, None], None]:
    def make(machine: Machine, argument: None) -> None:
        values = [machine.pop() for _ in range(size)]
        machine.stack.append(tuple(reversed(values)))

    return make


def _tuple_to_mark(machine: Machine, argument: None) -> None:
    machine.stack.append(tuple(machine.pop_to_mark()))


def _global(machine: Machine, name: str) -> None:
    if name not in machine.globals:
        raise Refused(f"refers to {quoted(name.replace(' ', '.'))}, which is not part of an array; nothing was run")
    machine.stack.append(machine.globals[name])


def _instance(machine: Machine, name: str) -> None:
    _global(machine, name)
    raise Refused("the operation INST is not needed for arrays and is not done")


def _stack_global(machine: Machine, argument: None) -> None:
    name, module = machine.pop(), machine.pop()
    if not isinstance(name, str) or not isinstance(module, str):
        raise ValueError("the name of a global is not text")
    _global(machine, f"{module} {name}")


def _reduce(machine: Machine, argument: None) -> None:
    arguments, function = machine.pop(), machine.pop()
    if not isinstance(function, Global) or function.make is None or not isinstance(arguments, tuple):
        raise ValueError("a call of something that cannot be called")
    machine.stack.append(function.make(*arguments))


def _build(machine: Machine, argument: None) -> None:
    state, target = machine.pop(), machine.pop()
    machine.stack.append(target)
    if isinstance(target, dict):
        return  # attributes of an OrderedDict: PyTorch's `_metadata`, the version of each layer
    if not isinstance(target, Buildable):
        raise ValueError(f"sets the state of a value of type {type(target).__name__}")
    target.build(state)


def _persistent_id(machine: Machine, argument: None) -> None:
    if machine.resolve is None:
        raise Refused("refers to data outside of the pickle, which this format does not have")
    machine.stack.append(machine.resolve(machine.pop()))


# Opcodes whose argument is the value. BINSTRING, of Python 2, holds bytes, which pickletools reads as Latin-1.
VALUES = frozenset(
    [
        *("BININT", "BININT1", "BININT2", "LONG1", "BINFLOAT"),
        *("BINSTRING", "SHORT_BINSTRING", "BINBYTES", "SHORT_BINBYTES", "BINBYTES8", "BYTEARRAY8"),
        *("BINUNICODE", "SHORT_BINUNICODE", "BINUNICODE8"),
    ]
)

OPERATIONS: Mapping[str, Callable[[Machine, Any], None]] = {
    "PROTO": _protocol,
    "FRAME": _no_operation,
    "MARK": _mark,
    "NONE": lambda machine, _: machine.stack.append(None),
    "NEWTRUE": lambda machine, _: machine.stack.append(True),
    "NEWFALSE": lambda machine, _: machine.stack.append(False),
    "EMPTY_DICT": lambda machine, _: machine.stack.append({}),
    "EMPTY_LIST": lambda machine, _: machine.stack.append([]),
    "EMPTY_TUPLE": _tuple(0),
    "TUPLE1": _tuple(1),
    "TUPLE2": _tuple(2),
    "TUPLE3": _tuple(3),
    "TUPLE": _tuple_to_mark,
    "APPEND": _append,
    "APPENDS": _appends,
    "SETITEM": _set_item,
    "SETITEMS": _set_items,
    "BINPUT": _put,
    "LONG_BINPUT": _put,
    "MEMOIZE": _memoize,
    "BINGET": _get,
    "LONG_BINGET": _get,
    "GLOBAL": _global,
    "INST": _instance,
    "STACK_GLOBAL": _stack_global,
    "REDUCE": _reduce,
    "BUILD": _build,
    "BINPERSID": _persistent_id,
}
