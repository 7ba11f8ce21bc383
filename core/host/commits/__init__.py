"""How ranks and host make one checkpoint together: who writes what, and when it counts."""
