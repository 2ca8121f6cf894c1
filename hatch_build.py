"""The page that a package shows: the README, with addresses of the place that it is built at.

Links of the README are relative, so that they lead somewhere in a clone and on any host. Where its page stands alone
they would not: where the repository has an address (RAVI_REPOSITORY, or what GitHub tells its workflows), a build makes
them absolute, at the version's tag, and names the addresses of the project. `.ci/wheel.py` holds packages to this.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

PAPER = "https://arxiv.org/abs/2302.14004"


def repository() -> str | None:
    """The address of the repository, if it has one."""
    told = [os.environ.get(name, "") for name in ("GITHUB_SERVER_URL", "GITHUB_REPOSITORY")]
    return os.environ.get("RAVI_REPOSITORY", "/".join(told) if all(told) else "").rstrip("/") or None


def page(text: str, version: str, address: str | None) -> str:
    """The README with links and pictures that lead somewhere from anywhere."""

    def absolute(found: re.Match[str]) -> str:
        kind = "raw" if found[1] else "blob"
        return f"{found[1]}[{found[2]}]({address}/{kind}/v{version}/{found[3]})"

    return re.sub(r"(!?)\[([^]]*)\]\((?!\w+:|#)([^)]+)\)", absolute, text) if address else text


def urls(address: str | None) -> dict[str, str]:
    """The addresses of the project."""
    if not address:
        return {"Paper": PAPER}
    pages = {"Documentation": "/blob/main/docs/index.md", "Changelog": "/blob/main/CHANGELOG.md", "Issues": "/issues"}
    return {"Paper": PAPER, "Repository": address} | {name: address + place for name, place in pages.items()}


class Addresses(MetadataHookInterface):
    def update(self, metadata: dict[str, Any]) -> None:
        text = (Path(self.root) / "README.md").read_text(encoding="utf-8")
        metadata["readme"] = {"content-type": "text/markdown", "text": page(text, metadata["version"], repository())}
        metadata["urls"] = urls(repository())
