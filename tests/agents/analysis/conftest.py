"""A model that was never trained, for all tests of what is computed from a model's probabilities."""

import pytest


@pytest.fixture(scope="module")
def model():
    pytest.importorskip("torch")
    from agents.models.local.transformers import TransformersModel
    from agents.tiny import Recipe, imitation

    recipe = Recipe.quick(examples=300, steps=1, hidden_size=16, intermediate_size=32, layers=2, heads=2, kv_heads=1)
    tokenizer = imitation.make_tokenizer(imitation.demonstrate(recipe))
    return TransformersModel(imitation.make_model(recipe, tokenizer), tokenizer, name="untrained")
