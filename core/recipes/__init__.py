"""What can be trained: recipes, built in and a person's own, and scripts."""
