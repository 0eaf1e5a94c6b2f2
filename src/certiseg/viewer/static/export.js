// A pane as a file: picture, legend, and lines that say what it is. One list of parts, drawn (PNG) or written (SVG).

import { byId, rgb } from "./elements.js";
import { saveBlob, saveText } from "./save.js";

const WIDTH = 960;
const EDGE = 24;
const FAMILY = "system-ui, Segoe UI, Roboto, Helvetica, Arial, sans-serif";
const INK = "#1b1d23";
const QUIET = "#545966";
const measure = document.createElement("canvas").getContext("2d");

// sheet: { title, role, lines, legend, picture, name }; legend: [{ colour, text }], null for the hatch; or a scale.
export async function savePane(sheet, kind) {
  const { parts, height } = layOut(sheet);
  if (kind === "svg") return saveText(`${sheet.name}.svg`, written(parts, height, sheet.title), "image/svg+xml");
  const canvas = drawn(parts, height);
  saveBlob(`${sheet.name}.png`, await new Promise((resolve) => canvas.toBlob(resolve, "image/png")));
}

// What a pane shows now, at the size of a sheet: photograph and map, the zoomed part alone.
export function pictureOf(stage, { photo, map }, opacity) {
  const { zoom, x, y } = stage.view;
  const [wide, tall] = [stage.size.width / zoom, stage.size.height / zoom];
  const canvas = document.createElement("canvas");
  canvas.width = WIDTH - 2 * EDGE;
  canvas.height = Math.round((canvas.width * tall) / wide);
  const context = canvas.getContext("2d");
  context.imageSmoothingEnabled = false;
  const part = (layer, share) => {
    const scale = layer.width / stage.size.width; // without a photograph its canvas is a single pixel
    if (layer.hidden || share === 0 || layer.width < 2) return;
    context.globalAlpha = share;
    context.drawImage(layer, (x * stage.size.width - wide / 2) * scale, (y * stage.size.height - tall / 2) * scale,
      wide * scale, tall * scale, 0, 0, canvas.width, canvas.height);
  };
  part(photo, 1);
  part(map, opacity);
  return canvas;
}

function layOut({ title, role, lines, legend, picture }) {
  const parts = [];
  let y = EDGE + 18;
  const text = (words, size, { weight = 400, fill = INK } = {}) => {
    for (const line of wrapped(words, size, weight)) {
      parts.push({ text: line, x: EDGE, y, size, weight, fill });
      y += size * 1.45;
    }
  };
  text(title, 20, { weight: 650 });
  text(role, 15, { weight: 600 });
  parts.push({ image: picture, x: EDGE, y: y - 8, width: picture.width, height: picture.height });
  y += picture.height + 14;
  y = legend.stops ? scale(parts, legend, y) : entries(parts, legend, y);
  for (const line of lines) text(line, 13, { fill: QUIET });
  return { parts, height: Math.ceil(y + EDGE - 12) };
}

function wrapped(words, size, weight) {
  measure.font = `${weight} ${size}px ${FAMILY}`;
  const lines = [""];
  for (const word of words.split(/\s+/)) {
    const longer = `${lines.at(-1)} ${word}`.trim();
    if (measure.measureText(longer).width <= WIDTH - 2 * EDGE || !lines.at(-1)) lines[lines.length - 1] = longer;
    else lines.push(word);
  }
  return lines;
}

function entries(parts, legend, top) {
  let [x, y] = [EDGE, top];
  measure.font = `400 14px ${FAMILY}`;
  for (const { colour, text } of legend) {
    const width = 20 + measure.measureText(text).width + 22;
    if (x > EDGE && x + width > WIDTH - EDGE) [x, y] = [EDGE, y + 24];
    parts.push({ box: colour, x, y, width: 14, height: 14 }, { text, x: x + 20, y: y + 12, size: 14, weight: 400, fill: INK });
    x += width;
  }
  return legend.length ? y + 40 : y + 8;
}

