"""The contract between the kinds of tasks and their networks: the batch fields beside those of the encoder.

Shape letters: S samples; B inputs (rows) of the batch, B = S unless a sample has several inputs; L slots, the maximum
over the batch; O options, the maximum over the batch; M slots that are predicted.
"""

from __future__ import annotations

from reader.batches.fields import INPUT_IDS, LENGTHS, SENTENCE_IDS, Field

ENCODER_FIELDS = (INPUT_IDS, LENGTHS, SENTENCE_IDS)

LABELS = Field("labels", "S", "int64", "index of the label, or of the right option")
GOLD_SCORES = Field("gold_scores", "S", "float32", "gold score of a regression, in its own unit")
# Questions may have different numbers of options. Only options that exist are encoded.
OPTION_ROWS = Field("option_rows", "SO", "int64", "row of each option of a sample; padding: 0")
OPTION_COUNTS = Field("option_counts", "S", "int64", "number of options of each sample")
START_SLOTS = Field("start_slots", "B", "int64", "first slot of the answer; 0, [CLS], if the window has none")
END_SLOTS = Field("end_slots", "B", "int64", "last slot of the answer, inclusive; 0, [CLS], if the window has none")
# The reader's field `slots`, b * L + l, is [CLS] and the context (span), or the first token of each word (tagging).
TAGS = Field("tags", "M", "int64", "index of the gold tag in each predicted slot")
