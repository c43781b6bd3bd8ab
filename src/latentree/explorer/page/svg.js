// A canvas that writes SVG: the few methods that the scene is drawn with.

/** Text that XML can hold: no control characters, no markup. */
export function escapeXml(text) {
  return text
    .toWellFormed()
    .replace(/[\u0000-\u0008\u000b\u000c\u000e-\u001f\ufffe\uffff]/g, "\ufffd")
    .replaceAll("&", "&amp;")
    .replaceAll("<", "&lt;")
    .replaceAll(">", "&gt;")
    .replaceAll('"', "&quot;");
}

const short = (value) => String(Math.round(value * 100) / 100);

export class SvgContext {
  constructor(width, height, measure) {
    this.width = width;
    this.height = height;
    this.measure = measure; // a true canvas, to know the widths of texts
    this.parts = [];
    this.path = [];
    this.dash = [];
    this.transform = "";
    this.saved = [];
    this.ids = new Map(); // how often each id was asked for
    this.next = ""; // the id of what is painted next
  }

  beginPath() {
    this.path = [];
  }

  moveTo(x, y) {
    this.path.push(`M${short(x)} ${short(y)}`);
  }

  lineTo(x, y) {
    this.path.push(`L${short(x)} ${short(y)}`);
  }

  quadraticCurveTo(...points) {
    this.path.push(`Q${points.map(short).join(" ")}`);
  }

  closePath() {
    this.path.push("Z");
  }

  rect(x, y, width, height) {
    this.path.push(`M${short(x)} ${short(y)}h${short(width)}v${short(height)}h${short(-width)}Z`);
  }

  /** Whole circles only; the point where they begin is set by moveTo. */
  arc(x, y, radius) {
    const r = short(radius);
    this.path.push(`A${r} ${r} 0 1 1 ${short(x - radius)} ${short(y)}`);
    this.path.push(`A${r} ${r} 0 1 1 ${short(x + radius)} ${short(y)}`);
  }

  /** Give what is painted next an id of its own, of a kind and a name. */
  mark(kind, name) {
    const plain = `${kind}-${name.replace(/[^\p{L}\p{N}_.-]/gu, "_")}`;
    const count = (this.ids.get(plain) ?? 0) + 1;
    this.ids.set(plain, count);
    this.next = count === 1 ? plain : `${plain}-${count}`;
  }

  takeId() {
    const id = this.next ? ` id="${escapeXml(this.next)}"` : "";
    this.next = "";
    return id;
  }

  fill() {
    if (this.path.length === 0) return;
    const fill = `fill="${escapeXml(this.fillStyle)}"`;
    this.parts.push(`<path${this.takeId()} d="${this.path.join("")}" ${fill}/>`);
  }

  /** Both in one element. */
  fillAndStroke() {
    this.stroke(escapeXml(this.fillStyle));
  }

  stroke(fill = "none") {
    if (this.path.length === 0) return;
    const dash =
      this.dash.length > 0 ? ` stroke-dasharray="${this.dash.map(short).join(" ")}"` : "";
    this.parts.push(
      `<path${this.takeId()} d="${this.path.join("")}" fill="${fill}" stroke="${escapeXml(this.strokeStyle)}" ` +
        `stroke-width="${short(this.lineWidth)}" stroke-linecap="round"${dash}/>`,
    );
  }

  fillRect(x, y, width, height) {
    this.parts.push(
      `<rect x="${short(x)}" y="${short(y)}" width="${short(width)}" height="${short(height)}" ` +
        `fill="${escapeXml(this.fillStyle)}"/>`,
    );
  }

  setLineDash(dash) {
    this.dash = dash;
  }

  save() {
    this.saved.push(this.transform);
  }

  restore() {
    this.transform = this.saved.pop();
  }

  translate(x, y) {
    this.transform += `translate(${short(x)} ${short(y)})`;
  }

  rotate(angle) {
    if (angle !== 0) this.transform += `rotate(${short((angle * 180) / Math.PI)})`;
  }

  measureText(text) {
    this.measure.font = this.font;
    return this.measure.measureText(text);
  }

  strokeText(text) {
    this.text(text, `fill="none" stroke="${escapeXml(this.strokeStyle)}" stroke-width="3"`);
  }

  fillText(text) {
    this.text(text, `fill="${escapeXml(this.fillStyle)}"`);
  }

  text(text, paint) {
    const anchor = this.textAlign === "right" ? ' text-anchor="end"' : "";
    const [, style, weight, size, family] = /^(italic )?(600 )?([\d.]+)px (.*)$/.exec(this.font);
    this.parts.push(
      `<text transform="${this.transform}" dy="0.34em" font-family="${escapeXml(family)}" ` +
        `font-size="${size}"${style ? ' font-style="italic"' : ""}` +
        `${weight ? ' font-weight="600"' : ""} ${paint} stroke-linejoin="round"${anchor} ` +
        `xml:space="preserve">${escapeXml(text)}</text>`,
    );
  }

  /** Put another picture into this one. */
  nest(other, x, y) {
    this.parts.push(other.toString(` x="${short(x)}" y="${short(y)}"`).trimEnd());
  }

  toString(place = "") {
    const [width, height] = [short(this.width), short(this.height)];
    return (
      `<svg xmlns="http://www.w3.org/2000/svg"${place} width="${width}" height="${height}" ` +
      `viewBox="0 0 ${width} ${height}">\n${this.parts.join("\n")}\n</svg>\n`
    );
  }
}
