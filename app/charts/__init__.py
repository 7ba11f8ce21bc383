"""Charts of a run: cards with their controls and menus; devices are curves as well."""
