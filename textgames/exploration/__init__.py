"""The games of the suite ``exploration``: games that hide something: find out, then use it."""
