"""Operations of Paddle programs that call a Python function."""

from __future__ import annotations

import ctypes
import math
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from itertools import count
from typing import Any, NamedTuple

import numpy as np
import paddle
from paddle import Tensor

from ernie_gram.distributed.loading import THREADS
from ernie_gram.paddle_private import MetaTensor, Value, eager_guard, in_memory_of, new_tensor, run_python
from reader.system.compiled import numba
from reader.system.processes import interrupts_handled_by

# Exceptions that ended an operation, and KeyboardInterrupts; see `raised_as_they_are`.
_raised: list[BaseException] = []

Shape = Sequence[int]


class Result(NamedTuple):
    """A result of an operation.

    Attributes:
        like: number of the input whose shape it has; or numbers of inputs, for each of whose elements it has a row.
        last: the size of its last axis, if it is another one.
        in_place: whether it takes the memory of the first input, which nothing may read afterwards.
    """

    like: int | tuple[int, ...]
    dtype: str = "float32"
    last: int | None = None
    in_place: bool = False

    def shape(self, shapes: Mapping[int, Shape]) -> list[int]:
        """Return its shape, given those of the inputs by number; a size that is not known is -1."""
        if isinstance(self.like, int):
            shape = [*shapes[self.like]]
        else:
            sizes = [shapes[number] for number in self.like]
            shape = [sum(map(math.prod, sizes)) if all(min(size) >= 0 for size in sizes) else -1, -1]
        return shape if self.last is None else [*shape[:-1], self.last]


# Of the operations of all programs: Paddle knows an operation by its name.
_numbers = count()


@contextmanager
def raised_as_they_are() -> Iterator[None]:
    """Raise the original exceptions of operations in the context, which Paddle replaces by SystemError.

    Ctrl-C takes effect at the end of the context: Paddle would print a traceback of the interrupted operation.
    """
    try:
        # An interrupt is not raised within an operation, unless the program has its own handler.
        with interrupts_handled_by(lambda *_: _raised.append(KeyboardInterrupt())):
            yield
    except SystemError:
        if not _raised:
            raise
    finally:
        found = _raised[:1]
        _raised.clear()
    if found:
        raise found[0] from None


def add_operation(
    name: str,
    compute: Callable[..., Any],
    inputs: Sequence[Value | None],
    results: tuple[Result, ...],
    *settings: object,
) -> list[Value]:
    """Add an operation to the current program; return its results.

    Args:
        compute: called with arrays of the inputs, None for one that is not given, arrays of the results, which it sets,
            and the settings.
    """
    given = tuple(i for i, value in enumerate(inputs) if value is not None)
    definition = _definition(name, compute, len(inputs), given, results, settings)
    return run_python([inputs[i] for i in given], definition)


@cache
def _definition(
    name: str,
    compute: Callable[..., Any],
    number: int,
    given: tuple[int, ...],
    results: tuple[Result, ...],
    settings: tuple[object, ...],
) -> dict[str, Any]:
    """Return the definition of an operation for Paddle, given the number of all inputs and those that are given.

    A name that contains "_grad" would be taken for that of the gradient of another operation.
    """

    def run(*tensors: Tensor) -> Any:
        with eager_guard():
            arrays = dict(zip(given, map(array_of, tensors), strict=True))
            shapes = {i: array.shape for i, array in arrays.items()}
            made = [
                in_memory_of(tensors[0]) if result.in_place else new_tensor(result.shape(shapes), result.dtype)
                for result in results
            ]
            _guarded(compute, *map(arrays.get, range(number)), *map(array_of, made), *settings)
            return tuple(made) if len(made) > 1 else made[0]

    def shapes(*tensors: MetaTensor) -> Any:
        known = dict(zip(given, (tensor.shape for tensor in tensors), strict=True))
        found = [MetaTensor(shape=each.shape(known), dtype=getattr(paddle, each.dtype)) for each in results]
        return tuple(found) if len(found) > 1 else found[0]

    return {
        "name": f"compiled_{name}_{next(_numbers)}",
        "input_names": [f"input{i}" for i in given],
        "output_names": [f"result{i}" for i in range(len(results))],
        "attrs": {"infer_meta_fn_ptr": shapes, "fn_ptr": run},
    }


def array_of(tensor: Tensor) -> np.ndarray:
    """Return the numbers of a tensor in main memory as an array that shares its memory."""
    assert tensor.place.is_cpu_place()
    shape, dtype = tensor.shape, _dtype(tensor.dtype)
    size = math.prod(shape) * dtype.itemsize  # `tensor.size` takes longer
    if not size:  # it may have no memory
        return np.empty(shape, dtype)
    memory: Any = (ctypes.c_char * size).from_address(tensor.data_ptr())
    memory.owner = tensor
    return np.ndarray(shape, dtype, memory)


def empty(shape: Shape, dtype: str = "float32") -> np.ndarray:
    """Return an array of any numbers, in memory that Paddle keeps for further tensors."""
    return array_of(paddle.empty(shape, dtype))


@cache
def _dtype(dtype: paddle.dtype) -> np.dtype[Any]:
    # NumPy has no bfloat16: its bits.
    return np.dtype(str(dtype).removeprefix("paddle.").replace("bfloat16", "uint16"))


def _guarded(compute: Callable[..., Any], *arguments: Any) -> Any:
    """Compute an operation with as many threads as Paddle uses."""
    # Numba keeps this number for each thread that calls it. The variable may be empty.
    numba.set_num_threads(min(max(1, int(os.environ.get(THREADS) or 1)), numba.config.NUMBA_NUM_THREADS))
    try:
        return compute(*arguments)
    except (KeyboardInterrupt, SystemExit) as error:
        # Raised by a signal handler. Paddle would print a traceback, or end the process without `finally`. The results
        # are not used: the exception is raised after the program.
        _raised.append(error)
        return compute(*arguments)
    except BaseException as error:
        _raised.append(error)
        raise
