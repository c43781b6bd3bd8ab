// The picture to take away: a title, the tree or both trees, and a legend, in light colors.

import { evidenceName, evidenceText } from "./answers.js";
import { FONT } from "./labels.js";
import { drawSwatch, legendEntries } from "./legend.js";
import { treeName } from "./mixture.js";
import { drawScene } from "./scene.js";
import { SvgContext } from "./svg.js";
import { readColors } from "./view.js";

const BORDER = 24;
const LEGIBLE = 9.5; // pixels a unit at which every label is written
const LONGEST_SIDE = 8000; // pixels of a picture's side
const LEGEND_LINE = 20; // pixels of a line of the legend
const NAME_LINE = 24; // pixels of the names of two trees
const NARROWEST_FIGURE = 480; // pixels, so that titles and legends have room

/** The picture as SVG: of the whole tree, or of what is seen of it. */
export function toSvg(panes, { whole = true } = {}) {
  const { width, height, pieces, colors } = figureOf(panes, whole);
  const sheet = new SvgContext(width, height, panes[0].view.ctx);
  sheet.fillStyle = colors.paper;
  sheet.fillRect(0, 0, width, height);
  for (const piece of pieces) {
    const ctx = new SvgContext(piece.width, piece.height, panes[0].view.ctx);
    ctx.ids = sheet.ids; // ids are unique in the whole file
    piece.draw(ctx);
    sheet.nest(ctx, piece.x, piece.y);
  }
  return sheet.toString();
}

export function toPng(panes, { whole = true } = {}, done) {
  const { width, height, pieces, colors } = figureOf(panes, whole);
  const sharp = Math.min(2, LONGEST_SIDE / Math.max(width, height));
  const canvas = document.createElement("canvas");
  canvas.width = Math.round(sharp * width);
  canvas.height = Math.round(sharp * height);
  const ctx = canvas.getContext("2d");
  ctx.scale(sharp, sharp);
  ctx.fillStyle = colors.paper;
  ctx.fillRect(0, 0, width, height);
  for (const piece of pieces) {
    ctx.save();
    ctx.translate(piece.x, piece.y);
    ctx.beginPath();
    ctx.rect(0, 0, piece.width, piece.height);
    ctx.clip();
    piece.draw(ctx);
    ctx.restore();
  }
  canvas.toBlob(done, "image/png");
}

/** The pieces of a picture, each with its place, its size and how it is drawn. */
function figureOf(panes, whole) {
  const colors = lightColors();
  const scale = Math.min(...panes.map(({ view }) => view.whole().scale)); // of both trees
  const frames = panes.map(({ view }) => (whole ? wholeFrame(view, scale) : seenFrame(view)));
  const tall = Math.max(...frames.map((frame) => frame.height));
  const width = Math.max(
    frames.reduce((sum, frame) => sum + frame.width, 0),
    NARROWEST_FIGURE,
  );
  const title = titlePiece(panes[0], width, colors);
  const pieces = [title];
  let x = (width - frames.reduce((sum, frame) => sum + frame.width, 0)) / 2;
  const top = title.height + (panes.length > 1 ? NAME_LINE : 0);
  panes.forEach(({ state }, i) => {
    const y = top + (tall - frames[i].height) / 2;
    pieces.push(scenePiece(state, frames[i], colors, x, y));
    if (state.pair) pieces.push(namePiece(state.pair.name, frames[i], colors, x, title.height));
    x += frames[i].width;
  });
  const legend = legendPiece(panes[0], width, colors);
  legend.y = top + tall;
  pieces.push(legend);
  return { width, height: legend.y + legend.height, pieces, colors };
}

/** Colors of the light theme, whichever is in use. */
function lightColors() {
  const { dataset } = document.documentElement;
  const { theme } = dataset;
  dataset.theme = "light";
  const colors = { ...readColors(), paper: "#ffffff" };
  dataset.theme = theme;
  return colors;
}

function seenFrame({ x, y, scale, width, height }) {
  return { x, y, scale, width: Math.round(width), height: Math.round(height) };
}

/** All of the tree, so large that its labels can be read. */
function wholeFrame(view, usual) {
  let scale = Math.max(usual, LEGIBLE);
  const sizeAt = (size) => {
    const box = view.extent(size, true);
    return { box, width: box.right - box.left, height: box.bottom - box.top };
  };
  const most = LONGEST_SIDE - 2 * BORDER;
  for (let i = 0; i < 20; i++) {
    const { width, height } = sizeAt(scale);
    if (Math.max(width, height) <= most) break;
    scale *= 0.99 * (most / Math.max(width, height));
  }
  const { box, width, height } = sizeAt(scale);
  return {
    x: (box.left + box.right) / 2 / scale,
    y: (box.top + box.bottom) / 2 / scale,
    scale,
    width: Math.ceil(width) + 2 * BORDER,
    height: Math.ceil(height) + 2 * BORDER,
  };
}

function scenePiece(state, frame, colors, x, y) {
  const { width, height } = frame;
  const clean = { ...state, hover: null, echo: -1 };
  return { x, y, width, height, draw: (ctx) => drawScene(ctx, clean, frame, colors) };
}

/** What one of two trees is called, above it. */
function namePiece(name, { width }, colors, x, y) {
  const draw = (ctx) => writeLine(ctx, name, BORDER, 12, `600 13px ${FONT}`, colors.hiddenInk);
  return { x, y, width, height: NAME_LINE, draw };
}

function titlePiece({ state }, width, colors) {
  const given = Array.from(
    state.evidence.keys(),
    (v) => `${evidenceName(state, v)} = ${evidenceText(state, v)}`,
  );
  const most = 3;
  const more = given.length > most ? ` and ${given.length - most} more` : "";
  const lines = [[`600 17px ${FONT}`, colors.ink, state.model.title]];
  const which = treeName(state);
  if (which) lines.push([`13px ${FONT}`, colors.hiddenInk, which]);
  if (given.length > 0) {
    lines.push([
      `13px ${FONT}`,
      colors.hiddenInk,
      `Suppose ${given.slice(0, most).join(", ")}${more}`,
    ]);
  }
  const draw = (ctx) => {
    lines.forEach(([font, color, text], i) => {
      writeLine(ctx, text, BORDER, 26 + 21 * i, font, color);
    });
  };
  return { x: 0, y: 0, width, height: 24 + 21 * lines.length, draw };
}

function legendPiece({ state, view }, width, colors) {
  const font = `12px ${FONT}`;
  view.ctx.font = font;
  let [x, line] = [BORDER, 0];
  const places = legendEntries(state).map(([what, text]) => {
    const wide = 24 + view.ctx.measureText(text).width + 18;
    if (x + wide > width - BORDER && x > BORDER) [x, line] = [BORDER, line + 1];
    const place = { what, text, x, y: 6 + LEGEND_LINE * line };
    x += wide;
    return place;
  });
  const draw = (ctx) => {
    for (const { what, text, x: left, y } of places) {
      drawSwatch(ctx, what, colors, left + 9, y + 7);
      writeLine(ctx, text, left + 22, y + 7, font, colors.ink);
    }
  };
  return { x: 0, y: 0, width, height: LEGEND_LINE * (line + 1) + 14, draw };
}

function writeLine(ctx, text, x, y, font, color) {
  ctx.save();
  ctx.translate(x, y);
  ctx.textAlign = "left";
  ctx.textBaseline = "middle";
  ctx.font = font;
  ctx.fillStyle = color;
  ctx.fillText(text, 0, 0);
  ctx.restore();
}
