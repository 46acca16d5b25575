"""A report on a lexicon: its size, quantiles of counts and scores, example entries, and its coverage of a text."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from reader.corpus.units import UnitCutter, UnitNames
from reader.lexicon.lexicon_file import Lexicon
from reader.text.text_files import TextFiles, run_with_error_location
from reader.tokenization.vocabulary import Vocabulary

SEGMENT_BYTES = 1 << 22
QUANTILES = (0.0, 0.1, 0.25, 0.5, 0.75, 0.9, 1.0)
UNDERLINED, PLAIN = "\033[4;36m", "\033[0m"


def describe(lexicon: Lexicon, entries: int) -> Iterator[str]:
    """Yield the lines of a report: for every order l its size, quantiles of counts and scores, and example entries.

    `entries` is the number of examples from each of the top, the middle and the end of the list.
    """
    ngrams = lexicon.ngrams
    rare = f"; without those that occur less than {lexicon.info.min_count:,} times" * (lexicon.info.min_count > 1)
    yield f"{len(lexicon):,} n-grams; {lexicon.info.left_out:,} left out because of their number of tokens{rare}"
    for order in dict.fromkeys(ngrams.orders.tolist()):
        indices = np.flatnonzero(ngrams.orders == order)
        requested, total = lexicon.info.top.get(str(order), 0), lexicon.info.totals[str(order)]
        yield ""
        yield f"{order} words: {len(indices):,} of {requested:,} requested; the text has {total:,} occurrences"
        yield "  quantile " + "".join(f"{quantile:>12.0%}" for quantile in QUANTILES)
        for what, values in (("count", ngrams.counts), ("t", ngrams.t)):
            quantiles = np.quantile(values[indices], QUANTILES, method="nearest")
            yield f"  {what:<9}" + "".join(f"{value:>12,.1f}" for value in quantiles)
        middle = max(0, len(indices) // 2 - entries // 2)
        for name, shown in (
            ("top", indices[:entries]),
            ("middle", indices[middle : middle + entries]),
            ("last", indices[-entries:]),
        ):
            texts = (f"{ngrams.text(i)} ({ngrams.counts[i]:,})" for i in shown)
            yield f"  {name + ':':<9}{', '.join(texts)}"


def coverage(lexicon: Lexicon, vocabulary: Vocabulary, text: TextFiles) -> str:
    """Return one line: the numbers of tokens and units of a text, and the share of its tokens inside n-grams.

    Raises InputError for invalid text, and if the lexicon was made with another vocabulary.
    """
    cutter = UnitCutter(vocabulary, lexicon)
    sizes = np.diff(cutter.ngram_offsets)
    units = tokens = ngrams = tokens_in_ngrams = 0
    seen = np.zeros(len(lexicon), bool)
    for segment in text.segments(SEGMENT_BYTES):
        cut = run_with_error_location(lambda segment: cutter.cut(segment.text()), segment).units
        matched = cut[cut >= len(vocabulary)] - len(vocabulary)
        seen[matched] = True
        units, ngrams = units + len(cut), ngrams + len(matched)
        tokens_in_ngrams += int(sizes[matched].sum())
        tokens += len(cut) - len(matched) + int(sizes[matched].sum())
    share = tokens_in_ngrams / tokens if tokens else 0.0
    return (
        f"{tokens:,} tokens in {units:,} units: {share:.1%} of the tokens are in n-grams ({ngrams:,} n-grams, "
        f"{seen.sum():,} distinct: {seen.sum() / max(1, len(seen)):.1%} of the lexicon)"
    )


def cut_text(lexicon: Lexicon, vocabulary: Vocabulary, lines: list[str], coloured: bool) -> Iterator[str]:
    """Yield lines of text, cut into units, with n-grams underlined if `coloured`, else in brackets.

    Raises InputError if the lexicon was made with another vocabulary.
    """
    names = UnitNames(vocabulary, lexicon)
    units, starts, _ = UnitCutter(vocabulary, lexicon).cut("".join(f"{line}\n" for line in lines).encode())
    before, after = (UNDERLINED, PLAIN) if coloured else ("[", "]")
    for line in range(len(lines)):
        line_units = units[starts[line] : starts[line + 1]].tolist()
        yield vocabulary.text(
            f"{before}{names.text(unit)}{after}" if unit >= len(vocabulary) else unit for unit in line_units
        )
