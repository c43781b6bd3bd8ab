"""Builds what the wheel holds beside the sources: scripts and styles of the pages, bundled."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

ESBUILD = ("npx", "--yes", "esbuild@0.25.12")
PAGES = Path("src/latentree/explorer/page")
ENTRIES = ("main.js", "topics_main.js", "base.css", "style.css", "topics.css")


def bundle(sources: Path, target: Path, esbuild: Sequence[str] = ESBUILD) -> None:
    """Write every page's script, with all that it imports, and the styles, with short names."""
    command = [
        *esbuild, *(str(sources / name) for name in ENTRIES), "--bundle",
        "--minify", "--format=iife", "--charset=utf8", "--legal-comments=none",
        "--target=es2023", f"--outdir={target}",
    ]  # fmt: skip
    subprocess.run(command, check=True, capture_output=True, text=True)


class BundleHook(BuildHookInterface):
    """Puts bundled pages into wheels; without node the package joins its plain files itself."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Bundle before a wheel is built; an editable install uses the files as they are."""
        if version == "editable":
            return
        if shutil.which("npx") is None:
            self.app.display_warning("no node: the pages' scripts go into the wheel as they are")
            return
        self.folder = tempfile.TemporaryDirectory()
        target = Path(self.folder.name)
        try:
            bundle(Path(self.root) / PAGES, target)
        except subprocess.CalledProcessError as error:
            self.app.display_warning(f"esbuild failed, scripts stay as they are: {error.stderr}")
            return
        for name in ENTRIES:
            build_data["force_include"][str(target / name)] = (
                f"latentree/explorer/page/bundled/{name}"
            )

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Remove the temporary files once they are in the wheel."""
        if hasattr(self, "folder"):
            self.folder.cleanup()
