"""Compiled functions of a part of the work, called for all parts, on several threads.

Numba's own `parallel=True` optimises a loop alone, behind a wrapper and in its caller, which takes three to five times
as long as compiling it once. Here, a single such loop calls every function by its address. The compiler does not know
that the arrays of a function are distinct: rows.py says where that matters.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, wraps
from typing import Any

from llvmlite import ir
from numba import types
from numba.core.cgutils import alloca_once_value, create_struct_proxy, get_null_value

from reader.system.compiled import numba

Compute = Callable[[int, Any], None]
vector, matrix = numba.float32[::1], numba.float32[:, ::1]
_integer, _word = types.int64, ir.IntType(64)


@numba.extending.intrinsic
def _call(_: Any, address: int, arguments: tuple[int, ...]) -> Any:
    """Call the function of some integers at an address."""

    def generate(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        function = ir.FunctionType(ir.VoidType(), [_word] * len(arguments))
        values = [builder.extract_value(given[1], i) for i in range(len(arguments))]
        builder.call(builder.inttoptr(given[0], function.as_pointer()), values)
        return context.get_dummy_value()

    return types.void(_integer, types.UniTuple(_integer, len(arguments))), generate


@numba.extending.intrinsic
def _stored(_: Any, values: Any) -> Any:
    """Return the address of a copy of a tuple, which lasts until the calling function returns."""

    def generate(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        return builder.ptrtoint(alloca_once_value(builder, given[0]), _word)

    return _integer(values), generate


@numba.extending.intrinsic
def arguments_of(_: Any, given: Any) -> Any:
    """Return the tuple at an address. Its arrays have no owner, so that no references are counted in every row."""

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        copy = builder.load(values[0])
        for i, kind in enumerate(given.dtype):
            if isinstance(kind, types.Array):
                array = create_struct_proxy(kind)(context, builder, builder.extract_value(copy, i))
                array.meminfo = get_null_value(array.meminfo.type)
                copy = builder.insert_value(copy, array._getvalue(), i)
        return copy

    return given.dtype(given), generate


def _for_all(compute: int, parts: int, arguments: int) -> None:
    for part in numba.prange(parts):
        _call(compute, (numba.int64(part), arguments))


@cache
def _loop() -> Any:
    return numba.cfunc(types.void(*[_integer] * 3), cache=True, parallel=True)(_for_all)


def _start(loop: int, compute: int, parts: int, arguments: tuple[Any, ...]) -> None:
    _call(loop, (compute, parts, _stored(arguments)))


def in_parts(count: Callable[..., int], *kinds: Any) -> Callable[[Compute], Callable[..., None]]:
    """Return a decorator of functions of the number of a part and of `given`; arguments_of(given) has the arguments.

    The decorated function is called with these arguments, and computes all parts in any order. Nothing is compiled
    before the first call. It raises TypeError if the arguments are not of the declared types.

    Args:
        count: returns the number of parts, given the arguments. It must not depend on the number of threads.
        kinds: Numba's types of the arguments: numbers, or arrays in the order of C.
    """
    given = types.Tuple(kinds)

    def decorate(compute: Compute) -> Callable[..., None]:
        @cache
        def compiled() -> tuple[Any, Any]:
            start = numba.njit(types.void(*[_integer] * 3, given), cache=True, nogil=True)(_start)
            signature = types.void(_integer, types.CPointer(given))
            return start, numba.cfunc(signature, cache=True, error_model="numpy")(compute).address

        @wraps(compute)
        def compute_all(*arguments: Any) -> None:
            start, address = compiled()
            start(_loop().address, address, count(*arguments), arguments)

        return compute_all

    return decorate
