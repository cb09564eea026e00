"""What a run costs: prices of tokens, and estimates of what it will take before it is started."""
