"""The games of the suite ``planning``: games whose rules and state are known: think ahead."""
