"""Rules: predicates, constraints, the rule language and the reasoning about rules."""
