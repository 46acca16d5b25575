"""What a run will need: memory, operations, exchanged bytes and time, predicted from its configuration."""
