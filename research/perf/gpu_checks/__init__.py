"""What research/perf/gpu.py measures, one file a question."""
