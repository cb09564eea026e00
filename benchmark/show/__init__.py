"""Numbers and episodes for people: tables, the page, replays in the terminal, exports."""
