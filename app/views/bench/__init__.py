"""The page that measures, and the charts that it and files of results have."""
