"""Theme, colours, icons, fonts, and controls like those of Windows 11."""
