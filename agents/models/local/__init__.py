"""Running a transformers model in this process: loading, batched sampling, and a lean forward pass for small Llamas."""
