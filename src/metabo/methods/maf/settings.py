"""The settings of MAF's training (Volpp et al. 2020; hyperbo §7.2, D.5)."""

from dataclasses import dataclass


@dataclass(frozen=True)
class AcquisitionModel:
    """Widths of the hidden layers, which the policy network and the value network share."""

    hidden: tuple[int, ...]


@dataclass(frozen=True)
class MafSettings:
    """PPO for `steps` iterations of `episodes` runs of `horizon` queries among `candidates` points (0: all), validated
    every `evaluate_every` iterations; each task has at most `points` distinct points (0: all), and its GP is fitted to
    `gp_points` of them (0: all) by at most `gp_steps` steps of L-BFGS. The other settings are those of
    `metabo.methods.maf.ppo`."""

    steps: int
    learning_rate: float
    episodes: int
    horizon: int
    candidates: int
    minibatches: int
    epochs: int
    clip: float
    value_weight: float
    entropy_weight: float
    discount: float
    smoothing: float
    min_regret: float
    evaluate_every: int
    points: int
    gp_points: int
    gp_steps: int
