"""Drafts of recipes: kept apart, and read back from settings that may hold anything."""

from __future__ import annotations

import json

from app.state.draft import Draft
from app.state.recipe_drafts import RecipeDrafts


def test_each_recipe_keeps_its_own_draft() -> None:
    drafts = RecipeDrafts()
    drafts.keep(Draft("minigpt", fields={"steps": "77"}))
    drafts.keep(Draft("script", fields={"script": "train.py"}))
    drafts.keep(Draft("minigpt", fields={"steps": "78"}))
    drafts.keep(Draft(""))
    again = RecipeDrafts()
    again.restore(json.loads(json.dumps(drafts.as_dict())))
    assert list(again.as_dict()) == ["minigpt", "script"]
    minigpt = again.kept("minigpt")
    assert minigpt is not None and minigpt.fields == {"steps": "78"} and again.kept("actv1") is None


def test_what_is_no_draft_is_passed_over() -> None:
    drafts = RecipeDrafts()
    drafts.restore({"minigpt": 3, "script": {"recipe": "minigpt", "fields": ["steps"], "dataset": "a.txt"}})
    script = drafts.kept("script")
    assert drafts.kept("minigpt") is None and script is not None
    assert (script.recipe, script.dataset, dict(script.fields)) == ("script", "a.txt", {})
