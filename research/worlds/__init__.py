"""Games of neighbouring papers, in small; ``textbench run --scenario research.worlds:Economist-v0`` plays one."""

from textgames import register, register_yardstick

ECONOMIST = "research.worlds.economist:Economist"

register_yardstick(ECONOMIST, "textgames.solving:ValueIteration")
register("Economist-v0", ECONOMIST, max_steps="auto")
register("Economy-v0", ECONOMIST, play_workers=True, max_steps="auto")
register(
    "RockPaperScissors-v0",
    "textgames.social.matrix_game:MatrixGame",
    matrix="rock-paper-scissors",
    rounds=1,
    max_steps=1,
)
