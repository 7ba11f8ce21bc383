"""What this computer is: devices, PyTorch build, packages, interpreters, sleep."""
