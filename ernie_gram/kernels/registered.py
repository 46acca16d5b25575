"""Register placeholder kernels in Paddle, so that programs can be built with operations that have no kernel.

Paddle adds an operation to a program only if a kernel for its dtype is registered, on any device. A placeholder cannot
be run: another operation must replace it when the program is finished.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterable
from pathlib import Path

# Paddle's C interface for plug-ins: the numbers of its dtypes, and "any layout".
FLOAT16, FLOAT32, BFLOAT16 = 10, 11, 13
_ANY_LAYOUT = 0

_ARGUMENTS = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)
_KERNEL = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


@_ARGUMENTS
def _no_arguments(key: int, kernel: int) -> None:
    """Describe the arguments of a placeholder: none."""


@_KERNEL
def _cannot_run(context: int) -> None:
    raise RuntimeError("this kernel is a placeholder with which programs can be built; it cannot be run")


def register_placeholders(device: str, names: Iterable[str], dtypes: Iterable[int]) -> None:
    """Register placeholders for a device, "CPU" or "GPU".

    Raises OSError or AttributeError if this Paddle does not have the interface of version 3.3.
    """
    import paddle

    library = ctypes.CDLL(str(Path(paddle.__file__).parent / "libs" / "libphi_core.so"))
    nothing, none = ctypes.c_size_t(0), (ctypes.c_int * 1)()
    dtypes = list(dtypes)
    for name in names:
        for dtype in dtypes:
            library.PD_RegisterPhiKernel(
                *(name.encode(), device.encode(), dtype, _ANY_LAYOUT, nothing, none, nothing, none, nothing, none),
                *(_no_arguments, _cannot_run, None),
            )
