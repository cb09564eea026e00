"""The games of the suite ``strategy``: games against others with opposed interests: search, mix, bluff."""
