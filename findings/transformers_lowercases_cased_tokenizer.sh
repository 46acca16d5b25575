#!/usr/bin/env bash
# transformers 5.24.0 with tokenizers 0.23.3: AutoTokenizer on a folder of a BERT with a tokenizer.json.
#
# Behaviour: the normalizer's `lowercase` in tokenizer.json is overruled by `do_lower_case` of tokenizer_config.json,
# and by its default True if that file does not name it: a cased tokenizer is lowercased. It works the other way round
# as well. [CLS] and [SEP] are added though tokenizer.json has no post-processor. Only tokenizer_class
# PreTrainedTokenizerFast takes the file as it is.
#
# Why it surprises: tokenizer.json is the whole definition for the library `tokenizers`, which cuts the same text
# differently. A cased vocabulary trained there ends in lower case here: names fall into other rows of the embeddings or
# into [UNK], and no warning comes. Way round: write do_lower_case beside the file.
#
# Output seen (a line each, here broken):
# normalizer lowercase=False, tokenizer_config.json {}
#     tokenizers ['Polish', 'Nice'], transformers ['polish', 'nice'], encoded ['[CLS]', 'polish', 'nice', '[SEP]']
# ...lowercase=False, {"tokenizer_class": "BertTokenizer"}: the same
# ...lowercase=True, {"do_lower_case": false}: tokenizers ['polish', 'nice'], transformers ['Polish', 'Nice']
# ...lowercase=False, {"do_lower_case": false}: both ['Polish', 'Nice']
# ...lowercase=False, {"tokenizer_class": "PreTrainedTokenizerFast"}: both ['Polish', 'Nice'], no [CLS] and [SEP]
set -euo pipefail
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
cd "$tmp"
python3.11 -m venv env
env/bin/python -m pip install -q --disable-pip-version-check transformers==5.24.0 tokenizers==0.23.3
HF_HUB_OFFLINE=1 env/bin/python -W ignore - <<'EOF'
import json
from pathlib import Path

from tokenizers import Tokenizer, models, normalizers, pre_tokenizers
from transformers import AutoTokenizer

TEXT = "Polish Nice"
words = "[PAD] [UNK] [CLS] [SEP] [MASK] Polish polish Nice nice".split()


def folder(lowercase, **config):
    tokenizer = Tokenizer(models.WordPiece({word: number for number, word in enumerate(words)}, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=lowercase)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.save("tokenizer.json")
    Path("config.json").write_text(json.dumps({"model_type": "bert"}))
    Path("tokenizer_config.json").write_text(json.dumps(config))


def cut(lowercase, **config):
    folder(lowercase, **config)
    own = Tokenizer.from_file("tokenizer.json").encode(TEXT).tokens
    auto = AutoTokenizer.from_pretrained(".")
    row = own, auto.tokenize(TEXT), auto.convert_ids_to_tokens(auto(TEXT)["input_ids"])
    print(f"normalizer lowercase={lowercase}, tokenizer_config.json {json.dumps(config)}")
    print(f"    tokenizers {row[0]}, transformers {row[1]}, encoded {row[2]}")
    return row


cased, uncased = ["Polish", "Nice"], ["polish", "nice"]
rows = [cut(False), cut(False, tokenizer_class="BertTokenizer"), cut(True, do_lower_case=False),
        cut(False, do_lower_case=False), cut(False, tokenizer_class="PreTrainedTokenizerFast")]
expected = [(cased, uncased), (cased, uncased), (uncased, cased), (cased, cased), (cased, cased)]
added = [row[2][0] == "[CLS]" for row in rows]
same = [row[:2] for row in rows] == expected and added == [True, True, True, True, False]
raise SystemExit(0 if same else "the behaviour has changed")
EOF
