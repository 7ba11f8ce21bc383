"""The names of `rankdeck.recipe` that need no torch, where recipes made before it look for them."""

from workers.recipe_api.text import *  # noqa: F403
