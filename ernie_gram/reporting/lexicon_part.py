"""The part of the page about lexicons: n-grams by length, how often they occur, and their share of the tokens."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ernie_gram.reporting.markup import Cell, Html, element, numeric, section, table
from ernie_gram.reporting.runs import ReportedRun, is_number
from reader.corpus.memmap import LEXICON
from reader.errors import InputError, counted
from reader.lexicon.lexicon_file import Lexicon

TOP = 12


def lexicon_part(runs: Sequence[ReportedRun]) -> tuple[Html, list[str]]:
    """Return the section with a table for each distinct lexicon, "" without any, and notes on damaged ones."""
    found: dict[str, tuple[Lexicon, list[ReportedRun]]] = {}
    notes = []
    for run in runs:
        path = run.folder / LEXICON
        if not path.is_file():
            continue
        try:
            lexicon = Lexicon.load(path)
        except InputError as error:
            notes.append(str(error))
            continue
        found.setdefault(lexicon.fingerprint, (lexicon, []))[1].append(run)
    tables = [_describe(lexicon, members, len(found) > 1) for lexicon, members in found.values() if len(lexicon)]
    return (section("Lexicon", "lexicon", *tables, level=3) if tables else Html("")), notes


def _describe(lexicon: Lexicon, runs: Sequence[ReportedRun], names_runs: bool) -> Html:
    ngrams = lexicon.ngrams
    rows = []
    for order in np.unique(ngrams.orders).tolist():
        indices = np.flatnonzero(ngrams.orders == order)
        counts = ngrams.counts[indices]
        total = lexicon.info.totals.get(str(order))
        share = f"{counts.sum() / total:.1%}" if total else ""
        frequent = indices[np.argsort(-counts, kind="stable")[:TOP]]
        examples = ", ".join(f"{ngrams.text(i)} ({ngrams.counts[i]:,})" for i in frequent)
        numbers = (f"{len(indices):,}", f"{counts.sum():,}", share, f"{int(np.median(counts)):,}", f"{counts.min():,}")
        rows.append([counted(order, "word"), *numeric(*numbers), Cell(examples, style="long")])
    head = ["length", *numeric("n-grams", "occurrences", "share", "median", "least")]
    title = f"{len(lexicon):,} n-grams"
    lines = [f"{title} of {', '.join(run.name for run in runs)}." if names_runs else f"{title}.", _share(runs[0])]
    explained = "Counts are those of the lexicon's own text; the share is that of all n-grams of this length in it."
    if lexicon.info.own:
        explained = f"The n-grams and their counts are those of the list {lexicon.info.own}; they were not counted."
    return Html(
        element("p", " ".join(line for line in lines if line))
        + table([*head, f"most frequent {TOP}"], rows)
        + element("p", explained, class_="soft")
    )


def _share(run: ReportedRun) -> str:
    """Return the share of the held-out tokens that are inside n-grams, "" if it is not known."""
    tokens, units, ngram_units = (run.held_out.get(key) for key in ("tokens", "units", "ngram_units"))
    if not (is_number(tokens) and is_number(units) and is_number(ngram_units)) or not tokens:
        return ""
    # A unit that is no n-gram is one token.
    return f"{(tokens - (units - ngram_units)) / tokens:.1%} of the held-out tokens are inside n-grams."
