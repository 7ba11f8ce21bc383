"""This computer: devices, PyTorch build, packages, interpreters, sleep."""
