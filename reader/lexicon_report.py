"""A report on a lexicon: its size, quantiles of counts and scores, example entries, and its coverage of a text."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from reader.corpus.units import UnitCutter, UnitNames, token_counts
from reader.errors import counted
from reader.lexicon.lexicon_file import Lexicon
from reader.text.text_files import TextFiles, run_with_error_location
from reader.tokenization.vocabulary import unknown_share

SEGMENT_BYTES = 1 << 22
QUANTILES = (0.0, 0.1, 0.25, 0.5, 0.75, 0.9, 1.0)
UNDERLINED, PLAIN = "\033[4;36m", "\033[0m"


def describe(lexicon: Lexicon, entries: int) -> Iterator[str]:
    """Yield the lines of a report: for every order l its size, quantiles of counts and scores, and example entries.

    `entries` is the number of examples from each of the top, the middle and the end of the list.
    """
    ngrams, info = lexicon.ngrams, lexicon.info
    rare = f"; without those that occur less than {info.min_count:,} times" * (info.min_count > 1)
    left_out = f"{info.left_out:,} left out because of their tokens{rare}"
    origin = f" of the list {info.own}, not counted here" if info.own else ""
    yield f"{counted(len(lexicon), 'n-gram')}{origin}; {left_out}"
    for order in dict.fromkeys(ngrams.orders.tolist()):
        indices = np.flatnonzero(ngrams.orders == order)
        yield ""
        if info.own:
            yield f"{counted(order, 'word')}: {len(indices):,}"
        else:
            of = f"{len(indices):,} of {info.top.get(str(order), 0):,} requested"
            total = counted(info.totals[str(order)], "occurrence")
            yield f"{counted(order, 'word')}: {of}; the text has {total}"
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


def coverage(cutter: UnitCutter, text: TextFiles) -> tuple[str, float]:
    """Return a line with the numbers of tokens and units of a text and the share of its tokens inside n-grams, and the
    share of [UNK] in its tokens.

    Raises InputError for invalid text.
    """
    num_ngrams = len(cutter.ngram_offsets) - 1
    counts = np.zeros(cutter.num_tokens + num_ngrams, np.int64)
    for segment in text.segments(SEGMENT_BYTES):
        cut = run_with_error_location(lambda segment: cutter.cut(segment.text()), segment).units
        counts += np.bincount(cut, minlength=len(counts))
    of_tokens = token_counts(counts, cutter.ngram_tokens, cutter.ngram_offsets)
    of_ngrams = counts[cutter.num_tokens :]
    tokens, ngrams, distinct = of_tokens.sum(), of_ngrams.sum(), np.count_nonzero(of_ngrams)
    share = (of_ngrams @ np.diff(cutter.ngram_offsets)) / max(1, tokens)
    unknown = unknown_share(of_tokens, cutter.vocabulary)
    line = (
        f"{counted(tokens, 'token')} in {counted(counts.sum(), 'unit')}: {share:.1%} of the tokens are in n-grams "
        f"({counted(ngrams, 'n-gram')}, {distinct:,} distinct: {distinct / max(1, num_ngrams):.1%} of the lexicon), "
        f"{unknown:.2%} are [UNK]"
    )
    return line, unknown


def cut_text(cutter: UnitCutter, lines: list[str], coloured: bool) -> Iterator[str]:
    """Yield lines of text, cut into units, with n-grams underlined if `coloured`, else in brackets."""
    names = UnitNames(cutter.vocabulary, cutter.lexicon)
    units, starts, _ = cutter.cut("".join(f"{line}\n" for line in lines).encode())
    before, after = (UNDERLINED, PLAIN) if coloured else ("[", "]")
    for line in range(len(lines)):
        line_units = units[starts[line] : starts[line + 1]].tolist()
        yield cutter.vocabulary.text(
            f"{before}{names.text(unit)}{after}" if unit >= cutter.num_tokens else unit for unit in line_units
        )
