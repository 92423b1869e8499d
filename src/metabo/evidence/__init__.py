"""Recorded results that are kept with the code: the folders `evidence/{scale}`, their manifests, and replays that check
them."""
