"""The sections of config.yaml as types: each key stands here once, with its type, its range and what it means."""
