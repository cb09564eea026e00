"""The games of the suite ``social``: games with others where interests meet: cooperate, punish, deceive, vote."""
