"""Loaded by Python at its start if this folder is in PYTHONPATH: pretends as soon as Paddle has been imported."""

from __future__ import annotations

import atexit
import os
import sys
from collections.abc import Callable
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from types import ModuleType
from typing import Any


def pretend_as_asked(_: ModuleType) -> None:
    """Call `pretend` of this package as the environment asks; for tests/gpu, compute in half precision as well."""
    from tests.support import pretended_gpu

    major, minor = map(int, os.environ[pretended_gpu.CAPABILITY].split("."))
    calls = pretended_gpu.pretend(int(os.environ[pretended_gpu.GPUS]), (major, minor))
    folder, rank = os.environ.get(pretended_gpu.CALLS), os.environ.get("PADDLE_TRAINER_ID")
    if folder and rank:
        atexit.register(lambda: Path(folder, f"{rank}.txt").write_text("\n".join(calls)))
    if os.environ.get("GPU_CHECK_QUICK") == "1":
        pretended_gpu.replace_half_precision()


def pretend_package(device: ModuleType) -> None:
    """Make our module recognise a package for GPUs, before Paddle is imported."""
    assert hasattr(device, "is_gpu_package")
    device.is_gpu_package = lambda: True  # type: ignore[attr-defined]


AFTER_IMPORT: dict[str, Callable[[ModuleType], None]] = {
    "paddle": pretend_as_asked,
    "ernie_gram.distributed.device": pretend_package,
}


class Finder(MetaPathFinder):
    """Finds these modules as usual, and calls a function after their import."""

    def find_spec(self, fullname: str, path: Any, target: Any = None) -> ModuleSpec | None:
        if fullname not in AFTER_IMPORT:
            return None
        spec = PathFinder.find_spec(fullname, path, target)
        if spec is not None and spec.loader is not None:
            execute = spec.loader.exec_module

            def exec_module(module: ModuleType) -> None:
                execute(module)
                AFTER_IMPORT[fullname](module)

            spec.loader.exec_module = exec_module  # type: ignore[method-assign]
        return spec


if "PRETENDED_CALLS" in os.environ:
    with Path(os.environ["PRETENDED_CALLS"], "starts.txt").open("a") as file:
        file.write(f"{sys.orig_argv}\n")
if "PRETENDED_GPUS" in os.environ:
    sys.meta_path.insert(0, Finder())
