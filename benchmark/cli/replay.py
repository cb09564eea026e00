"""Step through an episode in the terminal: board, what the player read, response, action, what happened, reward.

Keys: n, space, right or enter: next step; p, left or backspace: previous; g and G, or home and end: first and last;
]: next episode; [: previous episode; j and k, down and up, page down and page up: scroll; q: quit.

examples:
  textbench replay                                         the newest run, from its first episode
  textbench replay runs/a --agent planner --scenario snake --seed 40003
  textbench replay runs/a --episode 12 --plain
"""

from argparse import ArgumentParser, Namespace

from benchmark.cli.arguments import add_import_option


def add_arguments(parser: ArgumentParser) -> None:
    """Declare which episode is shown, and whether to step through it or to print it."""
    parser.add_argument("source", nargs="?", metavar="DIR", help="run folder or entry (default: the newest run)")
    parser.add_argument("--episode", type=int, metavar="N", help="the N-th episode in the folder, from 1")
    parser.add_argument("--agent", metavar="NAME", help="only episodes of this agent")
    parser.add_argument("--scenario", metavar="NAME", help="only episodes of this scenario")
    parser.add_argument("--seed", type=int, metavar="N", help="only episodes with this seed")
    parser.add_argument("--failed", action="store_true", help="only episodes that weren't a success")
    parser.add_argument("--plain", action="store_true", help="print the whole episode instead of stepping through it")
    add_import_option(parser)


def run(args: Namespace) -> int:
    """Step through the episode, or print it if there is no terminal."""
    import sys

    from benchmark.cli.arguments import given_or_newest
    from benchmark.cli.output import Output
    from benchmark.errors import UsageError, unknown_name
    from benchmark.runs.folder import RunFolder
    from benchmark.show.viewer import EpisodePicker, print_episode, step_through

    (source,) = given_or_newest([args.source] if args.source else [], Output())
    folder = RunFolder.open(source)
    picker = EpisodePicker(folder, args.agent, args.scenario, args.seed, args.failed)
    for kind, name, known in (
        ("agent in this run", args.agent, [card["name"] for card in folder.manifest["agents"]]),
        ("scenario in this run", args.scenario, folder.manifest["scenarios"]),
    ):
        if name is not None and name not in known:
            raise unknown_name(kind, name, known)
    if not picker.count:
        failed = "failed " if args.failed else ""
        asked = {"of": args.agent, "in": args.scenario, "with seed": args.seed}
        told = "".join(f" {word} {value}" for word, value in asked.items() if value is not None)
        others = "; without these options it shows all that there are" if failed or told else ""
        raise UsageError(f"{source} has no {failed or 'finished '}episode{told}{others}")
    number = 1 if args.episode is None else args.episode
    if not 1 <= number <= picker.count:
        raise UsageError(f"--episode must be from 1 to {picker.count} here, got {args.episode}")
    if args.plain or not (sys.stdin.isatty() and sys.stdout.isatty()):
        print_episode(picker, number)
        return 0
    return step_through(picker, number)
