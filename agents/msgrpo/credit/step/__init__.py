"""Methods that tell the steps of an episode apart, without a critic."""
