"""Drawing answers in which little is a choice: what is likely is drafted, and one pass verifies it.

In ``<action>right</action>`` the name is chosen. The rest is forced, but for other ways to cut it into tokens. So the
tokens up to the next choice are drafted and go through the model at once, the first ones behind the prompt. The draws
are those of :func:`~agents.models.local.decoding.sampler.sample`: if a token's uniform number draws another one than
the draft's, the rest of the draft is dropped. The head is computed for the allowed tokens alone, and forced tokens at
the end of an answer take no pass.
"""

from collections.abc import Sequence
from itertools import islice

import numpy as np
import torch

from agents.models.answers import Guide, Rules
from agents.models.base import Decoding
from agents.models.local.decoding.lean_decoder import LeanDecoder
from agents.models.local.decoding.sampler import Sampled, TokenIds, choose_allowed, uniforms
from agents.turn import TokenSet


class _Answer:
    """One answer as it grows, and a draft of what follows, of which the first ``fed`` tokens go through the model.

    ``sets`` are what the draft's tokens are drawn from, and the choice behind them; an answer without is complete.
    """

    def __init__(self, rules: Rules, limit: int) -> None:
        self._guide = Guide(rules, limit)
        self.ids, self.logprobs, self.allowed = list[int](), list[float](), list[TokenSet | None]()
        self._look_ahead()

    def take(self, drawn: Sequence[tuple[int, float]]) -> int:
        """Append the ``(token, log-probability)`` drawn at the first ``fed + 1`` places, up to one that isn't the
        draft's; return how many tokens went through the model in vain."""
        vain, expected = self.fed + 1, (*self.draft[: self.fed], None)
        for (token, logprob), likely in zip(drawn, expected, strict=True):
            self.ids.append(token)
            self.logprobs.append(logprob)
            self.allowed.append(self._guide.allowed())
            self._guide.take(token)
            vain -= 1
            if token != likely:
                break
        self._look_ahead()
        return vain

    def _look_ahead(self) -> None:
        """Draft what follows; an answer of which nothing is left to draw is completed."""
        self.draft, self.sets = self._guide.draft()
        self.fed = max((place for place, each in enumerate(self.sets) if len(each.ids) > 1), default=-1)
        if self.sets and self.fed < 0:
            self.fed = len(self.draft) - 1
            self.take([(token, 0.0) for token in self.draft])


def sample_drafted(
    decoder: LeanDecoder,
    prompts: Sequence[TokenIds],
    decoding: Decoding,
    seeds: Sequence[tuple[int, ...]],
    limits: Sequence[int],
    rules: Sequence[Rules],
) -> list[Sampled]:
    """Return one answer per prompt, as :func:`~agents.models.local.decoding.sampler.sample` does, in fewer passes; the
    rules force the answers from their first token on."""
    answers = [_Answer(one, limit) for one, limit in zip(rules, limits, strict=True)]
    rows = [row for row, answer in enumerate(answers) if answer.sets]
    if rows:
        numbers = uniforms(seeds, max(limits))
        fed = min(answers[row].fed for row in rows)
        begun = [prompts[row] + answers[row].draft[:fed] for row in rows]
        number: dict[TokenIds, int] = {}
        which = [number.setdefault(ids, len(number)) for ids in begun]
        batch, hidden = decoder.begin(list(number), which, fed + 1)
        for row in rows:
            answers[row].fed = fed
    while rows:
        live = [answers[row] for row in rows]
        sets = [each for answer in live for each in answer.sets[: answer.fed + 1]]
        draws = [numbers[row, len(one.ids) :][: one.fed + 1] for row, one in zip(rows, live, strict=True)]
        among = sorted({token for each in sets for token in each.ids})
        place = {token: column for column, token in enumerate(among)}
        narrow = [TokenSet(tuple(place[token] for token in each.ids)) for each in sets]
        columns = torch.tensor(among, device=hidden.device)
        uniform = torch.from_numpy(np.concatenate(draws)).to(hidden.device)
        tokens, logprobs = choose_allowed(batch.weights.head.only(columns)(hidden), decoding, uniform, narrow)
        drawn = zip(columns[tokens].tolist(), logprobs.tolist(), strict=True)
        vain = [answer.take(list(islice(drawn, answer.fed + 1))) for answer in live]
        going = [at for at, answer in enumerate(live) if answer.sets]
        if going and len(going) < len(rows):
            batch.keep(torch.tensor(going, device=hidden.device))
        rows = [rows[at] for at in going]
        if rows:
            runs = [(one.ids[-1], *one.draft[: one.fed]) for one in live if one.sets]
            hidden = batch.append(runs, [vain[at] for at in going])
    return [Sampled(tuple(one.ids), tuple(one.logprobs), True, tuple(one.allowed)) for one in answers]
