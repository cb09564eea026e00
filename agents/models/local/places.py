"""Where the weights of a model lie that somebody names: for playing, for training and below an adapter the same."""

from agents.models.provider import find_model


def model_folder(source: str) -> str:
    """The folder, in Hugging Face format, of a model's spec; any other source as it is.

    ``tiny``, ``smollm2``, ``gguf:PATH`` and ``hf:PATH_OR_REPO`` name the same models here as for ``--agent``, so an
    adapter's ``base_model_name_or_path`` may be one of them and holds on every machine. What has to be fetched or
    converted first is, once: it stays in the user's cache folder. A folder of such a name is written ``./tiny``.

    Raises:
        ValueError, OSError: there is no such model, or it can't be had; in one sentence.
        ModuleNotFoundError: a package is missing; the message has the command.
    """
    found = find_model(source)
    if found is None or (folder := found[0].folder) is None:
        return source
    return folder(found[1])
