"""`metabo show`: a study on one self-contained page."""
