"""How a report of the instrument is shown: tables in the terminal, pictures of boards, and the JSON document."""
