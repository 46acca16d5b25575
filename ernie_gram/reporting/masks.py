"""Fill the masks of held-out texts: the units that models predict, and the probability of the original units."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain, pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ernie_gram.api import Model
from ernie_gram.distributed.loading import load_paddle
from ernie_gram.inference.texts import best_units
from ernie_gram.reporting.runs import ReportedRun, explicit_first, read_object
from reader.corpus.memmap import Corpus
from reader.errors import InputError
from reader.system.progress import progress
from reader.text.input_files import CORPUS_INFO
from reader.tokenization.vocabulary import Vocabulary

# Units that are shown for each mask, tokens of a text at most, and units between its two masks at least.
TOP, MAX_TOKENS, DISTANCE = 5, 30, 2
SHORTEST = 8  # in units


class Text(NamedTuple):
    """Units of a corpus, the tokens of each of them, and the places of those to be masked, in order."""

    units: list[int]
    tokens: list[list[int]]
    masked: list[int]

    def pieces(self, corpus: Corpus) -> list[str]:
        """Return the text in pieces, every second one masked."""
        bounds = [0, *(end for place in self.masked for end in (place, place + 1)), len(self.units)]
        return [corpus.vocabulary.text([*chain(*self.tokens[a:b])]) for a, b in pairwise(bounds)]


def filled_masks(runs: Sequence[ReportedRun], number: int, notes: list[str]) -> list[dict[str, Any]]:
    """Return some held-out texts, their masks filled by the models of runs; adds notes on what failed.

    Each has `pieces` of text, and `columns`: for each model and mask guesses, and the probability of the original unit.
    """
    lengths = [run.settings.get("data.max_seq_len") for run in runs]
    try:
        evaluated = explicit_first([run for run in runs if run.settings.get("paths.held_out")])
        if not evaluated:
            raise InputError("the runs have no held-out corpus")
        corpus = Corpus(Path(str(evaluated.settings["paths.held_out"])))
        if evaluated.held_out and read_object(corpus.path / CORPUS_INFO) != evaluated.held_out:
            raise InputError(f"{corpus.path} is not the corpus that {evaluated.name} was evaluated on")
    except InputError as error:
        notes.append(f"no filled masks: {error}")
        return []
    texts = chosen_texts(corpus, number, min([MAX_TOKENS, *(n - 2 for n in lengths if isinstance(n, int))]))
    load_paddle()
    shown: dict[str, list[list[Any]]] = {}
    with progress("filling masks", len(runs), " models") as phase:
        for run in runs:
            try:
                model = Model.load(run.folder)
                shown[run.name] = [_guesses(model, corpus, text) for text in texts]
                notes += [f"{run.name}: {note}" for note in model.notes]
            except InputError as error:
                notes.append(f"{run.name}: no filled masks: {error}")
            phase.update(1)
    return [
        {"pieces": text.pieces(corpus), "columns": {name: found[i] for name, found in shown.items()}}
        for i, text in enumerate(texts if shown else [])
    ]


def chosen_texts(corpus: Corpus, number: int, max_tokens: int) -> list[Text]:
    """Return beginnings of documents, those with an n-gram first."""
    found = []
    # A fixed seed, so that all pages show the same texts.
    for document in np.random.default_rng(0).permutation(len(corpus.documents) - 1)[: 100 * number]:
        units = corpus.units[corpus.documents[document] : corpus.documents[document + 1]][:max_tokens]
        units = units[np.cumsum(corpus.unit_tokens[units]) <= max_tokens].tolist()
        first = corpus.info.num_tokens
        bounds = [corpus.ngram_offsets[max(unit - first, 0) :][:2] for unit in units]
        tokens = [
            [unit] if unit < first else corpus.ngram_tokens[start:stop].tolist()
            for unit, (start, stop) in zip(units, bounds, strict=True)
        ]
        # The n-gram and the word nearest to the middle are masked.
        places = sorted(range(1, len(units) - 1), key=lambda place: abs(place - len(units) / 2))
        ngrams = [place for place in places if units[place] >= first][:1]
        far = [place for place in places if all(abs(place - ngram) > DISTANCE for ngram in ngrams)]
        words = [place for place in far if _is_word(corpus.vocabulary, tokens[place], tokens[place + 1])]
        if corpus.vocabulary.unk not in units and len(units) >= SHORTEST:
            found.append(Text(units, tokens, sorted(ngrams + words[:1])))
    return sorted((text for text in found if text.masked), key=lambda text: -len(text.masked))[:number]


def _is_word(vocabulary: Vocabulary, unit: list[int], after: list[int]) -> bool:
    """Return whether a unit is a token that is a whole word of letters, and no short one."""
    text, begins = vocabulary.spelling(unit[0])
    following, ends = vocabulary.spelling(after[0])
    # In a SentencePiece vocabulary, punctuation marks do not begin a word.
    is_whole = len(unit) == 1 and begins and (ends or not following.isalnum())
    return is_whole and text.isalpha() and len(text.encode()) > 2


def _guesses(model: Model, corpus: Corpus, text: Text) -> list[tuple[list[str], float]]:
    """Return for each mask of a text the guesses, best first, and the probability of the original unit.

    An n-gram is one [MASK] for a model whose classes include n-grams, otherwise one for each of its tokens. Raises
    InputError if the model cannot fill masks, or if its units are not those of the corpus.
    """
    if model.has_ngrams and (lexicon := model.units.lexicon) and lexicon.fingerprint != corpus.info.lexicon:
        raise InputError(f"{corpus.path} was made with another lexicon")
    special = model.texts.vocabulary
    original = {place: [text.units[place]] if model.has_ngrams else text.tokens[place] for place in text.masked}
    parts = [[special.mask] * len(original.get(place, ())) or part for place, part in enumerate(text.tokens)]
    row = np.array([special.cls, *chain(*parts), special.sep], np.int64)
    probabilities = iter(model.probabilities(model.texts.masked_batch([row])))
    found = []
    for units in original.values():
        slots = [next(probabilities) for _ in units]
        ranked = [[f"{each.unit} {each.probability:.1%}" for each in best_units(model.units, p, TOP)] for p in slots]
        product = float(np.prod([p[unit] for unit, p in zip(units, slots, strict=True)]))
        found.append(([" · ".join(guesses) for guesses in zip(*ranked, strict=True)], product))
    return found
