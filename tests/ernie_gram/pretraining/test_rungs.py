"""The rungs of the ablation differ only in the parts that they ablate."""

from __future__ import annotations

import dataclasses

from ernie_gram.pretraining.rungs import CONFIGS, RUNGS
from tests.support.configs import load


def test_rungs_differ_only_in_the_parts_that_they_ablate() -> None:
    """Each rung has the parts that conf/ablation names; all other settings are the same."""
    configs = {rung: load("--config", str(CONFIGS / f"{rung}.yaml")) for rung in RUNGS}
    # rung: explicit masking, query rows, generator, replaced token detection, relative position
    table = {
        "token": (False, False, False, False, False),
        "contiguous": (False, False, False, False, False),
        "explicit": (True, False, False, False, False),
        "cnp": (True, True, False, False, False),
        "enrm": (True, False, True, True, False),
        "both": (True, True, True, True, False),
        "full": (True, True, True, True, True),
    }
    full = configs["full"]
    for rung, config in configs.items():
        objective = config.objective
        found = (objective.is_explicit, objective.has_queries, objective.has_generator, objective.rtd_weight > 0)
        assert (*found, config.model.use_relative_position) == table[rung]
        weights = {
            key: value or getattr(full.objective, key) for key, value in vars(objective).items() if "_weight" in key
        }
        same = dataclasses.replace(
            config,
            objective=dataclasses.replace(objective, masking="explicit", **weights),
            model=dataclasses.replace(config.model, use_relative_position=True),
            paths=full.paths,
        )
        assert same == full
