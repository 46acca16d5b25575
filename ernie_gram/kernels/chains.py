"""Join operations of this project that follow one another into one, in a finished program without gradients.

Paddle takes some 0.1 ms to call an operation written in Python, as long as a small one computes. An encoder is a chain
of them, with changes of shape in between, so all its layers become one operation. It calls the same functions in the
same order, with memory that is kept for the next call, so the results have the same bits.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Collection, Iterator, Sequence
from itertools import count
from typing import Any, NamedTuple

import numpy as np
import paddle

from ernie_gram.kernels.custom_operations import Definition, Shape, add_operation, definition_of
from ernie_gram.paddle_private import Operation, Value, insert_before

# The order of additions in MKL's products depends on the alignment.
_ALIGNMENT = 64
_VIEWS = ("pd_op.reshape", "pd_op.unsqueeze")
_numbers = count()
# Of each thread: memory for results within chains, of which only one is computed at a time.
_kept = threading.local()


class _Step(NamedTuple):
    """An operation of a chain, or a change of shape, with `definition` None.

    Attributes:
        inputs: numbers of values of the chain, None for one that is not given.
        outputs: numbers of the results among its values.
        places: of each result, the number of the chain's result whose memory it has, or -1 - n for kept memory n, or
            None for that of the first input.
        change: shape -> shape.
    """

    definition: Definition | None
    inputs: tuple[int | None, ...]
    outputs: tuple[int, ...]
    places: tuple[int | None, ...]
    change: Callable[[Shape], list[int]] | None = None


class _Chain:
    """What a joined operation computes; its values are those of its inputs, then the results of its steps."""

    def __init__(self, inputs: int, steps: Sequence[_Step]) -> None:
        self.inputs, self._steps = inputs, steps
        self._size = 1 + max(number for step in steps for number in step.outputs)

    def shapes(self, given: Sequence[Shape]) -> list[Shape]:
        """Return the shapes of all values, given those of the inputs; a size that is not known is -1."""
        shapes: list[Shape] = [*given, *[()] * (self._size - self.inputs)]
        for step in self._steps:
            read: list[Any] = [None if number is None else shapes[number] for number in step.inputs]
            for i, number in enumerate(step.outputs):
                if step.definition is None:
                    assert step.change is not None
                    shapes[number] = step.change(read[0])
                else:
                    shapes[number] = step.definition.results[i].shape(read)
        return shapes

    def __call__(self, *arrays: np.ndarray) -> None:
        """Compute all steps.

        Args:
            arrays: of the inputs, then of the results.
        """
        given, results = arrays[: self.inputs], arrays[self.inputs :]
        shapes = self.shapes([array.shape for array in given])
        values: list[Any] = [*given, *[None] * (self._size - self.inputs)]
        for definition, inputs, outputs, places, _ in self._steps:
            read: list[Any] = [None if number is None else values[number] for number in inputs]
            for i, (number, place) in enumerate(zip(outputs, places, strict=True)):
                if place is None:
                    values[number] = read[0].reshape(shapes[number])
                elif place >= 0:
                    values[number] = results[place]
                    if definition is None:
                        np.copyto(values[number], read[0].reshape(shapes[number]))
                else:
                    assert definition is not None
                    values[number] = _memory(-1 - place, shapes[number], definition.results[i].dtype)
            if definition is not None:
                definition.compute(*read, *(values[number] for number in outputs), *definition.settings)


class _Joined(NamedTuple):
    """A result of a joined operation: value `number` of the chain."""

    chain: _Chain
    number: int
    dtype: str
    in_place: bool = False

    def shape(self, shapes: Sequence[Shape | None]) -> list[int]:
        """Return its shape, given those of the inputs."""
        return list(self.chain.shapes([shape for shape in shapes if shape is not None])[self.number])


def _memory(number: int, shape: Shape, dtype: str) -> np.ndarray:
    """Return kept memory as an array of any numbers; it has those of the last call, or of other arrays."""
    kept: list[np.ndarray] = _kept.__dict__.setdefault("memory", [])
    while len(kept) <= number:
        kept.append(np.empty(0, np.uint8))
    size = math.prod(shape) * np.dtype(dtype).itemsize
    if kept[number].size < size:
        memory = np.empty(size + _ALIGNMENT, np.uint8)
        kept[number] = memory[-memory.ctypes.data % _ALIGNMENT :][:size]
    return kept[number][:size].view(dtype).reshape(shape)


def join_operations(program: paddle.static.Program, kept: Collection[str]) -> None:
    """Replace each group of operations of this project, between which no others read their results, by one.

    Args:
        kept: IDs of values of the program that must stay.
    """
    with paddle.static.program_guard(program):
        for group in list(_groups(program.global_block().ops, kept)):
            if sum(not _is_view(operation) for operation in group) > 1:
                _join(group)


def _groups(operations: Sequence[Operation], kept: Collection[str]) -> Iterator[list[Operation]]:
    """Yield operations that can be computed together, where the last of them stands."""
    group: list[Operation] = []
    made: set[str] = set()
    for operation in operations:
        results = {result.id for result in operation.results()}
        if results.isdisjoint(kept) and (definition_of(operation.name()) or _is_view(operation)):
            group.append(operation)
            made |= results
        elif made & {value.id for value in operation.operands_source() if value.initialized()}:
            yield group
            group, made = [], set()
    yield group


def _is_view(operation: Operation) -> bool:
    """Return whether an operation gives a value another shape, for operations of this project only."""
    return (
        operation.name() in _VIEWS
        and operation.operand_source(1).get_defining_op().name() == "pd_op.full_int_array"
        and all(definition_of(reader.name()) for reader in operation.result(0).all_used_ops())
    )


def _join(group: Sequence[Operation]) -> None:
    members = {operation.id() for operation in group}
    made = {result.id for operation in group for result in operation.results()}
    inputs: dict[str, Value] = {}
    for operation in group:
        for value in _read(operation):
            if value is not None and value.id not in made:
                inputs[value.id] = value
    outer = [
        result
        for operation in group
        for result in operation.results()
        if any(reader.id() not in members for reader in result.all_used_ops())
    ]
    numbers = {value: i for i, value in enumerate(inputs)}
    steps = _steps(group, numbers, [value.id for value in outer])
    chain = _Chain(len(inputs), steps)
    results = tuple(_Joined(chain, numbers[value.id], _dtype(value)) for value in outer)
    insert_before(group[-1])
    new = add_operation(f"chain_{next(_numbers)}", chain, list(inputs.values()), results)
    for old, value in zip(outer, new, strict=True):
        old.replace_all_uses_with(value)
    for operation in reversed(group):
        operation.erase()


def _steps(group: Sequence[Operation], numbers: dict[str, int], outer: Sequence[str]) -> list[_Step]:
    """Return the steps of a chain; the values that they make are added to `numbers`, and have a place in memory.

    Args:
        numbers: ID of a value -> its number; has the inputs of the chain.
        outer: IDs of the results of the chain.
    """
    last = {read: i for i, operation in enumerate(group) for read in map(_id, _read(operation))}
    owner: dict[str, int] = {}  # ID of a value -> the kept memory that it has
    free, used, steps = list[int](), count(), list[_Step]()
    for i, operation in enumerate(group):
        definition, read = definition_of(operation.name()), _read(operation)
        places: list[int | None] = []
        for k, result in enumerate(operation.results()):
            reuses = definition is None or definition.results[k].in_place
            if result.id in outer:
                places.append(outer.index(result.id))
            elif reuses:
                places.append(None)
                if _id(read[0]) in owner:
                    owner[result.id] = owner[_id(read[0])]
            else:
                owner[result.id] = free.pop() if free else next(used)
                places.append(-1 - owner[result.id])
            numbers[result.id] = len(numbers)
        inputs = tuple(None if value is None else numbers[value.id] for value in read)
        outputs = tuple(numbers[result.id] for result in operation.results())
        steps.append(_Step(definition, inputs, outputs, tuple(places), None if definition else _change(operation)))
        busy = {owner[value] for value in owner if last.get(value, -1) > i}
        free = sorted({*owner.values()} - busy, reverse=True)
    return steps


def _id(value: Value | None) -> str:
    return "" if value is None else value.id


def _read(operation: Operation) -> list[Value | None]:
    """Return the inputs of an operation, None for those that are not given; of a change of shape, what it changes."""
    definition, sources = definition_of(operation.name()), operation.operands_source()
    if definition is None:
        return sources[:1]
    placed: list[Value | None] = [None] * definition.inputs
    for number, value in zip(definition.given, sources, strict=True):
        placed[number] = value
    return placed


def _change(operation: Operation) -> Callable[[Shape], list[int]]:
    """Return what a change of shape makes of a shape, in which a size that is not known is -1."""
    wanted = operation.operand_source(1).get_defining_op().attrs()["value"]

    def unsqueezed(shape: Shape) -> list[int]:
        found = list(shape)
        for axis in wanted:
            found.insert(axis + (axis < 0) * (len(found) + 1), 1)
        return found

    def reshaped(shape: Shape) -> list[int]:
        found = [shape[i] if size == 0 else size for i, size in enumerate(wanted)]
        if found.count(-1) == 1 and -1 not in shape:
            rest = -math.prod(found)
            found[found.index(-1)] = math.prod(shape) // rest if rest else 0
        return found

    return unsqueezed if operation.name() == "pd_op.unsqueeze" else reshaped


def _dtype(value: Value) -> str:
    return str(value.dtype).removeprefix("paddle.")
