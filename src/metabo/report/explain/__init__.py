"""Where a figure, a claim or a run comes from, in lines for a terminal: `metabo explain`."""
