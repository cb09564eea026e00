"""What a run is on disk: its plan, its manifest's provenance, its episode records, and replaying them."""
