"""The README as a package index shows it, for hatchling: links into the repository have its address."""

import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface


class Readme(MetadataHookInterface):
    """Writes the field ``readme`` of ``[project]``."""

    def update(self, metadata: dict[str, Any]) -> None:
        text = Path(self.root, "README.md").read_text(encoding="utf-8")
        text = re.sub(r"(!\[[^]]*\]\()(?!\w+:|#)", rf"\1{metadata['urls']['Source']}/raw/main/", text)
        text = re.sub(r"((?<!!)\[[^]]*\]\()(?!\w+:|#)", rf"\1{metadata['urls']['Source']}/blob/main/", text)
        metadata["readme"] = {"content-type": "text/markdown", "text": text}
