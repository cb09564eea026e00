"""The improver (arXiv 2502.04686): play, cluster, solve, prefer, and again with the model that comes of it."""

from dataclasses import replace

from benchmark.errors import UsageError
from benchmark.improve.budget import Spent
from benchmark.improve.improver import ImprovementTask
from benchmark.improve.methods.dpo import check_installed, prefer
from benchmark.improve.methods.learning import MODEL, config_of, learnt, own_play, trained
from benchmark.improve.methods.lspo.latent import Speech, play_in, solved
from benchmark.play.agents.objects import AgentTable
from benchmark.runs.plan import find_scenarios
from textgames.social.werewolf import Werewolf


def improve(
    task: ImprovementTask,
    *,
    episodes: int = 100,
    attempts: int = 4,
    temperature: float = 1.0,
    clusters: int = 4,
    traversals: int = 12_000,
    rounds: int = 2,
    beta: float = 0.1,
    sft: float = 1.0,
    rank: int = 16,
    learning_rate: float = 2e-4,
    passes: int = 10,
) -> AgentTable:
    """Tune what the agent's model says in Werewolf towards a policy over clusters of speeches.

    Args:
        task: the agent has a local model; the scenarios are of Werewolf.
        episodes: training seeds that the agent plays with itself in all seats, of each scenario and in each round.
        attempts: how often it plays each of them, with other samples.
        temperature: of the agent's answers in this play.
        clusters: latent strategies of every role, and what listeners tell apart.
        traversals: of the finite game in each of its solutions, each by one seat.
        rounds: how often all of it is done, as far as the budget reaches.
        beta: of DPO: how much it costs to leave the model that the round began with.
        sft: the weight of the likelihood of the better answers in the loss.
        rank: of the LoRA adapter; 0 trains all weights.
        learning_rate: the highest.
        passes: how often the model goes through the pairs of a round.
    """
    check_installed("lspo")
    scenarios = find_scenarios(task.scenarios)
    if others := [name for name, one in scenarios.items() if not isinstance(one.game(), Werewolf)]:
        raise UsageError(f"lspo is for speeches in Werewolf, got {others[0]}: name werewolf-5 or werewolf-7")
    for name, value in {"clusters": clusters, "traversals": traversals, "rounds": rounds}.items():
        if value < 1:
            raise UsageError(f"{name} is at least 1, got {value}")
    now, said, folder = task, list[Speech](), ""
    for number in range(1, rounds + 1):
        config = config_of(now, episodes, rank=rank, learning_rate=learning_rate, passes=passes)
        player = {**now.agent, "temperature": temperature}
        folders = own_play(now, player, episodes, attempts, needed=number == 1)
        if not folders:
            break
        played = play_in(folders, config.response_mode)
        said = [*played.speeches, *said]
        with task.meter.timed(f"regret-{number}"):
            latent = solved([*scenarios.values()], said, played, clusters, traversals, task.seed)
            preferences = latent.preferences(played.speeches)
        task.meter.charge(Spent(seconds=task.meter.seconds_of(f"regret-{number}")))
        task.say(f"round {number}: {len(played.speeches):,} speeches, {len(preferences):,} pairs of answers")
        for line in latent.told(preferences):
            task.say(line)
        if not preferences:
            task.say("no way to speak is surely worth more than another, so there is nothing to prefer")
            break
        folder = MODEL if number == rounds else f"{MODEL}-{number}"
        with task.meter.timed(f"training-{number}"):
            prefer(replace(config, out=str(task.out / folder)), [one.pair for one in preferences], beta, sft)
        task.meter.charge(Spent(seconds=task.meter.seconds_of(f"training-{number}")))
        now = replace(task, agent=trained(task, str(task.out / folder)))
    return learnt(task, task.agent, 0.0, folder) if folder else task.agent
