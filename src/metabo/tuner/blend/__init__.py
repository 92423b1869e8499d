"""The tuner's default method: a GP of all past studies and a plain GP, weighted by how well they predict the new
study."""
