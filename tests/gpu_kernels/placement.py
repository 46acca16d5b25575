"""Where each operation of a program would run on a GPU, and which tensors would be copied between GPU and host.

These are the rules of paddle/fluid/pir/transforms/pd_op_to_kernel_pass.cc (Paddle 3). An operation runs where its
attribute `place` says; otherwise on the GPU if one of its operands is there, or if it has none; otherwise, or if the
GPU has no kernel for it, on the host. Feeds and variables are on the GPU. Operands that may also be attributes, such as
shapes, are read on the host; others where the operation runs. A tensor that is elsewhere is copied, once for each
operation that reads it. A copy from the GPU waits until the GPU has computed it.

Not counted are fetches, which the executor adds, and variables that it sets from the host: the learning rate.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tests.gpu_kernels import operations as facts
from tests.gpu_kernels.table import Row

if TYPE_CHECKING:
    import paddle
    from paddle.pir import Operation, Value

GPU, HOST = "GPU", "host"


@dataclass(frozen=True)
class Copy:
    """A tensor that is copied: the kernel that reads it, as which operand, and the kernel that has computed it."""

    kernel: str
    operand: str
    origin: str

    def __str__(self) -> str:
        return f"{self.kernel}({self.operand}) from {self.origin}"


@dataclass
class Placement:
    """What a program would do on a GPU.

    Attributes:
        feeds: tensors that are copied to the GPU because they are fed, by name.
        to_host, to_gpu: other copies, one for each time that a tensor is copied.
        keys: operation, kernel and dtype of each operation that has a kernel, in order.
        fallbacks: kernels that run on the host because the GPU has none for their dtype, with the dtype.
    """

    feeds: list[str] = field(default_factory=list)
    to_host: list[Copy] = field(default_factory=list)
    to_gpu: list[Copy] = field(default_factory=list)
    keys: list[tuple[str, str, str]] = field(default_factory=list)
    fallbacks: set[tuple[str, str]] = field(default_factory=set)


@dataclass(frozen=True)
class _Tensor:
    """Where a tensor is, the kernel that has computed it, and its dtype."""

    place: str
    origin: str
    dtype: str


# The tensors of each operand by its name; several if it is a list.
_Operands = dict[str, list[_Tensor]]


def simulate(program: paddle.static.Program, table: Mapping[str, Row]) -> Placement:
    """Return what a program would do on a GPU with the kernels of a table."""
    block = program.global_block()
    walk = _Walk(table)
    for operation in block.ops:
        assert not list(operation.blocks()), f"{operation.name()}: blocks within operations are not looked into"
        walk.visit(operation)
    return walk.found


class _Walk:
    """A walk through a program, from the first operation to the last."""

    def __init__(self, table: Mapping[str, Row]) -> None:
        self.found = Placement()
        self._table = table
        # By the number of a value. Several tensors if it is a list.
        self._tensors: dict[int, list[_Tensor]] = {}

    def visit(self, operation: Operation) -> None:
        """Add an operation to what was found."""
        if operation.name() in facts.WITHOUT_KERNEL:
            self._pass_on(operation)
            return
        operands = {
            name: self._tensors[value.id]
            for name, value in zip(operation.get_input_names(), operation.operands_source(), strict=True)
            if value.initialized()
        }
        attributes = facts.attribute_operands()[operation.name()]
        data = {name: tensors for name, tensors in operands.items() if name not in attributes}
        kernel = facts.kernel_of(operation.name())
        dtype = self._kernel_dtype(kernel, data, operation)
        self.found.keys.append((operation.name(), kernel, dtype))
        place = _place(kernel, operation, data)
        if place == GPU and (kernel not in self._table or dtype not in self._table[kernel].dtypes):
            self.found.fallbacks.add((kernel, dtype))
            place = HOST
        self._copy(kernel, place, operands, attributes)
        if kernel in facts.WRITES_ON_HOST:
            place = HOST
        for value in operation.results():
            if value.initialized():
                self._tensors[value.id] = [_Tensor(place, kernel, each) for each in self._dtypes(value)]

    def _pass_on(self, operation: Operation) -> None:
        """Set the results of an operation without a kernel."""
        operands = [self._tensors[value.id] for value in operation.operands_source()]
        name, results = operation.name(), operation.results()
        if name == "builtin.combine":
            self._tensors[results[0].id] = [tensor for tensors in operands for tensor in tensors]
        elif name == "builtin.split":
            for value, tensor in zip(results, operands[0], strict=True):
                self._tensors[value.id] = [tensor]
        elif name in ("pd_op.data", "builtin.parameter"):
            attributes = operation.attrs()
            if name == "pd_op.data" and not attributes.get("persistable", [False])[0]:
                self.found.feeds.append(attributes["name"])
            self._tensors[results[0].id] = [_Tensor(GPU, name, each) for each in self._dtypes(results[0])]

    def _copy(self, kernel: str, place: str, operands: _Operands, attributes: set[str]) -> None:
        """Add the copies that a kernel needs which runs in a place."""
        on_host = attributes | facts.ON_HOST.get(kernel, set())
        for name, tensors in operands.items():
            wanted, copies = (
                (HOST, self.found.to_host) if name in on_host or place == HOST else (GPU, self.found.to_gpu)
            )
            copies += [Copy(kernel, name, tensor.origin) for tensor in tensors if tensor.place != wanted]
        if place == GPU and kernel in facts.WAITS:
            self.found.to_host.append(Copy(kernel, "its number of rows", kernel))

    def _kernel_dtype(self, kernel: str, data: _Operands, operation: Operation) -> str:
        """Return the dtype for which an operation needs a kernel."""
        if not data or kernel in facts.DTYPE_OF_RESULT:
            return self._dtypes(operation.result(0))[0]
        name = facts.DTYPE_OPERAND.get(kernel, next(iter(data)))
        return data[name][0].dtype

    def _dtypes(self, value: Value) -> list[str]:
        """Return the dtype of each tensor of a value."""
        types = value.type().as_vec_type().as_list() if value.is_combine() else [value]
        return [str(each.dtype).removeprefix("paddle.") for each in types]


def _place(kernel: str, operation: Operation, data: _Operands) -> str:
    """Return where an operation runs if the GPU has a kernel for it."""
    if kernel == "memcpy":
        return HOST if operation.attrs()["dst_place_type"] == 0 else GPU
    if operation.has_attr("place"):
        place = operation.attrs()["place"]
        if place.is_cpu_place():
            return HOST
        if place.is_gpu_place():
            return GPU
    places = {tensor.place for tensors in data.values() for tensor in tensors}
    return GPU if GPU in places or not places or kernel == "full_with_tensor" else HOST
