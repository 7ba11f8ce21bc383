"""Qt feeds: what views listen to, filled from `app.run_data` and the bridge."""
