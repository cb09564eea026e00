"""A pretrained model as small as it gets, and an experiment with every kind of job."""

from pathlib import Path

from tests.tiny_models import teach, tiny_llama, word_tokenizer

RECIPE = """
kind = "pretrained"
model = "{model}"
dtype = "float32"
episodes = 4
at_once = 4
max_tokens = 4
last_iterations = 2
steps_per_episode = 2
micro_batch = 4

[imitation]
device = "cpu"
dtype = "float32"
param_dtype = "float32"
minibatches = 2
lora_rank = 2
max_response_tokens = 6
learning_rate = 0.01

[msgrpo]
device = "cpu"
groups = 2
group_size = 2
episodes_drawn = 4
max_response_tokens = 4
format_penalty = 0.5
max_steps = 2
minibatches = 1
learning_rate = 0.001
iterations = 2
eval_every = 2
eval_episodes = 2
samples_every = 0
checkpoint_every = 1

[parts.screen]
title = "What makes it read"
about = "Looks for it."

[parts.main]
title = "The lake"
compare = [["trained", "base"], ["trained", "others"], ["base", "trained"], ["imitation", "base"]]

[parts.baseline]
title = "TRL"

[starts.few]
scenarios = ["frozen-lake"]
examples = 8

[starts.near]
scenarios = ["frozen-lake"]
examples = 6
view = {{ relative = true, grid = false }}

[starts.equal]
scenarios = ["frozen-lake"]
examples = 12

[arms.small]
part = "screen"
start = "near"
scenarios = ["frozen-lake"]
view = {{ relative = true, grid = false, size = 3 }}
msgrpo = {{ iterations = 1, task_sampling = "starts" }}

[arms.large]
part = "screen"
start = "small"
scenarios = ["frozen-lake"]
view = {{ relative = true, grid = false }}

[arms.alone]
part = "screen"
scenarios = ["frozen-lake", "blackjack"]
msgrpo = {{ lora_rank = 2 }}

[arms.plain]
part = "main"
start = "few"
config = "{config}"
seeds = 2

[arms.other]
part = "main"
start = "few"
scenarios = ["frozen-lake"]
seeds = 2

[arms.trl-episodes]
part = "baseline"
start = "few"
scenarios = ["frozen-lake"]
trainer = "trl"
like = "plain"

[arms.trl-seconds]
part = "baseline"
start = "few"
scenarios = ["frozen-lake"]
trainer = "trl"
like = "plain"
equal = "seconds"

[ships.little-start]
agent = "starts.few"
rank = 1

[ships.little-lake]
agent = "arms.plain"
rank = 1

[players.base]
part = "main"
agent = "model"
scenarios = ["frozen-lake"]

[players.imitation]
part = "main"
agent = "starts.few"
scenarios = ["frozen-lake"]

[players.equal]
part = "main"
agent = "starts.equal"
scenarios = ["frozen-lake"]

[players.trained]
part = "main"
agent = "arms.plain"
scenarios = ["frozen-lake"]

[players.others]
part = "main"
agent = "arms.other"
scenarios = ["frozen-lake"]

[players."base, retry:1"]
part = "main"
agent = "model"
scenarios = ["frozen-lake"]
protocol = "retry:1"
options = {{ history = 1 }}
shown = 2
episodes = 2

[players.random]
part = "main"
agent = "random"
scenarios = ["frozen-lake", "snake"]

[players."TRL's"]
part = "baseline"
agent = "arms.trl-episodes"
scenarios = ["frozen-lake"]

[rival]
part = "main"
agent = "model"
scenarios = ["frozen-lake"]
"""

CONFIG = """
[model]
device = "cpu"
[rollout]
scenarios = ["frozen-lake"]
groups = 2
group_size = 2
response_mode = "direct"
max_response_tokens = 4
format_penalty = 0.5
max_steps = 2
[sampling]
episodes_drawn = 4
[update]
minibatches = 1
iterations = 2
learning_rate = 0.002
[evaluation]
eval_every = 2
eval_episodes = 2
[run]
threads = 2
samples_every = 0
checkpoint_every = 1
out = "elsewhere"
"""

WORDS = ("<action>", "</action>", "left", "down", "right", "up", "hit", "stick", *"0123456789", "(", ")", ",", "+", "-")


def make_model(folder: Path) -> Path:
    """A Llama that mostly answers with some action, and a tokenizer that knows the games' words."""
    tokenizer = word_tokenizer(WORDS, gaps=True)
    model = tiny_llama(len(tokenizer), hidden=16, layers=1, num_attention_heads=2, num_key_value_heads=1)
    answers = [f"........<action>{name}</action>" for name in ("left", "down", "right", "up")]
    teach(model, tokenizer(answers, return_tensors="pt")["input_ids"], rate=0.02, steps=30)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def write_recipe(folder: Path, model: Path | str, changes: tuple[tuple[str, str], ...] = ()) -> Path:
    """The recipe as a file, with parts of its text exchanged."""
    config = folder / "trained.toml"
    config.write_text(CONFIG)
    text = RECIPE.format(model=model, config=config)
    for old, new in changes:
        assert old in text, old
        text = text.replace(old, new)
    recipe = folder / "recipe.toml"
    recipe.write_text(text)
    return recipe
