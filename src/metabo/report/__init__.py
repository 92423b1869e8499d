"""The report page: what is gathered (`jobs`, `scorecard`, `gallery`), how it is shown (`page`, `notebooks`)."""
