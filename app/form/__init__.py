"""Rows of a form: made from a recipe's fields, with what is wrong under each."""
