"""An empirical GP prior: mean and covariance of matched tables, which EM estimates without a kernel family."""
