// Printing: in light colors on white, sharp, and as wide as the sheet.

const SHARP = 3; // pixels of the printed picture a pixel of the screen's

export function createPrinting(views, setDark) {
  let wasDark = false;
  addEventListener("beforeprint", () => {
    wasDark = views[0].colors.dark;
    document.documentElement.toggleAttribute("data-printing", true);
    for (const view of views) {
      view.printing = true;
      view.setRatio(SHARP);
    }
    setDark(false);
  });
  addEventListener("afterprint", () => {
    document.documentElement.toggleAttribute("data-printing", false);
    for (const view of views) view.printing = false;
    setDark(wasDark);
    for (const view of views) view.resize();
  });
}
