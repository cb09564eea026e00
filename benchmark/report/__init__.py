"""The leaderboard page: `shape` (its data), `page` (how it is drawn), `server` (how it is shown)."""
