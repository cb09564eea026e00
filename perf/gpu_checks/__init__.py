"""What perf/gpu.py measures, one file a question."""
