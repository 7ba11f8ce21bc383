"""What a run is trained on: files, folders and hub datasets, their form and identity."""
