"""Tuning with your own history: read it, learn a prior from it, ask for configurations, and tell their outcomes."""
