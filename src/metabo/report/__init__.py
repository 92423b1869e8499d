"""The report page of a run: what is gathered (`jobs`, `scorecard`, `gallery`), how it is shown (`page`, `notebooks`)."""
