"""The tests of GPUs on two pretended ones: all of them pass."""

from __future__ import annotations

import re
from pathlib import Path

from tests.support.commands import python
from tests.support.further_cases import FURTHER
from tests.support.pretended_gpu import environment


@FURTHER
def test_all_pass_or_are_skipped_with_a_reason(tmp_path: Path) -> None:
    variables = environment(2) | {"GPU_CHECK_QUICK": "1"}
    given = ("-m", "gpu", "-rA", "-p", "no:cacheprovider", f"--basetemp={tmp_path / 'pytest'}", "tests/gpu")
    done = python("-m", "pytest", *given, timeout=550, **variables).ok()
    assert len(re.findall("^PASSED", done.stdout, re.MULTILINE)) > 15
    skipped = re.findall(r"^SKIPPED .*", done.stdout, re.MULTILINE)
    assert skipped == []
    assert "tokens/s" in done.stdout
