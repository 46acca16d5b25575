"""The n-gram lexicon V_N: its file, and what a look-up needs of it.

`lexicon.tsv` is for people: a header, then `ngram<TAB>count<TAB>t`, words joined by a space, sorted by length
and then by t downwards. `lexicon.tsv.json` beside it holds what made it. N-gram i of the file has identity F + i.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from reader.errors import InputError
from reader.lexicon.ngrams import NGrams
from reader.system.atomic_files import atomic_file, sha256_of

HEADER = "ngram\tcount\tt"


@dataclass(frozen=True)
class LexiconInfo:
    """What made a lexicon.

    Attributes:
        vocabulary: fingerprint of the vocabulary whose rules split the words.
        han: the segmenter that found words of Han characters (see segmenters.py).
        text: the digest of the text counted (see text_digest.py).
        totals: order l -> N_l.
        top: order l -> k_l asked for.
        max_ngram_tokens: n-grams of more sub-word tokens were left out, and of one.
        left_out: how many were, among the best k_l.
        sha256: of the TSV.
    """

    vocabulary: str
    han: str
    text: str
    totals: dict[str, int]
    top: dict[str, int]
    max_ngram_tokens: int
    left_out: int
    sha256: str = ""


@dataclass(frozen=True)
class Lexicon:
    """N-grams in file order, and where they come from."""

    ngrams: NGrams
    info: LexiconInfo

    def __len__(self) -> int:
        return len(self.ngrams.counts)

    @property
    def fingerprint(self) -> str:
        """SHA-256 of the n-grams, and of the vocabulary and the segmenter they were split by."""
        made_of = f"{self.info.vocabulary}\n{self.info.han}\n{self.info.sha256}"
        return hashlib.sha256(made_of.encode()).hexdigest()

    def save(self, path: Path) -> None:
        """Write the TSV, then the JSON that vouches for it: without its JSON a TSV is not a lexicon."""
        with atomic_file(path) as partial, partial.open("w", encoding="utf-8", newline="\n") as file:
            file.write(HEADER + "\n")
            columns = self.ngrams.texts(), self.ngrams.counts.tolist(), self.ngrams.t.tolist()
            file.writelines(map("{}\t{}\t{!r}\n".format, *columns))
        info = asdict(self.info) | {"sha256": sha256_of(path)}
        with atomic_file(info_path(path)) as partial:
            partial.write_text(json.dumps(info, indent=1) + "\n")

    @classmethod
    def load(cls, path: Path) -> Lexicon:
        """Read a lexicon; raises InputError if it is absent, damaged or edited."""
        if not path.is_file():
            raise InputError(f"{path}: no such lexicon; make one with `python -m reader.build lexicon`")
        try:
            info = LexiconInfo(**json.loads(info_path(path).read_text()))
        except FileNotFoundError as error:
            raise InputError(f"{info_path(path)}: missing; the lexicon was not finished, build it again") from error
        except (ValueError, TypeError) as error:
            raise InputError(f"{info_path(path)}: not a lexicon's description: {error}") from error
        if sha256_of(path) != info.sha256:
            raise InputError(f"{path}: differs from what {info_path(path).name} vouches for; build it again")
        header, _, rows = path.read_text(encoding="utf-8").partition("\n")
        if header != HEADER:
            raise InputError(f"{path}:1: expected the header {HEADER!r}")
        fields = rows.replace("\n", "\t").split("\t")[:-1]
        texts, counts, t = (fields[column::3] for column in range(3))
        numbers = np.fromiter(map(int, counts), np.int64), np.fromiter(map(float, t), np.float64)
        return cls(NGrams.of_texts(texts, *numbers), info)


def segmenter_of(lexicon: Lexicon | None) -> str:
    """How words of Han characters are found (see segmenters.py): the lexicon's way, or one by one without it."""
    return lexicon.info.han if lexicon else "char"


def info_path(path: Path) -> Path:
    """Where a lexicon's description lies."""
    return path.with_name(path.name + ".json")
