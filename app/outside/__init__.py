"""Outside the window: notifications, and the icon in the tray."""
