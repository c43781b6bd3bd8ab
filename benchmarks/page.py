"""Frames of the explorer's page against frames of an empty canvas, in one browser.

    python benchmarks/page.py [--quick]

A frame is drawn and then one pixel of it is read, which waits until it is truly drawn. An empty
frame only fills a canvas of the same size with one color. Frames alternate, so that a busy machine
slows both alike; medians are compared. "Answer" is what follows a piece of evidence: inference,
panel and picture. Needs chromium and chromedriver.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

import numpy as np

from common import show
from latentree import simulate
from latentree.explorer import write_explorer

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.explorer.browser import Browser, missing

FRAMES = """
const { state, view } = window.latentreeExplorer;
const [kind, count] = arguments;
document.getElementById(kind).click();
const empty = document.createElement("canvas");
[empty.width, empty.height] = [view.canvas.width, view.canvas.height];
const pen = empty.getContext("2d", { alpha: false });
const timed = (ctx, draw) => {
  const start = performance.now();
  draw();
  ctx.getImageData(0, 0, 1, 1);
  return performance.now() - start;
};
const times = { frame: [], empty: [], answer: [] };
const { x, y, scale } = view.whole();
for (let i = 0; i < count; i++) {
  // Closer and closer up to ten times, and back, moving to the right.
  const share = 1 - Math.abs((2 * i) / count - 1);
  Object.assign(view, { x: x + i / scale, y, scale: scale * 10 ** share });
  times.frame.push(timed(view.ctx, () => view.draw()));
  pen.fillStyle = i % 2 ? "#fbfaf6" : "#12171d";
  const blank = () => timed(pen, () => pen.fillRect(0, 0, empty.width, empty.height));
  // Many at a time: a browser's clock has steps of 0.1 ms.
  const start = performance.now();
  for (let j = 0; j < 20; j++) blank();
  times.empty.push((performance.now() - start) / 20);
}
state.evidence.set(0, state.prior.mean[0] + Math.sqrt(state.prior.variance[0]));
for (let i = 0; i < count / 4; i++) {
  times.answer.push(timed(view.ctx, () => {
    for (const listener of state.listeners.get("evidence")) listener();
    view.draw();
  }));
}
state.evidence.clear();
return times;
"""


def medians(browser: Browser, kind: str, count: int) -> dict[str, float]:
    times = browser.run(FRAMES, kind, count)
    return {key: float(np.median(values)) for key, values in times.items()}


def frames(quick: bool) -> None:
    lines = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        browser = Browser(folder, 1440, 900)
        try:
            for m in (100, 700) if quick else (100, 700, 6_900):
                rng = np.random.default_rng(0)
                tree = simulate.random_latent_tree(m, rng)
                model = simulate.random_gaussian_model(tree, rng, negative_share=0.1)
                path = folder / f"{m}.html"
                write_explorer(model, path, groups=[f"group {v % 8}" for v in range(m)])
                browser.open(path)
                for kind in ("radial", "layered"):
                    time = medians(browser, kind, 20 if quick else 80)
                    lines.append([
                        f"{tree.n_nodes:,} nodes, {kind}", f"{path.stat().st_size / 1e3:,.0f}",
                        f"{time['empty']:.2f}", f"{time['frame']:.2f}",
                        f"{time['frame'] / time['empty']:.1f}",
                        f"{time['answer'] / time['empty']:.1f}",
                    ])  # fmt: skip
        finally:
            browser.close()
    header = ["page", "kB", "empty ms", "frame ms", "frame × empty", "answer × empty"]
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
