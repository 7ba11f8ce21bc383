"""Recipe: a training script of a person's own."""
