"""The gradients that a method's credit leads to: scores of responses, episodes' gradients, and their quality."""
