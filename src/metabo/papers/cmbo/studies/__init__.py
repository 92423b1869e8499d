"""Studies of cm-BO's figures and times."""