function scale(parts, { stops, top, mark, words }, y) {
  const width = 420;
  stops.forEach((colour, index) => parts.push({ box: colour, plain: true, x: EDGE + (index * width) / stops.length, y,
    width: width / stops.length + 0.5, height: 14 }));
  parts.push({ box: [27, 29, 35], plain: true, x: EDGE + Math.min(1, mark / top) * width - 1.5, y: y - 3, width: 3, height: 20 });
  parts.push({ text: `0 to ${top.toFixed(3)}; ${words}`, x: EDGE + width + 16, y: y + 12, size: 14, weight: 400, fill: INK });
  return y + 40;
}

function drawn(parts, height) {
  const canvas = document.createElement("canvas");
  [canvas.width, canvas.height] = [WIDTH, height];
  const context = canvas.getContext("2d");
  context.fillStyle = "#fff";
  context.fillRect(0, 0, WIDTH, height);
  for (const part of parts) {
    if (part.image) context.drawImage(part.image, part.x, part.y);
    else if (part.text !== undefined) {
      context.font = `${part.weight} ${part.size}px ${FAMILY}`;
      context.fillStyle = part.fill;
      context.fillText(part.text, part.x, part.y);
    } else drawBox(context, part);
  }
  return canvas;
}

function drawBox(context, { box, plain, x, y, width, height }) {
  context.fillStyle = box ? rgb(box) : "#fff";
  context.fillRect(x, y, width, height);
  if (!box) {
    context.fillStyle = "#b9b9c3";
    for (const [at, wide] of HATCH) context.fillRect(x + at, y, wide, height);
  }
  if (plain) return;
  context.strokeStyle = "#00000055";
  context.strokeRect(x + 0.5, y + 0.5, width - 1, height - 1);
}

const HATCH = [[2, 2], [6, 2], [10, 2]];

function written(parts, height, title) {
  const body = parts.map((part) => {
    if (part.image) {
      return `<image x="${part.x}" y="${part.y}" width="${part.width}" height="${part.height}" href="${part.image.toDataURL("image/png")}"/>`;
    }
    if (part.text !== undefined) {
      return `<text x="${part.x}" y="${part.y}" font-size="${part.size}" font-weight="${part.weight}" fill="${part.fill}">${safe(part.text)}</text>`;
    }
    const { box, plain, x, y, width, height: tall } = part;
    const edge = plain ? "" : ' stroke="#000" stroke-opacity="0.33"';
    const lines = box ? "" : HATCH.map(([at, wide]) => `<rect x="${x + at}" y="${y}" width="${wide}" height="${tall}" fill="#b9b9c3"/>`).join("");
    return `<rect x="${x}" y="${y}" width="${width}" height="${tall}" fill="${box ? rgb(box) : "#fff"}"${edge}/>${lines}`;
  });
  return `<?xml version="1.0" encoding="UTF-8"?>\n<svg xmlns="http://www.w3.org/2000/svg" width="${WIDTH}" height="${height}" ` +
    `viewBox="0 0 ${WIDTH} ${height}" font-family="${FAMILY}">\n<title>${safe(title)}</title>\n` +
    `<rect width="${WIDTH}" height="${height}" fill="#fff"/>\n${body.join("\n")}\n</svg>\n`;
}

const safe = (text) => text.replace(/[&<>"]/g, (sign) => `&#${sign.charCodeAt(0)};`);

// The dialog: which pane, which format, the link, the certificate of an upload.
// sheetOf: pane -> sheet; certificate: its address, null for the run's own images.
export function listenToExport({ sheetOf, certificate, panes }) {
  const dialog = byId("export");
  byId("export-button").addEventListener("click", () => {
    const offered = panes();
    for (const option of byId("export-pane").options) option.hidden = option.disabled = !offered.includes(option.value);
    if (!offered.includes(byId("export-pane").value)) byId("export-pane").value = offered[0];
    byId("export-link").value = location.href;
    const link = certificate();
    byId("export-certificate").hidden = link === null;
    if (link) byId("export-certificate").href = link;
    byId("export-own").hidden = link !== null;
    dialog.showModal();
  });
  for (const kind of ["png", "svg"]) {
    byId(`export-${kind}`).addEventListener("click", () => savePane(sheetOf(byId("export-pane").value), kind));
  }
  byId("export-copy").addEventListener("click", () => {
    byId("export-link").select();
    navigator.clipboard?.writeText(byId("export-link").value);
  });
}
