"""One package for each paper, with no import between them, and what they share in `engine`."""
