"""Tune: finds the settings with which a run trains fastest, by real steps on all its devices together."""
