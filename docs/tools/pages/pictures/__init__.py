"""Animated pictures: episodes that are played or read again, as SVG."""
