"""Loaded by Python at its start if this folder is in PYTHONPATH: pretends as soon as Paddle has been imported."""

from __future__ import annotations

import importlib.util
import os
import sys
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import Any


class PaddleFinder(MetaPathFinder):
    """Finds Paddle as usual, and lets its loader pretend afterwards."""

    def find_spec(self, fullname: str, path: Any, target: Any = None) -> ModuleSpec | None:
        if fullname != "paddle":
            return None
        spec = PathFinder.find_spec(fullname, path, target)
        if spec is not None and spec.loader is not None:
            execute = spec.loader.exec_module

            def exec_module(module: ModuleType) -> None:
                execute(module)
                pretend_as_asked()

            spec.loader.exec_module = exec_module  # type: ignore[method-assign]
        return spec


def pretend_as_asked() -> None:
    """Call `pretend` of this package with the values of the environment."""
    # Not imported as a part of `tests`, which may not be found from every working directory.
    path = os.path.join(os.path.dirname(__file__), "__init__.py")
    spec = importlib.util.spec_from_file_location("pretended_gpu", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    major, minor = map(int, os.environ[module.CAPABILITY].split("."))
    module.pretend(int(os.environ[module.GPUS]), (major, minor))


if "PRETENDED_GPUS" in os.environ:
    sys.meta_path.insert(0, PaddleFinder())
