"""The part of the page for which models are loaded: filled masks of held-out sentences."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ernie_gram.api import Model
from ernie_gram.reporting import masks
from ernie_gram.reporting.examples import LONGEST, SHORTEST, chosen_sentences
from ernie_gram.reporting.markup import Html, element, section
from ernie_gram.reporting.runs import Group, ReportedRun, corpus_info
from reader.corpus.memmap import Corpus
from reader.errors import InputError
from reader.system.progress import progress

# Tokens of a sentence, without [CLS] and [SEP]: longer ones make large pictures.
MAX_TOKENS = 30


def model_parts(groups: Sequence[Group], number: int) -> tuple[list[Html], list[str]]:
    """Return the section with filled masks, and notes on what could not be shown.

    Masks are filled in `number` held-out sentences, by the models of the first run of each group.
    """
    runs = {group.label: group.runs[0] for group in groups}
    with_text = [run for run in runs.values() if run.settings.get("paths.held_out")]
    if not with_text:
        return [], ["no filled masks: the runs have no held-out corpus"]
    # The held-out corpus of another run may have no lexicon.
    evaluated = next((run for run in with_text if run.settings.get("objective.masking") == "explicit"), with_text[0])
    held_out = evaluated.settings["paths.held_out"]
    try:
        corpus = Corpus(Path(str(held_out)))
        if evaluated.held_out and corpus_info(held_out) != evaluated.held_out:
            raise InputError(f"{held_out} is not the corpus that {evaluated.name} was evaluated on")
        sentences = chosen_sentences(corpus, number, _max_tokens(list(runs.values())))
    except InputError as error:
        return [], [f"no filled masks: {error}"]
    if not sentences:
        return [], [f"no filled masks: {corpus.path} has no sentences of {SHORTEST} to {LONGEST} units"]
    columns, notes = dict[str, list[masks.Column]](), list[str]()
    with progress("filling masks", len(runs), " models") as bar:
        for label, run in runs.items():
            try:
                model = Model.load(run.folder)
                notes += [f"{run.name}: {note}" for note in model.notes]
                columns[label] = masks.filled(model, corpus, sentences)
            except InputError as error:
                notes.append(f"{run.name}: no filled masks: {error}")
            finally:
                bar.update(1)
    if not columns:
        return [], notes
    shown = [
        masks.masks_of_sentence(sentence, corpus, {label: found[i] for label, found in columns.items()})
        for i, sentence in enumerate(sentences)
    ]
    explained = element("p", masks.EXPLAINED, class_="soft")
    return [section("Filled masks", "masks", explained, *shown, level=3)], notes


def _max_tokens(runs: Sequence[ReportedRun]) -> int:
    """Return the maximum number of tokens of a sentence: at most MAX_TOKENS, and no more than every model can read."""
    lengths = [run.settings.get("data.max_seq_len") for run in runs]
    return min([MAX_TOKENS, *(length - 2 for length in lengths if isinstance(length, int))])
