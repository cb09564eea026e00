"""Drawing answers in which little is a choice: what is likely is drafted, and one pass verifies it.

In ``<action>right</action>`` the name is chosen. The rest is forced, but for other ways to cut it into tokens (``act``
and ``ion``). So the tokens up to the next choice are drafted and go through the model at once, the first ones behind
the prompt. The draws are those of :func:`~agents.models.local.decoding.sampler.sample`: each token has its own uniform
number, and if that draws another token than the draft's, the rest of the draft is dropped. Nothing is computed to draw
a token that alone is allowed; for others, the logits of the allowed tokens are computed, and no more.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from agents.models.answers import Draft, Guide, Rules
from agents.models.base import Decoding
from agents.models.local.decoding.drawing import choose_allowed, uniforms
from agents.models.local.decoding.lean_decoder import LeanBatch, LeanDecoder
from agents.models.local.decoding.sampler import Sampled, TokenIds
from agents.turn import TokenSet


class _Answer:
    """One answer as it grows, and a draft of what follows, of which the first ``fed`` tokens go through the model.

    The answer is complete if the draft is empty.
    """

    draft: Draft
    fed: int

    def __init__(self, guide: Guide) -> None:
        self._guide = guide
        self.ids: list[int] = []
        self._logprobs: list[float] = []
        self._sets: list[TokenSet | None] = []
        self._look_ahead()

    def accept(self, tokens: Sequence[int], logprobs: Sequence[float]) -> int:
        """Take the tokens drawn at the first ``fed + 1`` places of the draft, up to one that isn't the draft's.

        Returns how many tokens went through the model in vain.
        """
        draft, fed = self.draft.tokens[: self.fed], self.fed
        same = next((place for place in range(fed) if tokens[place] != draft[place]), fed)
        for token, logprob in zip(tokens[: same + 1], logprobs, strict=False):
            self._take(token, logprob)
        self._look_ahead()
        return fed - same

    def _take(self, token: int, logprob: float) -> None:
        self.ids.append(token)
        self._logprobs.append(logprob)
        self._sets.append(self._guide.allowed())
        self._guide.take(token)

    def _look_ahead(self) -> None:
        """Draft what follows; if nothing is left to draw, complete the answer."""
        self.draft = self._guide.draft()
        drawn = [place for place, each in enumerate(self.draft.sets) if len(each.ids) > 1]
        self.fed = max(drawn, default=0)
        if self.draft.sets and not drawn:
            for token in self.draft.tokens:
                self._take(token, 0.0)
            self.draft = self._guide.draft()

    def run(self) -> TokenIds:
        """Return the tokens to go through the model next."""
        return (self.ids[-1], *self.draft.tokens[: self.fed])

    def sampled(self) -> Sampled:
        return Sampled(tuple(self.ids), tuple(self._logprobs), True, tuple(self._sets))


def sample_drafted(
    decoder: LeanDecoder,
    prompts: Sequence[TokenIds],
    decoding: Decoding,
    seeds: Sequence[tuple[int, ...]],
    limits: Sequence[int],
    rules: Sequence[Rules],
) -> list[Sampled]:
    """Return one answer per prompt, as :func:`~agents.models.local.decoding.sampler.sample` does, in fewer passes.

    The rules force the answers from their first token on.
    """
    answers = [_Answer(Guide(one, limit)) for one, limit in zip(rules, limits, strict=True)]
    rows = [row for row, answer in enumerate(answers) if answer.draft.sets]
    if rows:
        numbers = uniforms(seeds, max(limits))
        fed = min(answers[row].fed for row in rows)
        number: dict[TokenIds, int] = {}
        begun = [prompts[row] + answers[row].draft.tokens[:fed] for row in rows]
        which = [number.setdefault(ids, len(number)) for ids in begun]
        batch, hidden = decoder.begin(list(number), which, fed + 1)
        for row in rows:
            answers[row].fed = fed
    while rows:
        sets = [each for row in rows for each in answers[row].draft.sets[: answers[row].fed + 1]]
        uniform = [
            number for row in rows for number in numbers[row, len(answers[row].ids) :][: answers[row].fed + 1].tolist()
        ]
        tokens, logprobs = _draw(batch, hidden, decoding, uniform, sets)
        vain, start = [], 0
        for row in rows:
            stop = start + answers[row].fed + 1
            vain.append(answers[row].accept(tokens[start:stop], logprobs[start:stop]))
            start = stop
        batch.drop(vain)
        going = [place for place, row in enumerate(rows) if answers[row].draft.sets]
        if going and len(going) < len(rows):
            batch.keep(torch.tensor(going, device=hidden.device))
        rows = [rows[place] for place in going]
        if rows:
            hidden = batch.append([answers[row].run() for row in rows])
    return [answer.sampled() for answer in answers]


def _draw(
    batch: LeanBatch, hidden: Tensor, decoding: Decoding, uniform: Sequence[float], sets: Sequence[TokenSet]
) -> tuple[list[int], list[float]]:
    """Draw a token behind each of the final hidden states ``(n, hidden)`` among its set; return these and their
    log-probabilities."""
    tokens, logprobs = [each.ids[0] for each in sets], [0.0] * len(sets)
    places = [place for place, each in enumerate(sets) if len(each.ids) > 1]
    if places:
        device = hidden.device
        drawn_from = [sets[place] for place in places]
        columns = sorted({token for each in drawn_from for token in each.ids})
        column = {token: number for number, token in enumerate(columns)}
        narrow = {each: TokenSet(tuple(column[token] for token in each.ids)) for each in set(drawn_from)}
        at = torch.tensor(places, device=device)
        logits = batch.logits(hidden.index_select(0, at), torch.tensor(columns, device=device))
        chances = torch.tensor(uniform, dtype=torch.float64, device=device).index_select(0, at)
        drawn = choose_allowed(logits, decoding, chances, [narrow[each] for each in drawn_from])
        for place, token, logprob in zip(places, *(each.tolist() for each in drawn), strict=True):
            tokens[place], logprobs[place] = columns[token], logprob
    return tokens, logprobs
