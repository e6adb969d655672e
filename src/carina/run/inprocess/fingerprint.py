"""Which files a model in this process is made of (`carina.models.fingerprint`), by its name."""

from carina.models.chat.loading import folder_of
from carina.models.fingerprint import fingerprint_of, fingerprint_of_transformers
from carina.run.inprocess.onnx import onnx_folder


def weights_of(model: str) -> str | None:
    """SHA-256 over names, sizes and content of the files of an `hf:` or `onnx:` model; None for any other."""
    kind, _, named = model.partition(":")
    if kind == "hf":
        _, folder = folder_of(named)
        return fingerprint_of_transformers(folder)
    if kind == "onnx":
        # All of them: weights may lie beside the model, under any name.
        return fingerprint_of(path for path in onnx_folder(named).iterdir() if not path.name.startswith("."))
    return None
