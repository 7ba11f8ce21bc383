"""People's data as tokens: files of many formats are read, tokenised once, and kept for every run and rank."""
