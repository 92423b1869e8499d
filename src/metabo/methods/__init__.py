"""Methods: one module per family, registering its variants in a literal `VARIANTS` table (see `metabo.registry`)."""
