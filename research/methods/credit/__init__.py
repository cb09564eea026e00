"""Methods of credit: one file for each, or for those that share a structure."""
