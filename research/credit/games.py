"""The games of an experiment for which small models are made, and the settings that all such experiments have."""

from collections.abc import Mapping
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, model_validator

from benchmark import UsageError, unknown_name
from research.jobs.bases import PROMPTS
from research.jobs.recipes import Count, PositiveCount, SeededSettings, Table
from textgames import SCENARIOS, Scenario


class Game(BaseModel):
    """A game that small models are made for: a table ``[games.NAME]`` of the recipe."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    scenario: str = ""  # a scenario's name; empty: the table's own
    settings: Table = {}  # of the environment, on top of the scenario's
    horizon: Count = 0  # rounds; 0: the scenario's
    start: Literal["demonstrator", "legal-play"] = "legal-play"  # what its base imitates
    base: Table = {}  # fields of agents.tiny.Recipe in which its base differs
    msgrpo: Table = {}  # fields of MSGRPOConfig of all runs on it
    tokens: PositiveCount  # that a training run may spend: prompts and responses, of rollouts and of updates


class OnGames(SeededSettings):
    """The settings of experiments that make small models for some games and train them."""

    games: Mapping[str, Game]
    msgrpo: Mapping[str, Any] = {}  # fields of :class:`agents.msgrpo.MSGRPOConfig` of all runs
    evaluation_starts: PositiveCount = 48  # of fresh episodes, for which expected returns are computed

    @model_validator(mode="after")
    def _check_games(self) -> "OnGames":
        for name, game in self.games.items():
            if (game.scenario or name) not in SCENARIOS:
                raise unknown_name("scenario", game.scenario or name, SCENARIOS)
            self.recipe(name)
        return self

    def scenario(self, name: str) -> Scenario:
        """Return the scenario of a game, with its own settings."""
        game = self.games[name]
        known = SCENARIOS[game.scenario or name]
        return known._replace(
            name=name, kwargs={**known.kwargs, **game.settings}, horizon=game.horizon or known.horizon
        )

    @property
    def temperature(self) -> float:
        """The temperature of sampling, in training and in measurements."""
        return float(self.msgrpo.get("temperature", 1.25))

    def recipe(self, name: str, run: int = 0) -> Any:
        """Return the recipe of a game's base, :class:`agents.tiny.Recipe`; each run has one of another seed."""
        from agents.tiny import Recipe

        game = self.games[name]
        scenario = game.scenario or name
        if game.start == "demonstrator":
            games = [f"{scenario}-training" if SCENARIOS[scenario].training else scenario]
            start = Recipe.quick(modes=("direct",), games=tuple(games), prompts=PROMPTS)
        else:
            start = Recipe.legal_play((scenario,), heads=1, prompts=PROMPTS)
        try:
            made = start.changed(game.base)
            return made.changed({"seed": made.seed + run})
        except (ValueError, TypeError) as error:
            raise UsageError(f"games.{name}.base: {error}") from None
