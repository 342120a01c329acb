"""The table that maps the facts of a probe to its outcome: ordered rules, each a small function of the evidence."""
