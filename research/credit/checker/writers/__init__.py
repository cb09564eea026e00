"""Writers of rows: one without any package, and those of trainers."""
