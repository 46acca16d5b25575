"""Fill the masks of sentences: the units that a model predicts, and the probability of the original units."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby

import numpy as np

from ernie_gram.api import Model
from ernie_gram.inference.units import Guess, best_units
from ernie_gram.reporting.examples import Sentence, masked_tokens, text_of
from ernie_gram.reporting.markup import Cell, Html, element, escaped, joined, table
from reader.corpus.memmap import Corpus
from reader.errors import InputError

# Units that are shown for each mask.
TOP = 5
EXPLAINED = (
    "Sentences of the held-out text. Each model reads its own kind of masks: one for an n-gram if it was trained with "
    "explicit masking, otherwise one for each token, whose predictions stand side by side. The last row has the "
    "original unit and its probability."
)

# For each masked unit of a sentence, the cells of a column: guesses, and the probability of the unit.
Column = list[list[Cell]]


def filled(model: Model, corpus: Corpus, sentences: Sequence[Sentence]) -> list[Column]:
    """Return a column for each sentence.

    Raises InputError if the model cannot fill masks, or if its units are not those of the corpus.
    """
    model.check_heads()
    if model.has_ngrams and (lexicon := model.units.lexicon) and lexicon.fingerprint != corpus.info.lexicon:
        raise InputError(f"{corpus.path} was made with another lexicon")
    vocabulary = model.texts.vocabulary
    columns = []
    for sentence in sentences:
        ids, gold = masked_tokens(sentence, corpus, vocabulary.mask, model.has_ngrams)
        row = np.array([vocabulary.cls, *ids, vocabulary.sep], np.int64)
        probabilities = list(model.probabilities(model.texts.masked_batch([row])))
        column = []
        for behind in gold:
            slots = [probabilities.pop(0) for _ in behind]
            guesses = [best_units(model.units, slot, TOP) for slot in slots]
            names = [model.units.text(unit) for unit in behind]
            cells = [_cell([each[rank] for each in guesses if rank < len(each)], names) for rank in range(TOP)]
            product = float(np.prod([slot[unit] for slot, unit in zip(slots, behind, strict=True)]))
            column.append([*cells, Cell(f"{100 * product:.3g}%", repr(product))])
        columns.append(column)
    return columns


def _cell(guesses: Sequence[Guess], names: Sequence[str]) -> Cell:
    """Return a cell with a guess for each of several neighbouring masks; right ones are marked."""
    parts = [
        element(
            "span",
            element("span", guess.unit, class_="right" if guess.unit == name else ""),
            element("span", f"{guess.probability:.1%}", class_="soft"),
            class_="guess",
        )
        for guess, name in zip(guesses, names, strict=False)
    ]
    return Cell(element("span", *parts, class_="guesses"))


def masks_of_sentence(sentence: Sentence, corpus: Corpus, columns: Mapping[str, Column]) -> Html:
    """Return a sentence with its masks marked, and a table for each mask: ranks x models."""
    pieces: list[str] = []
    for is_masked, places in groupby(range(len(sentence.units)), lambda place: place in sentence.masked):
        units = [sentence.units[place] for place in places]
        if is_masked:
            pieces += [element("span", text_of(corpus, [unit]), class_="mask") for unit in units]
        else:
            pieces.append(escaped(text_of(corpus, units)))
    tables = []
    for mask, place in enumerate(sentence.masked):
        what = text_of(corpus, [sentence.units[place]])
        rows = [[str(rank + 1), *(column[mask][rank] for column in columns.values())] for rank in range(TOP)]
        gold = [what, *(column[mask][TOP] for column in columns.values())]
        tables.append(table(["rank", *columns], rows, [gold], caption=what))
    return joined([element("p", joined(pieces, " "), class_="text"), element("div", *tables, class_="masks")])
