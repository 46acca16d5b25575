"""Compiled functions of a part of the work, called for all parts, on several threads.

Numba's own `parallel=True` optimises a loop alone, behind a wrapper and in its caller, which takes three to five times
as long as compiling it once. Here, a single such loop calls every function by its address. The address knows no types:
arguments are checked, and laid out as compiled code holds them.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.np.numpy_support import as_dtype

from reader.system.compiled import numba

Compute = Callable[[int, Any], None]
vector, matrix = numba.float32[::1], numba.float32[:, ::1]


@numba.extending.intrinsic
def _call(_: Any, address: int, part: int, given: int) -> Any:
    """Call the function at an address."""

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        word = ir.IntType(64)
        function = ir.FunctionType(ir.VoidType(), [word, word])
        builder.call(builder.inttoptr(values[0], function.as_pointer()), values[1:])
        return context.get_dummy_value()

    return types.void(types.int64, types.int64, types.int64), generate


@numba.njit(cache=True, nogil=True, parallel=True)
def _call_for_all(address: int, parts: int, given: int) -> None:
    for part in numba.prange(parts):
        _call(address, numba.int64(part), given)


class InParts:
    """A function to be called with arguments of fixed types, and then computed part by part in any order."""

    def __init__(self, compute: Compute, count: Callable[..., int], kinds: tuple[Any, ...]) -> None:
        """Compile `compute(part, given)` at the first call; see `in_parts`."""
        self._compute, self._count, self._kinds = compute, count, kinds
        self.__doc__ = compute.__doc__
        # Of Python's struct: as C lays out the members, which for an array are those of Numba's own structure.
        self._layout = "".join(f"{5 + 2 * kind.ndim}q" if _is_array(kind) else as_dtype(kind).char for kind in kinds)
        self._arrays = [(as_dtype(kind.dtype), kind.ndim) if _is_array(kind) else None for kind in kinds]

    @cached_property
    def _compiled(self) -> Any:
        signature = types.void(types.int64, types.CPointer(types.Tuple(self._kinds)))
        return numba.cfunc(signature, cache=True, error_model="numpy")(self._compute)

    def __call__(self, *arguments: Any) -> None:
        """Compute all parts. Raises TypeError if an argument is not of the declared type."""
        members: list[float] = []
        for array, argument in zip(self._arrays, arguments, strict=True):
            if array is None:
                members.append(argument)
                continue
            if (argument.dtype, argument.ndim) != array or not argument.flags.c_contiguous:
                raise TypeError(f"{self._compute.__name__}: an array of {argument.dtype} {argument.shape}, not {array}")
            address = argument.__array_interface__["data"][0]
            members += (0, 0, argument.size, argument.itemsize, address, *argument.shape, *argument.strides)
        given = np.frombuffer(struct.pack(self._layout, *members), np.uint8)
        _call_for_all(self._compiled.address, self._count(*arguments), given.ctypes.data)


def _is_array(kind: Any) -> bool:
    return isinstance(kind, types.Array)


def in_parts(count: Callable[..., int], *kinds: Any) -> Callable[[Compute], InParts]:
    """Return a decorator of functions of the number of a part and of `given`, where given[0] has the arguments.

    Args:
        count: returns the number of parts, given the arguments. It must not depend on the number of threads.
        kinds: Numba's types of the arguments: arrays in the order of C, or numbers.
    """
    return lambda compute: InParts(compute, count, kinds)
