"""Several machines: how their processes find each other and become the ranks of one run (docs/decisions/0048)."""
