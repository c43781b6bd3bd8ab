// Printing: in light colors, sharp, and as wide as the sheet.

const SHARP = 3; // pixels of the printed picture a pixel of the screen's

export function createPrinting(view, setDark) {
  let wasDark = false;
  addEventListener("beforeprint", () => {
    wasDark = view.colors.dark;
    view.printing = true;
    view.setRatio(SHARP);
    setDark(false);
  });
  addEventListener("afterprint", () => {
    view.printing = false;
    setDark(wasDark);
    view.resize();
  });
}
