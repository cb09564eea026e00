"""The loop that plays episodes: in lock step for models of this process, concurrently for those behind servers."""
