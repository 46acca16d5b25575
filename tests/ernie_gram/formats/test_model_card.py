"""Model cards state what is known of a model, and nothing else."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from ernie_gram.formats.model import Model, TrainingRecord
from ernie_gram.formats.model_card import licence_of, model_card
from ernie_gram.model.config import ModelConfig
from reader.lexicon.lexicon_file import Lexicon, LexiconInfo, NGrams
from reader.tokenization.vocabulary import SPECIAL_TOKENS
from reader.tokenization.wordpiece import WordPieceVocabulary
from tests.support.commands import ROOT

VOCABULARY = WordPieceVocabulary([*SPECIAL_TOKENS, "a"])


def model(**changes: Any) -> Model:
    config = ModelConfig(hidden_size=16, num_hidden_layers=1, num_attention_heads=2, layer_norm_eps=1e-12)
    return replace(Model(Path("x"), "ernie_gram", config, {}, VOCABULARY), **changes)


def sections(card: str) -> dict[str, str]:
    parts = card.split("\n## ")[1:]
    return {part.partition("\n")[0]: part.partition("\n")[2].strip() for part in parts}


def test_a_card_of_an_unknown_model_invents_nothing() -> None:
    found = sections(model_card(model(), "name", "some_library", "Load it so.", 12, [], []))
    assert found["What is lost"].startswith("Nothing")
    assert found["How to load it"] == "Load it so."
    assert "does not state the training text" in found["Training"]
    assert found["Scores"] == "None recorded."
    assert found["Licence"].startswith("Not stated.")
    assert "What the library does differently" not in found


def test_a_card_has_training_settings_scores_losses_and_licence(tmp_path: Path) -> None:
    pretraining = {"objective": {"masking": "explicit"}, "paths": {"output": "/home/me/run"}}
    settings = {"seed": 3, "trainer": {"max_steps": 500}}
    scores = {"step": 1500, "perplexity": 217.04, "ngram_perplexity": 12959.6, "accuracy": 0.25}
    training = TrainingRecord("corpus_en", "bert", settings, scores)
    described = model(source=tmp_path, pretraining=pretraining, training=training)
    (tmp_path / "README.md").write_text("---\nlicense: apache-2.0\n---\n")
    card = model_card(described, "base-en", "some_library", "Load it so.", 1234, ["one loss", "another"], ["a rule"])
    front = yaml.safe_load(card.split("---")[1])
    assert front == {"library_name": "some_library", "tags": ["ernie-gram"], "license": "apache-2.0"}
    assert "\n# base-en\n" in card
    assert "1,234 numbers" in card
    # Where the project is found.
    assert "`ernie-gram`" in card.partition("\n## ")[0]
    assert "https://aclanthology.org/2021.naacl-main.136/" in (ROOT / "README.md").read_text()
    assert "https://aclanthology.org/2021.naacl-main.136/" in card
    assert "6 tokens (wordpiece), lower case" in card
    assert "/home/me" not in card
    found = sections(card)
    assert found["What is lost"] == "- one loss\n- another"
    assert found["What the library does differently"] == "- a rule"
    assert found["Training"] == "Pre-trained on the corpus `corpus_en`, starting from the model `bert`."
    shown = yaml.safe_load(found["Settings"].strip("`").removeprefix("yaml"))
    assert shown["model"]["layer_norm_eps"] == 1e-12
    assert shown["objective"] == {"masking": "explicit"}
    assert shown["seed"] == 3
    assert shown["trainer"] == {"max_steps": 500}
    assert "| perplexity | 217 |\n| ngram_perplexity | 12,960 |" in found["Scores"]
    assert "step 1,500" in found["Scores"]
    assert found["Licence"].startswith("`apache-2.0`")


def test_the_licence_is_read_from_the_front_matter_of_a_card(tmp_path: Path) -> None:
    card = tmp_path / "README.md"
    for text, licence in (
        ("---\nlicense: mit\ntags: [a]\n---\n# x\n", "mit"),
        ("# no front matter\nlicense: mit\n", None),
        ("---\nlicense: mit\n", None),
        ("---\nlicense: [a, b]\n---\n", None),
        ("---\n: : :\n- [\n---\n", None),
        (f"---\n{'[' * 3000}\n---\n", None),
    ):
        card.write_text(text)
        assert licence_of(tmp_path) == licence, text
    card.unlink()
    assert licence_of(tmp_path) is None


def test_a_card_says_that_a_list_of_ones_own_was_not_counted() -> None:
    made = NGrams.from_texts(["a a", "a a a"], np.zeros(2, np.int64), np.zeros(2))
    for own in ("", "phrases.tsv"):
        info = LexiconInfo(VOCABULARY.fingerprint, "char", "", {}, {}, 3, 0, 1, own=own)
        card = model_card(model(lexicon=Lexicon(made, info)), "name", "some_library", "Load it so.", 12, [], [])
        assert "predict 2 n-grams" in card
        assert ("of the list `phrases.tsv`, which were not counted" in card) == bool(own)
