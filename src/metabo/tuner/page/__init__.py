"""`metabo show`: a study on one page, which loads nothing from elsewhere."""
