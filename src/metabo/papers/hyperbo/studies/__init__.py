"""Studies of HyperBO's synthetic figures and tables."""
