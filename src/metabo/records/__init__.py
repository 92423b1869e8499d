"""What is written: files, checksums, provenance, and the tables of results."""
