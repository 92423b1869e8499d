"""An empirical GP prior: mean and covariance of matched tables, estimated by EM without a kernel family."""
