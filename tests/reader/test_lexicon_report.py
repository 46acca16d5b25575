"""The report on a lexicon, for a lexicon that can be counted by hand and for the shared one."""

from __future__ import annotations

from pathlib import Path

from reader.build import main
from reader.corpus.memmap import Corpus
from reader.corpus.units import UnitCutter
from reader.lexicon.lexicon_file import Lexicon
from reader.lexicon_report import coverage, cut_text
from reader.text.text_files import TextFiles
from reader.tokenization.vocabulary_file import load_vocabulary
from tests.support.commands import build, call


def test_coverage_and_cut_text_agree_with_the_corpus(built: Path, corpus: Corpus) -> None:
    vocabulary, lexicon = load_vocabulary(built / "vocab.txt"), Lexicon.load(built / "lexicon.tsv")
    cutter = UnitCutter(vocabulary, lexicon)
    line, unknown = coverage(cutter, TextFiles([built / "train.txt"]))
    info = corpus.info
    assert line.startswith(f"{info.tokens:,} tokens in {info.units:,} units: ")
    assert f"({info.ngram_units:,} n-grams, " in line
    inside = 1 - (info.units - info.ngram_units) / info.tokens
    assert f"units: {inside:.1%} of the tokens" in line
    distinct = (corpus.unit_counts[info.num_tokens :] > 0).sum()
    assert f", {distinct:,} distinct: " in line
    assert line.endswith(f"of the lexicon), {unknown:.2%} are [UNK]")
    assert unknown == corpus.unknown_share == 0
    first = lexicon.ngrams.text(0)
    shown = list(cut_text(cutter, [f"{first.upper()}!", "zyx"], coloured=False))
    assert shown == [f"[{first}] !", "zyx"]
    assert "\033[4" in next(cut_text(cutter, [first], coloured=True))


def test_report_shows_sizes_quantiles_and_entries(tmp_path: Path) -> None:
    text, vocab, lexicon = tmp_path / "t.txt", tmp_path / "v.txt", tmp_path / "l.tsv"
    text.write_text("new york is new york .\nnew york was york .\n" * 4)
    build("vocab", "--input", str(text), "--size", "60", "--output", str(vocab))
    build("lexicon", "--input", str(text), "--vocab", str(vocab), "--top", "2:3", "--output", str(lexicon))
    done = call(main, "inspect", str(lexicon), "--entries", "1")
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    # The text has 4 lines of 5 words and 4 lines of 4 words, so 4 x (5 - 1) + 4 x (4 - 1) bigrams; "." is not a word.
    assert "2 words: 3 of 3 requested; the text has 28 occurrences" in lines
    counts = Lexicon.load(lexicon).ngrams.counts
    row = next(line for line in lines if line.startswith("  count"))
    assert (row.split()[1], row.split()[-1]) == (f"{min(counts):.1f}", f"{max(counts):.1f}")
    assert "  top:     new york (12)" in lines
    done = call(main, "inspect", str(lexicon), "--input", str(text), "--vocab", str(vocab))
    assert "[new york]" in done.stdout
    for arguments, message in (
        ([str(tmp_path / "no.tsv")], "no such lexicon"),
        ([str(lexicon), "--input", str(text)], "--vocab: must be given with --input"),
        ([str(lexicon), "--input", str(text), "--vocab", str(vocab), "--cased"], "made with another vocabulary"),
    ):
        done = call(main, "inspect", *arguments)
        assert done.returncode == 2
        assert message in done.stderr.splitlines()[-1]
