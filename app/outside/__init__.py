"""Outside the window: notifications, the icon in the tray, progress in the task bar."""
