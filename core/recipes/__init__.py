"""Recipes, built in and a person's own, and scripts."""
