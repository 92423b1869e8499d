"""Claims of the papers: the sheets, the evidence, the checks, and the verdicts."""
