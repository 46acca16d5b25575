"""What Paddle's executor knows of an operation when it chooses a kernel: names, dtypes, and operands on the host.

Paths are those of Paddle's source code, of versions 3. What the installed package tells is not written down here: its
headers declare which operands may be attributes, and test_placement.py compares the names and dtypes of kernels with
those that its executor chooses.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

# Operations that compute nothing, and so have no kernel.
WITHOUT_KERNEL = frozenset(
    {"pd_op.data", *(f"builtin.{name}" for name in ("parameter", "set_parameter", "shadow_output", "combine", "split"))}
)
# The operand whose dtype is that of the kernel; for other kernels, the first that is not an attribute. `data_type` in
# paddle/phi/ops/yaml/{ops,backward}.yaml.
DTYPE_OPERAND = {
    "where": "x",
    "embedding": "weight",
    "embedding_grad": "weight",
    "cross_entropy_with_softmax_grad": "loss_grad",
    "dropout_grad": "out_grad",
    "scatter_grad": "out_grad",
}
# Kernels whose dtype is that of their result.
DTYPE_OF_RESULT = frozenset({"full_with_tensor"})
# Operands that kernels for GPUs read on the host, or copy there themselves, beside those that may be attributes:
# paddle/phi/kernels/gpu/{full_kernel.cu, adamw_kernel.cu, fused_adam_kernel.cu}.
ON_HOST = {"full_with_tensor": {"value"}, "adamw": {"skip_update"}, "fused_adam": {"skip_update"}}
# Kernels for GPUs whose result is in the memory of the host (paddle/phi/kernels/shape_kernel.cc).
WRITES_ON_HOST = frozenset({"shape64"})
# Kernels that wait for the GPU: the number of rows that they find is the size of their result
# (paddle/phi/kernels/gpu/nonzero_kernel.cu).
WAITS = frozenset({"nonzero"})
_HEADERS = "include/paddle/fluid/pir/dialect/operator/ir"


def kernel_of(operation: str) -> str:
    """Return the name of the kernel of an operation, such as "pd_op.add_"; a final "_" means "in place"."""
    name = operation.removeprefix("pd_op.").removesuffix("_")
    return {"assign_out": "assign"}.get(name, name)


@cache
def attribute_operands() -> dict[str, set[str]]:
    """Return for each operation the operands that may also be attributes: shapes, axes, factors. They are read on the
    host, and copied there before the kernel starts (DeriveBackend in
    paddle/fluid/pir/transforms/pd_op_to_kernel_pass.cc).

    The headers of the installed package declare a `Build` with such an operand, and one with an attribute in its place.
    """
    import paddle

    found: dict[str, set[str]] = {}
    for header in ("pd_op.h", "manual_op.h"):
        text = (Path(paddle.__file__).parent / _HEADERS / header).read_text(encoding="utf-8")
        text = re.sub(r"//.*|=\s*\{[^}]*\}", "", text)  # comments, and defaults such as {1, 1}
        for part in re.split(r'static const char \*name\(\) \{ return "', text)[1:]:
            operands: set[str] = set()
            attributes: set[str] = set()
            for arguments in re.findall(r"static void Build\((.*?)\);", part, re.DOTALL):
                for argument in filter(None, arguments.split(",")):
                    name = argument.partition("=")[0].split()[-1].lstrip("&")
                    (operands if "pir::Value " in argument else attributes).add(name)
            found[part.partition('"')[0]] = {name.removesuffix("_") for name in operands} & attributes
    assert len(found) > 1000, "the headers of this version of Paddle have another form"
    return found
