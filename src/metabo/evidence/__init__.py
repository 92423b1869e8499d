"""Recorded results that are kept with the code: `evidence/{scale}`, its manifest, and replays that check it."""
