"""Frames of the explorer's page against frames of an empty canvas, in one browser.

    python benchmarks/page.py [--quick]

"Moving" is a frame while a person zooms and pans, from one animation frame to the next, against the
same for an empty canvas that is filled with one color; runs of frames alternate, so that a busy
machine slows both alike, and medians are compared. "Sharp" is the picture at rest: it is drawn and
then one pixel of it is read, which waits until it is truly drawn. "Answer" follows evidence:
inference, panel and picture. Needs chromium and chromedriver.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from common import show
from latentree import Tree, simulate
from latentree.explorer import write_explorer

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.explorer.browser import Browser, missing

FRAMES = """
const { state, view } = window.latentreeExplorer;
const [kind, count, done] = arguments;
document.getElementById(kind).click();
const empty = document.createElement("canvas");
[empty.width, empty.height] = [view.canvas.width, view.canvas.height];
const pen = empty.getContext("2d", { alpha: false });
const nextFrame = () => new Promise((found) => requestAnimationFrame(found));
const times = { moving: [], empty: [], sharp: [], answer: [] };
const sharply = (draw) => {
  const start = performance.now();
  draw();
  view.ctx.getImageData(0, 0, 1, 1);
  return performance.now() - start;
};
/** Time from frame to frame while something is done in each; reading a pixel waits for drawing. */
const run = async (kept, ctx, act) => {
  let last = await nextFrame();
  for (let i = 0; i < 8; i++) {
    act(i);
    await nextFrame();
    ctx.getImageData(0, 0, 1, 1);
    const now = performance.now();
    if (i > 0) kept.push(now - last);
    last = now;
  }
};
(async () => {
  view.draw();
  for (let i = 0; i < count; i += 8) {
    // Closer up to ten times, and back, moving to the right.
    const closer = i < count / 2;
    await run(times.moving, view.ctx, () => {
      view.zoom(closer ? 100 ** (1 / count) : 0.01 ** (1 / count));
      view.pan(-2, 0);
    });
    await run(times.empty, pen, (j) => {
      pen.fillStyle = j % 2 ? "#fbfaf6" : "#12171d";
      pen.fillRect(0, 0, empty.width, empty.height);
    });
    times.sharp.push(sharply(() => view.draw()));
  }
  state.evidence.set(0, state.prior.mean[0] + Math.sqrt(state.prior.variance[0]));
  for (let i = 0; i < count / 8; i++) {
    times.answer.push(sharply(() => {
      for (const listener of state.listeners.get("evidence")) listener();
      view.draw();
    }));
  }
  state.evidence.clear();
  done(times);
})();
"""


def medians(browser: Browser, kind: str, count: int) -> dict[str, float]:
    body = {"script": FRAMES, "args": [kind, count]}
    times = browser._call("POST", f"{browser.session}/execute/async", body)
    return {key: float(np.median(values)) for key, values in times.items()}


def trees(quick: bool) -> Iterator[tuple[str, Tree]]:
    for m in (100, 700) if quick else (100, 700, 6_900):
        yield "tree", simulate.random_latent_tree(m, np.random.default_rng(0))
    for m in (1_000,) if quick else (1_000, 10_000):
        yield "star", simulate.latent_class(m)


def frames(quick: bool) -> None:
    lines = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        browser = Browser(folder, 1440, 900)
        try:
            for what, tree in trees(quick):
                m = tree.n_observed
                model = simulate.random_gaussian_model(tree, 0, negative_share=0.3)
                path = folder / "tree.html"
                write_explorer(model, path, groups=[f"group {v % 8}" for v in range(m)])
                browser.open(path)
                for kind in ("radial", "layered"):
                    time = medians(browser, kind, 24 if quick else 80)
                    lines.append([
                        f"{what}, {tree.n_nodes:,} nodes, {kind}",
                        f"{path.stat().st_size / 1e3:,.0f}",
                        f"{time['empty']:.1f}", f"{time['moving']:.1f}",
                        f"{time['moving'] / time['empty']:.1f}",
                        f"{time['sharp']:.0f}", f"{time['answer']:.0f}",
                    ])  # fmt: skip
        finally:
            browser.close()
    header = ["page", "kB", "empty ms", "moving ms", "moving × empty", "sharp ms", "answer ms"]
    show(header, lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="small trees")
    quick = parser.parse_args().quick
    if missing():
        print(f"frames of the page are left out: {missing()}")
        return
    frames(quick)


if __name__ == "__main__":
    main()
