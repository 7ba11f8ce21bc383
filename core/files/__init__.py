"""Files that survive a power cut, private files, and no writing through links."""
