"""Built-in recipes: each a folder that needs nothing but the recipe API."""
