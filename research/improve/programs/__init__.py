"""Programs that a language model has written in place of answers: run in a sandbox, played, or planned with."""
