"""A look at a lexicon: how large it is, how its scores lie, who is in it, and what it does to a text."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from reader.corpus.builder import UnitCutter
from reader.corpus.memmap import UnitNames
from reader.lexicon.lexicon_file import Lexicon
from reader.text.text_files import TextFiles, run_with_error_location
from reader.tokenization.vocabulary import Vocabulary

SEGMENT_BYTES = 1 << 22
QUANTILES = (0.0, 0.1, 0.25, 0.5, 0.75, 0.9, 1.0)
UNDERLINED, PLAIN = "\033[4;36m", "\033[0m"


def describe(lexicon: Lexicon, entries: int) -> Iterator[str]:
    """Lines: for every order l its size, the quantiles of counts and scores, and its top, middle and last entries."""
    ngrams = lexicon.ngrams
    yield f"{len(lexicon):,} n-grams; {lexicon.info.left_out:,} left out for their number of tokens"
    for order in dict.fromkeys(ngrams.orders.tolist()):
        numbers = np.flatnonzero(ngrams.orders == order)
        asked, total = lexicon.info.top.get(str(order), 0), lexicon.info.totals[str(order)]
        yield ""
        yield f"{order} words: {len(numbers):,} of {asked:,} asked for, out of {total:,} in the text"
        yield "  quantile " + "".join(f"{quantile:>12.0%}" for quantile in QUANTILES)
        for what, values in (("count", ngrams.counts), ("t", ngrams.t)):
            quantiles = np.quantile(values[numbers], QUANTILES, method="nearest")
            yield f"  {what:<9}" + "".join(f"{value:>12,.1f}" for value in quantiles)
        middle = max(0, len(numbers) // 2 - entries // 2)
        for name, chosen in (
            ("top", numbers[:entries]),
            ("middle", numbers[middle : middle + entries]),
            ("last", numbers[-entries:]),
        ):
            shown = (f"{ngrams.text(i)} ({ngrams.counts[i]:,})" for i in chosen)
            yield f"  {name + ':':<9}{', '.join(shown)}"


def coverage(lexicon: Lexicon, vocabulary: Vocabulary, text: TextFiles) -> str:
    """How much of a text lies in n-grams, and how much shorter it gets, in a line.

    Raises InputError if the lexicon was made for another vocabulary.
    """
    cutter = UnitCutter(vocabulary, lexicon)
    sizes = np.diff(cutter.ngram_offsets)
    units = tokens = ngrams = inside = 0
    seen = np.zeros(len(lexicon), bool)
    for segment in text.segments(SEGMENT_BYTES):
        found = run_with_error_location(lambda segment: cutter.cut(segment.text()), segment).units
        matched = found[found >= len(vocabulary)] - len(vocabulary)
        seen[matched] = True
        units, ngrams = units + len(found), ngrams + len(matched)
        inside += int(sizes[matched].sum())
        tokens += len(found) - len(matched) + int(sizes[matched].sum())
    share = inside / tokens if tokens else 0.0
    return (
        f"{tokens:,} tokens in {units:,} units: {share:.1%} of the tokens lie in n-grams ({ngrams:,} of them, "
        f"{seen.sum():,} different: {seen.sum() / max(1, len(seen)):.1%} of the lexicon)"
    )


def cut_text(lexicon: Lexicon, vocabulary: Vocabulary, lines: list[str], coloured: bool) -> Iterator[str]:
    """Lines cut into their units: n-grams underlined, or in brackets where there are no colours.

    Raises InputError if the lexicon was made for another vocabulary.
    """
    names = UnitNames(vocabulary, lexicon)
    units, starts, _ = UnitCutter(vocabulary, lexicon).cut("".join(f"{line}\n" for line in lines).encode())
    before, after = (UNDERLINED, PLAIN) if coloured else ("[", "]")
    for line in range(len(lines)):
        found = units[starts[line] : starts[line + 1]].tolist()
        yield vocabulary.text(
            f"{before}{names.text(unit)}{after}" if unit >= len(vocabulary) else unit for unit in found
        )
