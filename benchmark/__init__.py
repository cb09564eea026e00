"""The benchmark: runs agents on fixed scenarios, keeps every episode, and compares scores that can be checked."""
