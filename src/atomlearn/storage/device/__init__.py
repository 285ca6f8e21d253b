"""X on a device: tensors of the array API, with scores in float32 and proved error bounds."""
