"""Text turned into tokens once, and kept for every run and rank."""
