"""Loaded by Python at its start if this folder is in PYTHONPATH: as that of pretended_gpu, with more after Paddle."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

_FOLDER = Path(__file__).resolve().parent


def _load(name: str, path: Path) -> ModuleType:
    # Not imported as parts of `tests`, which may not be found from every working directory.
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


_pretended = _load("pretended_sitecustomize", _FOLDER.parent / "pretended_gpu" / "sitecustomize.py")
_after_paddle = _pretended.AFTER_IMPORT["paddle"]


def _after(paddle: ModuleType) -> None:
    _after_paddle(paddle)
    _load("gpu_faults", _FOLDER / "__init__.py").pretend()


_pretended.AFTER_IMPORT["paddle"] = _after
