"""How are episodes played on many machines? Workers of a Ray cluster play, and the process that asked collects."""
