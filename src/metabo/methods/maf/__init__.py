"""MAF: an acquisition function learned by reinforcement learning."""
