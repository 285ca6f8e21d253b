"""What the experiments of all papers share: claims, figures, sizes."""
