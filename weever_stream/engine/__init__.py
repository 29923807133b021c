"""The engine: signed rows in, signed violations out. Pure Python and numpy; no Spark, no clock, no randomness."""
