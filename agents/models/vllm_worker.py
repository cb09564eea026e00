"""Weights renewed in a vLLM worker on a CPU, which keeps the output layer in a packed copy for faster products.

If that layer is tied to the embedding, a reload renews the embedding and leaves the copy as it was (vLLM 0.32), without
any warning. A server started with ``--worker-extension-cls agents.models.vllm_worker.OutputLayer`` packs it again at
``POST /collective_rpc {"method": "renew_output_layer"}``; in this process ``llm.apply_model(renew_output_layer)`` does.
"""

from typing import Any


def renew_output_layer(model: Any) -> bool:
    """Pack a vLLM model's output layer again from its weights; return whether there was anything to pack."""
    while not hasattr(model, "lm_head") and hasattr(model, "language_model"):  # models that also read images
        model = model.language_model
    head: Any = getattr(model, "lm_head", None)
    head = getattr(head, "base_layer", head)  # with LoRA switched on
    packed = getattr(head, "cpu_linear", None) is not None
    if packed:
        head.quant_method.process_weights_after_loading(head)
    return packed


class OutputLayer:
    """A method that vLLM adds to its workers."""

    model_runner: Any

    def renew_output_layer(self) -> bool:
        return renew_output_layer(self.model_runner.get_model())
