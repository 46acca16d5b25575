"""The plan of the ablation: its rungs differ only in the parts that they ablate."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from ernie_gram.pretraining.ablation_plan import RUNGS, plan
from reader.errors import InputError


def test_rungs_differ_only_in_the_parts_that_they_ablate(tmp_path: Path) -> None:
    """Each rung has the parts that conf/ablation names; all other settings are the same."""
    jobs = {job.rung: job.config for job in plan(tmp_path, list(RUNGS), [1], "tokens", [])}
    # rung: explicit masking, query rows, generator, replaced token detection, relative position
    table = {
        "token": (False, False, False, False, True),
        "contiguous": (False, False, False, False, True),
        "explicit": (True, False, False, False, True),
        "cnp": (True, True, False, False, True),
        "enrm": (True, False, True, True, True),
        "both": (True, True, True, True, False),
        "full": (True, True, True, True, True),
    }
    for rung, config in jobs.items():
        objective = config.objective
        found = (objective.is_explicit, objective.has_queries, objective.has_generator, objective.rtd_weight > 0)
        assert (*found, config.model.use_relative_position) == table[rung]
        full = jobs["full"].objective
        weights = {key: value or getattr(full, key) for key, value in vars(objective).items() if "_weight" in key}
        same = dataclasses.replace(
            config,
            objective=dataclasses.replace(objective, masking="explicit", **weights),
            model=dataclasses.replace(config.model, use_relative_position=True),
            paths=jobs["full"].paths,
        )
        assert same == jobs["full"]
        assert config.paths.corpus == ("tokens" if rung == "token" else jobs["full"].paths.corpus)
        assert config.paths.output == str(tmp_path / f"{rung}_1")


@pytest.mark.parametrize(
    ("rung", "option"),
    [
        ("explicit", "objective.fine_weight=0.5"),
        ("full", "model.use_relative_position=false"),
        ("enrm", "objective.rtd_weight=0"),
    ],
)
def test_an_option_that_turns_a_rung_into_another_one_is_refused(tmp_path: Path, rung: str, option: str) -> None:
    with pytest.raises(InputError, match=f"{option.partition('=')[0]}: makes {rung} another rung"):
        plan(tmp_path, [rung], [1], None, [f"--{option}"])


def test_an_option_that_changes_all_rungs_alike_is_accepted(tmp_path: Path) -> None:
    for job in plan(tmp_path, list(RUNGS), [1], "tokens", ["--objective.mask_fraction=0.2"]):
        assert job.config.objective.mask_fraction == 0.2
