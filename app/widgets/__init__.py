"""Small widgets that several views use."""
