"""Model folders: the formats in which an encoder is stored, read into and written from one record. No Paddle here."""
