"""Forms: rows made from a recipe's fields, each with its problem below it."""
