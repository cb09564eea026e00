"""Players around others: they choose among answers of others, or read something more before they answer."""
