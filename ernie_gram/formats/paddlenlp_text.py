"""What the card of a PaddleNLP folder says about loading it, and about PaddleNLP's tokenizer. See model_card.py."""

from __future__ import annotations

from ernie_gram.formats.model_card import Usage
from ernie_gram.formats.paddlenlp_config import VERSION

EXAMPLE = "exact_relative_position.py"

_LOADING = f"""
PaddleNLP ({VERSION} was tested) loads this folder. In the folder, run:

```python
import paddle
from paddlenlp.transformers import AutoModel, AutoTokenizer
IMPORT
tokenizer, model = AutoTokenizer.from_pretrained("."), AutoModel.from_pretrained(".")
model.eval()
inputs = tokenizer(["Give the texts", "in a list."], padding=True, return_tensors="pd")
CALL
```

`sequence_output` is float32 [texts, tokens, hidden_size]. For fine-tuning, load the folder with
`ErnieGramForSequenceClassification`, `ErnieGramForTokenClassification` or `ErnieGramForQuestionAnswering`.
"""
_PLAIN_CALL = "sequence_output, pooled_output = model(**inputs)"

_EXACT_CALL = """table = model.embeddings.rel_pos_embeddings.weight.numpy()
mask = attention_mask(table, inputs["input_ids"].numpy() != tokenizer.pad_token_id)
sequence_output, pooled_output = model(
    inputs["input_ids"], inputs["token_type_ids"], attention_mask=paddle.to_tensor(mask)
)"""
_EXACT_HEADS = f"""
`{EXAMPLE}` needs nothing but numpy. The ErnieGramFor... classes take the same mask; there, the table is
`model.ernie_gram.embeddings.rel_pos_embeddings.weight`. The mask is a constant in PaddleNLP: fine-tuning there does not
train the table. Without the mask, PaddleNLP computes something else.
"""

# Only in the folder itself: the copy of the card in community/ is for readers.
PUBLISHING = """
## Before you publish this folder

`community/` holds what PaddleNLP's listing of models asks for. Put the name of your organisation in place of
`ORGANISATION`, in the name of the folder and in the addresses of `files.json`, and upload the four files to these
addresses. State the licence and the training data in the front matter and the text of both cards. Then remove this
section.
"""

TOKENIZER = """
`ErnieGramTokenizer` gives the token IDs with which the model was trained, except for:

- Symbols (Unicode category S, for example € ° → ™ and emoji) and the characters U+00AD U+00B2 U+00BA U+3007 U+00B5
  U+00D8 U+014B U+01B1: it makes each of them a word, while the model was trained with BERT's rules, which split at
  white space, punctuation and Han characters only. A word with a symbol inside therefore gets other tokens.
- The names of the special tokens, such as `[SEP]` or `[MASK]`, written in a text: it makes them the special token; the
  model was trained with brackets and letters.

Measured with ERNIE's vocabularies and PaddleNLP VERSION, over the distinct fields of the files: 45 of 74,508 fields
have other token IDs in GLUE's development sets, 106 of 55,768 in CLUE's, all of them because of symbols.
""".replace("VERSION", VERSION)


def usage(needs_mask: bool) -> Usage:
    """Return PaddleNLP's part of a model card; `needs_mask` if only the mask of EXAMPLE makes the outputs exact."""
    loading = _LOADING.replace(
        "IMPORT", f"from {EXAMPLE.removesuffix('.py')} import attention_mask\n" if needs_mask else ""
    )
    loading = loading.replace("CALL", _EXACT_CALL if needs_mask else _PLAIN_CALL)
    return Usage("paddlenlp", loading + (_EXACT_HEADS if needs_mask else ""), TOKENIZER)
