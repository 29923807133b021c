"""Benchmarks of the engine against the paper's design done plainly and against PostgreSQL: `python -m benchmarks`."""
