"""Kernels that cannot be run, with which programs can be built that Paddle's package for CPUs has no kernels for."""

from __future__ import annotations

import ctypes
from collections.abc import Iterable
from itertools import product
from pathlib import Path

import paddle

# Numbers of dtypes in Paddle's C interface for plug-ins, and of "any layout" (3.3.1).
FLOAT16, FLOAT32, BFLOAT16 = 10, 11, 13
_ANY_LAYOUT = 0


@ctypes.CFUNCTYPE(None, ctypes.c_void_p)
def _cannot_run(context: int) -> None:
    raise RuntimeError("this kernel is a placeholder with which programs can be built; it cannot be run")


# Called to describe the arguments of a placeholder: none.
_no_arguments = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)(lambda key, kernel: None)


def register_placeholders(device: str, names: Iterable[str], dtypes: Iterable[int]) -> None:
    """Register kernels for a device, "CPU" or "GPU", that cannot be run; another operation must replace them.

    Paddle adds an operation to a program only if a kernel for its dtype is registered, on any device (3.3.1).

    Raises OSError or AttributeError if this Paddle does not have the C interface of version 3.3.
    """
    library = ctypes.CDLL(str(Path(paddle.__file__).parent / "libs" / "libphi_core.so"))
    nothing, none = ctypes.c_size_t(0), (ctypes.c_int * 1)()
    for name, dtype in product(names, dtypes):
        library.PD_RegisterPhiKernel(
            *(name.encode(), device.encode(), dtype, _ANY_LAYOUT, nothing, none, nothing, none, nothing, none),
            *(_no_arguments, _cannot_run, None),
        )
