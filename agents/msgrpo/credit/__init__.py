"""From returns to what each step is credited with, and which episodes the update draws."""
