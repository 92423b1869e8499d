"""Collection of this project's own benchmarks: real trainings of networks and classic learners on data in packages."""
