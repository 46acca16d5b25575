"""The scripts of docs/studies as modules."""

from __future__ import annotations

import importlib.util
import sys
from types import ModuleType
from unittest.mock import patch

from tests.support.commands import ROOT


def study(name: str) -> ModuleType:
    """Return the module of the script docs/studies/NAME.py."""
    found = importlib.util.spec_from_file_location(f"study_{name}", ROOT / "docs" / "studies" / f"{name}.py")
    assert found is not None
    assert found.loader is not None
    module = importlib.util.module_from_spec(found)
    sys.modules[found.name] = module
    # As for a script, its folder comes first; such a module may import another one.
    with patch.object(sys, "path", [str(ROOT / "docs" / "studies"), *sys.path]):
        found.loader.exec_module(module)
    return module
