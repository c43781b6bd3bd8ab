// Numbers as people read them.

const MINUS = "\u2212";

/** Three significant digits, a true minus sign, powers of ten only where they help. */
export function formatNumber(value, digits = 3) {
  if (Number.isNaN(value)) return "—";
  if (!Number.isFinite(value)) return value > 0 ? "∞" : `${MINUS}∞`;
  const size = Math.abs(value);
  let text;
  if (size !== 0 && (size < 1e-4 || size >= 1e6)) {
    text = value.toExponential(digits - 1);
  } else {
    text = String(Number(value.toPrecision(digits)));
  }
  return text.replace("-", MINUS);
}

/** A number as precise as three digits of its spread: what is smaller says nothing. */
export function formatWithin(value, spread) {
  const decimals = 2 - Math.floor(Math.log10(spread));
  const rounded = decimals >= 0 && decimals <= 20 ? Number(value.toFixed(decimals)) : value;
  return formatNumber(rounded, 4);
}

/** A number with its sign, as a change is written. */
export function formatSigned(value, digits = 2) {
  const rounded = Number(value.toFixed(digits));
  if (rounded === 0) return (0).toFixed(digits);
  const sign = rounded < 0 ? MINUS : "+";
  return sign + Math.abs(value).toFixed(digits);
}

/** A probability in percent, never rounded to a certainty that it is not. */
export function formatPercent(probability) {
  if (Number.isNaN(probability)) return "—";
  const percent = 100 * probability;
  if (probability <= 0) return "0 %";
  if (probability >= 1) return "100 %";
  if (percent < 0.1) return "< 0.1 %";
  if (percent > 99.9) return "> 99.9 %";
  return `${percent < 10 || percent > 99 ? percent.toFixed(1) : Math.round(percent)} %`;
}

/** A change of a probability in percentage points. */
export function formatPoints(change) {
  return `${formatSigned(100 * change, Math.abs(change) < 0.1 ? 1 : 0)} pp`;
}

/** How strong a dependence is, in a word. */
export function strengthWord(strength) {
  const size = Math.abs(strength);
  return size < 0.05 ? "none" : size < 0.3 ? "weak" : size < 0.6 ? "moderate" : "strong";
}

export function formatBits(bits) {
  if (bits < 0.0005) return "0 bits";
  return `${bits < 0.1 ? bits.toFixed(3) : bits.toFixed(2)} bits`;
}

/** Read a number as people type it: "+2", "−0,5", "1e-3"; NaN when it is none. */
export function parseNumber(text) {
  const plain = text.trim().replaceAll(MINUS, "-").replace(",", ".");
  return /^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i.test(plain) ? Number(plain) : Number.NaN;
}

export function clamp(value, low, high) {
  return Math.min(Math.max(value, low), high);
}

/**
 * A cell of text. Spreadsheets take what begins with = + - @ for a formula, and could be made to
 * run one that a data file brought in: an apostrophe before it says that it is text. Numbers are
 * left alone.
 */
export function csvCell(text) {
  const isFormula = /^[=+\-@\t\r]/.test(text) && Number.isNaN(Number(text));
  const safe = isFormula ? `'${text}` : text;
  return /[",\r\n]|^\s|\s$|^$/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}
