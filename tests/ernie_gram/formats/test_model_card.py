"""Model cards state what is known of a model, and nothing else."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import yaml

from ernie_gram.formats.model import ModelRecord, TrainingRecord
from ernie_gram.formats.model_card import model_card
from tests.support.model_folders import random_model


def model(**changes: Any) -> ModelRecord:
    return replace(random_model(layer_norm_eps=1e-12), **changes)


def sections(card: str) -> dict[str, str]:
    parts = card.split("\n## ")[1:]
    return {part.partition("\n")[0]: part.partition("\n")[2].strip() for part in parts}


def test_a_card_has_training_settings_scores_and_losses() -> None:
    pretraining = {"objective": {"masking": "explicit"}}
    settings = {"seed": 3, "trainer": {"max_steps": 500}}
    scores = {"step": 1500, "perplexity": 217.04, "ngram_perplexity": 12959.6, "accuracy": 0.25}
    training = TrainingRecord("corpus_en", "bert", settings, scores)
    described = model(pretraining=pretraining, training=training)
    arrays = {"a": np.zeros((617, 2))}
    card = model_card(described, "base-en", "some_library", arrays, "Load it so.", ["one loss", "another"])
    front = yaml.safe_load(card.split("---")[1])
    assert front == {"library_name": "some_library", "tags": ["ernie-gram"]}
    found = sections(card)
    assert found["What is lost"] == "- one loss\n- another"
    assert "; 1,234 numbers" in card
    assert all(name in found["Training"] for name in ("`corpus_en`", "`bert`"))
    shown = yaml.safe_load(found["Settings"].strip("`").removeprefix("yaml"))
    assert (shown["seed"], shown["trainer"], shown["model"]["layer_norm_eps"]) == (3, {"max_steps": 500}, 1e-12)
    assert "| perplexity | 217 |\n| ngram_perplexity | 12,960 |" in found["Scores"]
    found = sections(model_card(model(), "name", "some_library", arrays, "Load it so."))
    assert found["Scores"] == "None recorded."
