#!/usr/bin/env bash
# tokenizers 0.23.3 against Python 3.11's unicodedata (Unicode 14): one wheel with several versions of Unicode.
#
# Behaviour: lower-casing knows letters that Unicode 14 does not have yet, but punctuation, accents and NFKC come from
# tables older than 14 (NFKC lacks the square era name Reiwa, which is in Unicode since 2019). And BertNormalizer keeps
# unassigned characters, which the Python tokenizer of transformers 4 drops (every category that begins with C): under
# 3.11 the Han of extension H too.
#
# Why it surprises: the two are meant to cut alike. Vocabulary, lexicon and counts made by a Python tokenizer and by the
# fast one differ, the Python side changes with the interpreter (3.12 has Unicode 15), and updating the wheel does not
# align its own tables.
#
# Output seen:
# punctuation that BertPreTokenizer does not split           104  such as U+061D U+09FD U+0A76 U+0C77 U+0C84
# characters that NFKC leaves as they are                     72  such as U+32FF U+A7F2 U+A7F3 U+A7F4 U+AB69
# accents (Mn) that StripAccents leaves                      260  such as U+07FD U+0898 U+0899 U+089A U+089B
# letters that Lowercase knows and Unicode 14 does not        55  such as U+1C89 U+A7CB U+A7CC U+A7CE U+A7D2
# unassigned characters that BertNormalizer keeps         829834  such as U+0378 U+0379 U+0380 U+0381 U+0382
#     of them Han of extension H (Unicode 15)               4192  such as U+31350 U+31351 U+31352 U+31353 U+31354
# NFKC of U+32FF: Python 令和 tokenizers ㋿
set -euo pipefail
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
cd "$tmp"
python3.11 -m venv env
env/bin/python -m pip install -q --disable-pip-version-check tokenizers==0.23.3
env/bin/python - <<'EOF'
import unicodedata

from tokenizers import normalizers, pre_tokenizers

assert unicodedata.unidata_version == "14.0.0", "run it with Python 3.11"
clean = normalizers.BertNormalizer(clean_text=True, handle_chinese_chars=False, strip_accents=False, lowercase=False)
split, lower, nfkc = pre_tokenizers.BertPreTokenizer(), normalizers.Lowercase(), normalizers.NFKC()
strip = normalizers.StripAccents()
characters = [chr(code) for code in range(0x110000) if not 0xD800 <= code < 0xE000]
category = {c: unicodedata.category(c) for c in characters}

unsplit = [c for c in characters if category[c][0] == "P" and len(split.pre_tokenize_str(f"a{c}b")) == 1]
unmapped = [c for c in characters if unicodedata.normalize("NFKC", c) != c and nfkc.normalize_str(c) == c]
marks = [c for c in characters if category[c] == "Mn" and strip.normalize_str(c) == c]
newer = [c for c in characters if category[c] == "Cn" and lower.normalize_str(c) != c]
kept = [c for c in characters if category[c] == "Cn" and c in clean.normalize_str(f"a{c}b")]
later = [c for c in kept if 0x31350 <= ord(c) <= 0x323AF]  # Han, extension H

rows = {
    "punctuation that BertPreTokenizer does not split": unsplit,
    "characters that NFKC leaves as they are": unmapped,
    "accents (Mn) that StripAccents leaves": marks,
    "letters that Lowercase knows and Unicode 14 does not": newer,
    "unassigned characters that BertNormalizer keeps": kept,
    "    of them Han of extension H (Unicode 15)": later,
}
for name, found in rows.items():
    print(f"{name:55s}{len(found):7d}  such as " + " ".join(f"U+{ord(c):04X}" for c in found[:5]))
print("NFKC of U+32FF: Python", unicodedata.normalize("NFKC", "\u32ff"), "tokenizers", nfkc.normalize_str("\u32ff"))
counts = [len(found) for found in rows.values()]
raise SystemExit(0 if counts == [104, 72, 260, 55, 829834, 4192] else "the behaviour has changed")
EOF
