"""X on a device: tensors of the array API, scores in float32 with proved bounds."""
