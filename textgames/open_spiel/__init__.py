"""OpenSpiel's games as text games: ``textgames.openspiel("nim")``. Needs the extra ``openspiel``."""
