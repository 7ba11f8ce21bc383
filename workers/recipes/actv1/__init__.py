"""Recipe: a small hierarchical recurrent model that decides for each token how long to think."""
