"""Past trials kept elsewhere (Optuna, MLflow, a table) as a history with a drafted ``space.yaml``."""
