"""The page that checks this machine."""
