// From label ids to colours. The canvas has the size of the image, one canvas pixel per image pixel.

const ABSTAIN = -1;
const TILE = 12;
const HATCH = [206, 206, 214];
const [RIGHT, ABSTAINED] = [1, 3]; // of the verdicts
const PALE = 84; // what is right steps back behind what is wrong

export function pack([red, green, blue], alpha = 255) {
  return ((alpha << 24) | (blue << 16) | (green << 8) | red) >>> 0;
}

export function hexColour(text) {
  return [1, 3, 5].map((start) => parseInt(text.slice(start, start + 2), 16));
}

export class Painter {
  constructor(run) {
    const table = (colourOf) => // the omitted root (-2) and void (-1) come first
      Uint32Array.from([run.colours.root, run.colours.void, ...run.vertices.map(colourOf)], (colour) => pack(colour));
    const byVertex = [table(({ colour }) => colour), table(({ line }) => line)];
    const inGroups = run.groups.length > 0 && [table(({ group }) => run.groups[group].colour),
      table(({ group }) => run.groups[group].line)];
    this.palettes = { label: byVertex, group: inGroups || byVertex };
    this.textures = Uint8Array.from([0, 0, ...run.vertices.map(({ texture }) => texture)]);
    this.tiles = run.textures.map((tile) => Uint8Array.from(tile));
    this.use("label");
    this.white = pack(run.colours.abstain);
    this.line = pack(HATCH);
    this.heat = Uint32Array.from(run.colours.heat, (colour) => pack(colour));
    this.reasons = new Uint32Array(8);
    for (const reason of run.reasons) this.reasons[reason.code] = pack(hexColour(reason.colour));
    this.verdicts = new Uint32Array(4);
    for (const { code, colour } of run.verdicts) if (colour) this.verdicts[code] = pack(hexColour(colour), code === RIGHT ? PALE : 255);
    this.differences = new Uint32Array(run.differences.length + 1);
    for (const { code, colour } of run.differences) this.differences[code] = pack(hexColour(colour));
  }

  // Colours of vertices, or of their groups.
  use(colours) {
    [this.labels, this.lines] = this.palettes[colours] ?? this.palettes.label;
  }

  // A map of classes: void is dark.
  truth(canvas, answer) {
    this.fill(canvas, answer, (out, { vertex }) => {
      for (let i = 0; i < out.length; i++) out[i] = this.labels[vertex[i] + 2];
    });
  }

  // A certified map: abstentions are hatched, so that no colour stands for them.
  certified(canvas, answer, colours) {
    const ways = { label: this.byLabel, group: this.byLabel, radius: this.byRadius, reason: this.byReason,
      verdict: this.byVerdict };
    this.fill(canvas, answer, ways[colours].bind(this));
  }

  byLabel(out, { vertex }, width) {
    const coarse = Math.max(1, Math.floor(width / 640));
    for (let i = 0; i < out.length; i++) {
      const id = vertex[i] + 2, texture = this.textures[id];
      if (vertex[i] === ABSTAIN) out[i] = this.hatch(i, width);
      else out[i] = texture && this.isLine(texture, i, width, coarse) ? this.lines[id] : this.labels[id];
    }
  }

  // Whether a pixel lies on a line of the texture of its level.
  isLine(texture, i, width, coarse) {
    const row = Math.floor(Math.floor(i / width) / coarse) % TILE, column = Math.floor((i % width) / coarse) % TILE;
    return this.tiles[texture][row * TILE + column];
  }

  byRadius(out, { radius }, width) {
    const top = largest(radius);
    for (let i = 0; i < out.length; i++) {
      out[i] = radius[i] > 0 ? this.heat[Math.min(255, Math.floor((radius[i] / top) * 256))] : this.hatch(i, width);
    }
  }

  byReason(out, { reason }) {
    for (let i = 0; i < out.length; i++) out[i] = reason[i] === 0 ? 0 : this.reasons[reason[i]];
  }

  byVerdict(out, { verdict }, width) {
    for (let i = 0; i < out.length; i++) out[i] = verdict[i] === ABSTAINED ? this.hatch(i, width) : this.verdicts[verdict[i]];
  }

  difference(canvas, answer) {
    this.fill(canvas, answer, (out, { difference }) => {
      for (let i = 0; i < out.length; i++) out[i] = this.differences[difference[i]];
    });
  }

  hatch(i, width) {
    return ((i % width) + Math.floor(i / width)) % 8 < 2 ? this.line : this.white;
  }

  fill(canvas, answer, paint) {
    if (canvas.width !== answer.width || canvas.height !== answer.height) {
      canvas.width = answer.width;
      canvas.height = answer.height;
    }
    const context = canvas.getContext("2d");
    const picture = context.createImageData(answer.width, answer.height);
    const out = new Uint32Array(picture.data.buffer);
    paint(out, answer.maps, answer.width);
    for (const mask of [answer.maps.mask, answer.maps.of]) {
      if (mask) for (let i = 0; i < out.length; i++) if (!mask[i]) out[i] = 0;
    }
    context.putImageData(picture, 0, 0);
  }
}

export function largest(values) {
  let top = 0;
  for (const value of values) if (value > top) top = value;
  return top || 1;
}
