"""weever_stream: which pairs of rows break a rule, and when a broken rule is whole again."""

from weever_stream.model.errors import WeeverError
from weever_stream.model.rules.ruleset import Rules
from weever_stream.monitor import Monitor, Violation

__all__ = ["Monitor", "Rules", "Violation", "WeeverError"]
