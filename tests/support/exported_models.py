"""Small models of random numbers in memory, with a vocabulary and a lexicon of made-up words, to be exported."""

from __future__ import annotations

from dataclasses import asdict, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from ernie_gram.distributed.device import current_place
from ernie_gram.formats.heads import PREDICTION_SECTIONS
from ernie_gram.formats.model import ModelRecord
from ernie_gram.formats.parameters import encoder_shapes
from ernie_gram.graph import static_mode
from ernie_gram.inference.description import DESCRIPTION, PROGRAM
from ernie_gram.pretraining.network import parameter_shapes
from ernie_gram.pretraining.sizes import CorpusSizes
from ernie_gram.training.program import Program
from ernie_gram.training.variables import set_parameters
from reader.lexicon.lexicon_file import Lexicon, LexiconInfo, NGrams
from reader.system.untrusted_text import read_json
from reader.tokenization.vocabulary import SPECIAL_TOKENS
from reader.tokenization.wordpiece import WordPieceVocabulary
from tests.support.small_model import MODEL, NGRAMS, TOKENS, config_of

import paddle  # isort: skip

WORDS = [f"{first}{second}" for first in "bcdfghk" for second in "aeiou"][: TOKENS - len(SPECIAL_TOKENS)]
VOCABULARY = WordPieceVocabulary([*SPECIAL_TOKENS, *WORDS])


def made_up_lexicon() -> Lexicon:
    """Return NGRAMS bigrams of the made-up words."""
    texts = [f"{WORDS[i]} {WORDS[i + 1]}" for i in range(NGRAMS)]
    ngrams = NGrams(texts, np.arange(NGRAMS) + 2, np.linspace(9, 1, NGRAMS))
    return Lexicon(ngrams, LexiconInfo(VOCABULARY.fingerprint, "char", "", {}, {}, 4, 0, 1))


@cache
def random_model(rung: str | None, **changes: Any) -> ModelRecord:
    """Return a model with random parameters; with the heads of a rung of the ablation, or with none.

    `changes` are fields of ModelConfig. Tests must not change the model: it is made once.
    """
    shape = replace(MODEL, **changes)
    config = config_of(rung, shape) if rung else None
    lexicon = made_up_lexicon() if config and config.objective.is_explicit else None
    shapes = encoder_shapes(replace(shape, vocab_size=TOKENS))
    if config:
        shapes |= parameter_shapes(config, CorpusSizes(TOKENS, NGRAMS if lexicon else 0))
    random = np.random.default_rng(7)
    parameters = {name: 0.3 * random.standard_normal(size).astype(np.float32) for name, size in shapes.items()}
    heads = {key: asdict(getattr(config, key)) for key in PREDICTION_SECTIONS} if config else None
    return ModelRecord(Path("memory"), "test", shape, parameters, VOCABULARY, lexicon, heads)


def run_with_executor(
    program: Program, model: ModelRecord, batch: dict[str, np.ndarray], seed: int = 0
) -> dict[str, np.ndarray]:
    """Run a program of a model with the executor that trains, in the current scope."""
    set_parameters(program.main, model.parameters, "test", paddle.CPUPlace())
    paddle.seed(seed)
    return program.run(paddle.static.Executor(paddle.CPUPlace()), batch)


def run_exported(folder: Path, batch: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Return the outputs of an exported program, as Paddle's executor computes them on the present device."""
    description = read_json(folder / DESCRIPTION)
    feeds = {each["name"]: batch[each["name"]] for each in description["feeds"]}
    with static_mode(paddle.static.Scope()):
        executor = paddle.static.Executor(current_place())
        program, _, fetches = paddle.static.load_inference_model(str((folder / PROGRAM).with_suffix("")), executor)
        paddle.seed(0)
        values = executor.run(program, feed=feeds, fetch_list=fetches)
    return dict(zip((each["name"] for each in description["fetches"]), values, strict=True))


def random_sentence(random: np.random.Generator, words: int, masks: int = 0) -> str:
    """Return a sentence of made-up words, of which some are [MASK]."""
    sentence = random.choice(WORDS, words).tolist()
    for slot in random.choice(words, masks, replace=False):
        sentence[slot] = "[MASK]"
    return " ".join(sentence)
