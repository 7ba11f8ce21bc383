"""Training state on disk: slices of tensors that any mode on any number of ranks reads back."""
