"""Tune with what past studies have shown: `metabo.PriorSampler`, and what learns its prior."""

from metabo import PriorSampler, draft_space, pretrain

__all__ = ["PriorSampler", "draft_space", "pretrain"]
