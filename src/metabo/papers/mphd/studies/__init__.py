"""Studies of MPHD's synthetic figures."""
