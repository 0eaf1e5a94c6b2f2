// From label ids to colours. The canvas has the size of the image, one canvas pixel per image pixel.

const ABSTAIN = -1;
const HATCH = [206, 206, 214];

export function pack([red, green, blue], alpha = 255) {
  return ((alpha << 24) | (blue << 16) | (green << 8) | red) >>> 0;
}

export function hexColour(text) {
  return [1, 3, 5].map((start) => parseInt(text.slice(start, start + 2), 16));
}

export class Painter {
  constructor(run) {
    this.labels = new Uint32Array(run.vertices.length + 2);
    this.labels[0] = pack(run.colours.root); // -2, the omitted root
    run.vertices.forEach((vertex, index) => (this.labels[index + 2] = pack(vertex.colour)));
    this.white = pack(run.colours.abstain);
    this.line = pack(HATCH);
    this.void = pack(run.colours.void);
    this.heat = Uint32Array.from(run.colours.heat, (colour) => pack(colour));
    this.reasons = new Uint32Array(8);
    for (const reason of run.reasons) this.reasons[reason.code] = pack(hexColour(reason.colour));
  }

  // A map of classes: void is dark.
  truth(canvas, answer) {
    this.fill(canvas, answer, (out, { vertex }) => {
      this.labels[1] = this.void;
      for (let i = 0; i < out.length; i++) out[i] = this.labels[vertex[i] + 2];
    });
  }

  // A certified map: abstentions are hatched, so that no colour stands for them.
  certified(canvas, answer, colours) {
    const ways = { label: this.byLabel, radius: this.byRadius, reason: this.byReason };
    this.fill(canvas, answer, ways[colours].bind(this));
  }

  byLabel(out, { vertex }, width) {
    for (let i = 0; i < out.length; i++) {
      out[i] = vertex[i] === ABSTAIN ? this.hatch(i, width) : this.labels[vertex[i] + 2];
    }
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
    const mask = answer.maps.mask;
    if (mask) for (let i = 0; i < out.length; i++) if (!mask[i]) out[i] = 0;
    context.putImageData(picture, 0, 0);
  }
}

export function largest(values) {
  let top = 0;
  for (const value of values) if (value > top) top = value;
  return top || 1;
}
