"""Times in words."""


def duration(seconds: float) -> str:
    """Write a time as ``"4.2 s"``, ``"48 s"``, ``"3 min 05 s"`` or ``"2 h 10 min"``."""
    if seconds < 9.95:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    minutes, rest = divmod(whole, 60)
    return f"{minutes} min {rest:02d} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60:02d} min"
