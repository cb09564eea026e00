"""What a vLLM worker needs besides its own methods when its weights are renewed: the packed output layer, too.

On a CPU vLLM keeps the output layer in a packed copy for faster products. Where that layer is tied to the embedding, a
reload renews the embedding and leaves the copy as it was: answers then come from the new body through the old output
layer, without any warning (vLLM 0.32). A server started with ::

    --worker-extension-cls agents.models.vllm_worker.OutputLayer

can be told to pack it again, by ``POST /collective_rpc {"method": "renew_output_layer"}``. In this process
``llm.apply_model(renew_output_layer)`` does it.
"""

from typing import Any


def renew_output_layer(model: Any) -> bool:
    """Pack a vLLM model's output layer again from its weights; returns whether there was anything to pack."""
    while not hasattr(model, "lm_head") and hasattr(model, "language_model"):  # models that also read images
        model = model.language_model
    head: Any = getattr(model, "lm_head", None)
    head = getattr(head, "base_layer", head)  # with LoRA switched on
    packed = getattr(head, "cpu_linear", None) is not None
    if packed:
        head.quant_method.process_weights_after_loading(head)
    return packed


class OutputLayer:
    """Methods that vLLM adds to its workers; see the module."""

    model_runner: Any

    def renew_output_layer(self) -> bool:
        """Pack the output layer again; returns whether there was anything to pack."""
        return renew_output_layer(self.model_runner.get_model())
