"""What identifies a planned training of a study."""

from __future__ import annotations

from tasks.studies.plan import _settings
from tasks.training.config import FinetuneConfig


def test_the_path_of_a_custom_task_does_not_identify_a_training() -> None:
    """The digest of its file does."""
    found = [_settings(FinetuneConfig(task=task)) for task in ("here/own.yaml", "/there/own.yaml", "cola")]
    assert found == [{}, {}, {"task": "cola"}]
