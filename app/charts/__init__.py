"""Charts of a run: cards, their controls and menus, and the devices' rows."""
