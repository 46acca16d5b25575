"""What `python -m ernie_gram.gpu_check` asks of a pretended GPU beyond the device (see pretended_gpu), and faults.

Kernels for CPUs are registered for GPUs too. What is meant to be float16, for which Paddle has no kernels on a CPU, is
bfloat16. A fault is put into new processes from outside: nothing in the project knows of it.
"""

from __future__ import annotations

import os
import re
import signal
from pathlib import Path
from typing import Any

# The environment variable with a fault.
FAULT = "PRETENDED_FAULT"
MISSING_KERNEL, WRONG_GRADIENT, HANG = FAULTS = ("missing kernel", "wrong gradient", "hang")
# The kernel that is missing, the parameter whose gradient is wrong on the GPU, and the rank that hangs.
KERNEL, PARAMETER, RANK = "gelu_grad", "encoder_layer_0_ffn_fc_0.w_0", "1"


def environment(gpus: int = 1, fault: str = "") -> dict[str, str]:
    """Return the environment variables under which new processes pretend, with a fault or without one."""
    from tests.support import pretended_gpu

    variables = pretended_gpu.environment(gpus)
    variables["PYTHONPATH"] = os.pathsep.join([str(Path(__file__).parent), variables["PYTHONPATH"]])
    return {**variables, FAULT: fault}


def replace(owner: Any, name: str, value: Any) -> None:
    """Set an attribute that exists."""
    assert hasattr(owner, name), name
    setattr(owner, name, value)


def register_kernels(fault: str) -> None:
    """Let all kernels for CPUs be registered for GPUs too, except for one if it is to be missing."""
    import paddle

    core = paddle.base.core
    registered = core._get_registered_phi_kernels

    def with_gpu(library: str) -> dict[str, list[str]]:
        found = {
            name: [*variants, *(re.sub(r"^\((CPU|ONEDNN)\b", "(GPU", variant) for variant in variants)]
            for name, variants in registered(library).items()
        }
        return found | ({KERNEL: registered(library)[KERNEL]} if fault == MISSING_KERNEL else {})

    replace(core, "_get_registered_phi_kernels", with_gpu)


def replace_float16() -> None:
    """Compute in bfloat16 what is meant to be float16."""
    import paddle

    auto_cast = paddle.amp.auto_cast

    def with_bfloat16(*arguments: Any, dtype: str = "float16", **options: Any) -> Any:
        return auto_cast(*arguments, dtype="bfloat16" if dtype == "float16" else dtype, **options)

    replace(paddle.amp, "auto_cast", with_bfloat16)
    replace(paddle, "float16", paddle.bfloat16)


def make_gradient_wrong() -> None:
    """Let the gradient of a parameter be a hundredth too large in programs that are built for a GPU."""
    import paddle

    backward, set_device, devices = paddle.optimizer.AdamW.backward, paddle.set_device, ["cpu"]

    def chosen(device: str) -> Any:
        devices.append(device)
        return set_device(device)

    def wrong(self: Any, *arguments: Any, **options: Any) -> Any:
        factor = 1.01 if devices[-1].startswith("gpu") else 1.0
        pairs = backward(self, *arguments, **options)
        return [(parameter, g * factor if parameter.name == PARAMETER else g) for parameter, g in pairs]

    replace(paddle, "set_device", chosen)
    replace(paddle.optimizer.AdamW, "backward", wrong)


def make_rank_hang() -> None:
    """Let a process of a job stop in its first step, as if it computed for ever."""
    import paddle

    run = paddle.static.Executor.run

    def hanging(self: Any, *arguments: Any, **options: Any) -> Any:
        if "input_ids" in (options.get("feed") or {}):
            os.kill(os.getpid(), signal.SIGSTOP)
        return run(self, *arguments, **options)

    if os.environ.get("PADDLE_TRAINER_ID") == RANK:
        replace(paddle.static.Executor, "run", hanging)


def pretend() -> None:
    """Do all this in the current process, with the fault in its environment."""
    fault = os.environ[FAULT]
    assert fault in ("", *FAULTS)
    register_kernels(fault)
    replace_float16()
    if fault == WRONG_GRADIENT:
        make_gradient_wrong()
    if fault == HANG:
        make_rank_hang()
