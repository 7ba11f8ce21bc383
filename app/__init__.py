"""The window: Qt widgets over plain models. It starts, follows and stops runs through `core.client`."""
