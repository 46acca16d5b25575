"""Sentences of a held-out corpus with masks, and the units that models predict for them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ernie_gram.api import Model
from ernie_gram.inference.units import best_units
from ernie_gram.reporting.markup import Cell, Html, element, escaped, joined, section, table
from ernie_gram.reporting.runs import Group, ReportedRun
from reader.corpus.memmap import Corpus
from reader.errors import InputError
from reader.system.progress import progress
from reader.tokenization.vocabulary import Vocabulary

# A sentence ends with one of these tokens, and has at least and at most so many units.
ENDS = ".!?。！？"
SHORTEST, LONGEST = 8, 24
# Units between the two masks of a sentence, at least.
DISTANCE = 2
# Units that are shown for each mask.
TOP = 5


@dataclass(frozen=True, order=True)
class Sentence:
    """Units of a corpus, of which some are to be masked.

    Attributes:
        units: identities; masked: their places, in order.
    """

    units: tuple[int, ...]
    masked: tuple[int, ...]


def chosen_sentences(corpus: Corpus, number: int) -> list[Sentence]:
    """Return sentences from all over a corpus, each with a masked n-gram and a masked word.

    Sentences without n-grams are taken if there are not enough others; then only a word is masked.
    """
    vocabulary, num_tokens = corpus.vocabulary, corpus.info.num_tokens
    ends = [i for i, token in enumerate(vocabulary.tokens) if vocabulary.text([i]).strip() in tuple(ENDS)]
    places = np.flatnonzero(np.isin(corpus.units, ends))
    starts, stops = places[:-1] + 1, places[1:] + 1
    # Of one document only.
    same = np.searchsorted(corpus.documents, starts, "right") == np.searchsorted(corpus.documents, stops - 1, "right")
    fits = np.flatnonzero(same & (stops - starts >= SHORTEST) & (stops - starts <= LONGEST))
    found, without = list[tuple[int, Sentence]](), list[tuple[int, Sentence]]()
    # Always the same ones of a corpus.
    for index in np.random.default_rng(0).permutation(fits).tolist():
        sentence = _masked(corpus.units[starts[index] : stops[index]].tolist(), vocabulary, num_tokens)
        if sentence:
            (found if len(sentence.masked) > 1 or not corpus.info.num_ngrams else without).append((index, sentence))
        if len(found) == number:
            break
    return [sentence for _, sentence in sorted([*found, *without][:number])]


def _masked(units: list[int], vocabulary: Vocabulary, num_tokens: int) -> Sentence | None:
    """Return a sentence with the masks nearest to its middle; None if no word can be masked, and for [UNK]."""
    if vocabulary.unk in units:
        return None
    middle = len(units) / 2
    by_distance = sorted(range(1, len(units) - 1), key=lambda place: abs(place - middle))
    ngram = next((place for place in by_distance if units[place] >= num_tokens), None)
    word = next(
        (
            place
            for place in by_distance
            if _is_word(units, place, vocabulary, num_tokens) and (ngram is None or abs(place - ngram) > DISTANCE)
        ),
        None,
    )
    if word is None:
        return None
    return Sentence(tuple(units), tuple(sorted([word, *([] if ngram is None else [ngram])])))


def _is_word(units: list[int], place: int, vocabulary: Vocabulary, num_tokens: int) -> bool:
    """Return whether a unit is a token that is a whole word of letters."""
    unit, after = units[place], units[place + 1]
    if unit >= num_tokens:
        return False
    token, text = vocabulary.tokens[unit], vocabulary.text([unit])
    is_whole = not token.startswith("##") and not (after < num_tokens and vocabulary.tokens[after].startswith("##"))
    return is_whole and text.isalpha() and (len(text) > 3 or not text.isascii())


def token_ids(sentence: Sentence, corpus: Corpus, mask: int, is_explicit: bool) -> tuple[list[int], list[list[int]]]:
    """Return the tokens of a sentence with masks, and the identities behind each mask.

    Args:
        is_explicit: whether an n-gram is one [MASK] and one identity, or else one of each for each of its tokens.
    """
    ids, gold = list[int](), list[list[int]]()
    num_tokens, offsets = corpus.info.num_tokens, corpus.ngram_offsets
    for place, unit in enumerate(sentence.units):
        tokens = [unit]
        if unit >= num_tokens:
            tokens = corpus.ngram_tokens[slice(*offsets[unit - num_tokens : unit - num_tokens + 2])].tolist()
        if place in sentence.masked:
            gold.append([unit] if is_explicit else tokens)
            tokens = [mask] * len(gold[-1])
        ids += tokens
    return ids, gold


def examples_part(groups: Sequence[Group], number: int, anchor: str) -> tuple[Html, list[str]]:
    """Return the section with filled masks of `number` held-out sentences, and notes on what could not be shown.

    The model is the newest checkpoint of the first run of each group.
    """
    runs = [group.runs[0] for group in groups]
    held_out = next((run.settings["paths.held_out"] for run in runs if run.settings.get("paths.held_out")), None)
    if held_out is None:
        return Html(""), ["no filled masks: the runs have no held-out corpus"]
    try:
        corpus = Corpus(Path(str(held_out)))
        sentences = chosen_sentences(corpus, number)
    except InputError as error:
        return Html(""), [f"no filled masks: {error}"]
    columns, notes = dict[str, list[list[list[Cell]]]](), list[str]()
    with progress("filling masks", len(runs), " models") as phase:
        for group, run in zip(groups, runs, strict=True):
            try:
                columns[group.label] = _filled(run, corpus, sentences)
            except InputError as error:
                notes.append(f"{run.name}: no filled masks: {error}")
            phase.advance(1)
    if not columns or not sentences:
        return Html(""), notes or [f"no filled masks: {corpus.path} has no sentences of {SHORTEST} to {LONGEST} units"]
    parts = [
        _shown(sentence, corpus, {label: found[i] for label, found in columns.items()})
        for i, sentence in enumerate(sentences)
    ]
    explained = (
        "Sentences of the held-out text. Each model reads its own kind of masks: one for an n-gram if it was trained "
        "with explicit masking, otherwise one for each token, whose predictions stand side by side. The last row "
        "has the probability of what was there."
    )
    return section("Filled masks", anchor, element("p", explained, class_="soft"), *parts, level=3), notes


def _filled(run: ReportedRun, corpus: Corpus, sentences: Sequence[Sentence]) -> list[list[list[Cell]]]:
    """Return for each sentence, and each of its masked units, the cells of a column: guesses, and the gold unit.

    Raises InputError if the run has no model, or not the vocabulary of the corpus.
    """
    model = Model.load(run.folder)
    model.check_heads()
    vocabulary, special = model.texts.vocabulary, corpus.vocabulary
    if vocabulary.fingerprint != special.fingerprint:
        raise InputError(f"{corpus.path} has another vocabulary")
    found = []
    for sentence in sentences:
        ids, gold = token_ids(sentence, corpus, vocabulary.mask, model.has_ngrams)
        row = np.array([vocabulary.cls, *ids, vocabulary.sep], np.int64)
        probabilities = list(model.probabilities(model.texts.masked_batch([row])))
        cells = []
        for behind in gold:
            slots = [probabilities.pop(0) for _ in behind]
            guesses = [best_units(model.units, slot, TOP) for slot in slots]
            names = [model.units.text(unit) for unit in behind]
            column = []
            for rank in range(TOP):
                parts = [
                    element(
                        "span",
                        element("span", each[rank].unit, class_="right" if each[rank].unit == name else ""),
                        element("span", f"{each[rank].probability:.1%}", class_="soft"),
                        class_="guess",
                    )
                    for each, name in zip(guesses, names, strict=True)
                    if rank < len(each)
                ]
                column.append(Cell(element("span", *parts, class_="guesses")))
            product = float(np.prod([slot[unit] for slot, unit in zip(slots, behind, strict=True)]))
            column.append(Cell(f"{product:.2%}", repr(product)))
            cells.append(column)
        found.append(cells)
    return found


def _shown(sentence: Sentence, corpus: Corpus, columns: dict[str, list[list[Cell]]]) -> Html:
    """Return a sentence with its masks marked, and a table for each mask: ranks x models."""
    pieces = []
    run: list[int] = []

    def flush() -> None:
        if run:
            tokens = [token for unit in run for token in token_ids(Sentence((unit,), ()), corpus, 0, False)[0]]
            pieces.append(escaped(corpus.vocabulary.text(tokens)))
            run.clear()

    for place, unit in enumerate(sentence.units):
        if place in sentence.masked:
            flush()
            pieces.append(element("span", corpus.names.text(unit), class_="mask"))
        else:
            run.append(unit)
    flush()
    tables = []
    for mask, place in enumerate(sentence.masked):
        what = corpus.names.text(sentence.units[place])
        rows = [[str(rank + 1), *(column[mask][rank] for column in columns.values())] for rank in range(TOP)]
        gold = [what, *(column[mask][TOP] for column in columns.values())]
        tables.append(table(["rank", *columns], rows, [gold], caption=what))
    return Html(element("p", joined(pieces, " "), class_="text") + element("div", *tables, class_="masks"))
