"""What the papers share: printed numbers, claims, theory, and the files of studies."""
