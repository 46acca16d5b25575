"""Operations of Paddle programs that call a Python function."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Any, NamedTuple

import paddle
from paddle import Tensor

from ernie_gram.distributed.loading import THREADS
from ernie_gram.paddle_private import MetaTensor, Value, eager_guard, run_python
from reader.commands import interrupts_handled_by
from reader.system.compiled import numba

# Exceptions that ended an operation, and KeyboardInterrupts; see `raised_as_they_are`.
_raised: list[BaseException] = []


class Result(NamedTuple):
    """A result of an operation.

    Attributes:
        like: number of the input whose shape it has, or only the axes `axes` of it; the size of the last one is `last`.
    """

    like: int
    dtype: str = "float32"
    axes: tuple[int, ...] | None = None
    last: int | None = None


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
        compute: called with the inputs and the settings.
    """
    given = tuple(i for i, value in enumerate(inputs) if value is not None)
    definition = _definition(name, compute, len(inputs), given, results, settings)
    return run_python([value for value in inputs if value is not None], definition)


@cache
def _definition(
    name: str,
    compute: Callable[..., Any],
    count: int,
    given: tuple[int, ...],
    results: tuple[Result, ...],
    settings: tuple[object, ...],
) -> dict[str, Any]:
    """Return the definition of an operation for Paddle; of its `count` inputs, those in `given` are not None.

    Paddle knows an operation by its name, so equal names have one definition. A name that contains "_grad" would be
    taken for that of the gradient of another operation.
    """

    def run(*tensors: Tensor) -> Any:
        present = dict(zip(given, tensors, strict=True))
        with eager_guard():
            return _guarded(compute, *(present.get(i) for i in range(count)), *settings)

    def shapes(*tensors: MetaTensor) -> Any:
        found = []
        for result in results:
            shape = tensors[given.index(result.like)].shape
            shape = shape if result.axes is None else [shape[axis] for axis in result.axes]
            shape = shape if result.last is None else [*shape[:-1], result.last]
            found.append(MetaTensor(shape=shape, dtype=getattr(paddle, result.dtype)))
        return tuple(found) if len(found) > 1 else found[0]

    described = "_".join(map(str, (*given, *settings))).replace(".", "_")
    return {
        "name": f"compiled_{name}_{described}",
        "input_names": [f"input{i}" for i in given],
        "output_names": [f"result{i}" for i in range(len(results))],
        "attrs": {"infer_meta_fn_ptr": shapes, "fn_ptr": run},
    }


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
