"""The commands that workflow rules call: ``python -m metabo.stages.X``."""
