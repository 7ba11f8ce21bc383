"""Data that people have, as tokens: files of many formats are read, tokenised once, and kept for every run and rank.

* `packed` opens a file, packed or not; `rows` and `json_stream` find its rows; `columns` guesses which is text;
* `pieces` turns rows and text files into pieces of documents, a bounded number of bytes at a time;
* `token_writer` turns them into tokens; `token_cache` keeps these, and finds what was made before.
"""
