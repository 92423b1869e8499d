"""What jobs write: files, checksums, provenance, and the tables of results."""
