"""From a corpus to masked batches: the batch fields, masking, sampling order, prefetching."""
