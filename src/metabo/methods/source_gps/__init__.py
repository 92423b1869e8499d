"""One GP for each past task: cm-BO, RGPE, RM-GP-UCB."""
