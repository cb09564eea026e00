"""Where other tools look for textbench under its own name; the packages are textgames, agents and benchmark."""
