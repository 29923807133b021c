"""What the product talks about: rules, values, changes, violations and errors."""
