"""From a corpus to masked batches: the batch fields, masking, the sampling order, and prefetching."""
