"""Messages of the commands of the reader: what to know about the result, and what to do next."""

from __future__ import annotations

from reader.lexicon.lexicon_file import LexiconInfo


def explain_empty_lexicon(info: LexiconInfo, order: int) -> str:
    """Return why the lexicon is empty; `order` is the lowest order of --top."""
    if info.left_out:
        return (
            f"all {info.left_out:,} n-grams have a single sub-word token, or more than {info.max_ngram_tokens} "
            "(--max_ngram_tokens)"
        )
    return "no words of several Han characters" if order == 1 else f"too little text for an n-gram of {order} words"
