// Questions to the server, and its answers: JSON, or numbers and maps packed in one body (see viewer/layers.py).

const ARRAYS = { "<i2": Int16Array, "<f4": Float32Array, "<u4": Uint32Array, "|u1": Uint8Array };
const TAB = Math.random().toString(36).slice(2, 10);

export async function ask(path, query = {}, options = {}) {
  const answer = await fetch(`${path}?${new URLSearchParams(query)}`, options);
  if (answer.status === 204) return null; // a newer question overtook this one
  if (!answer.ok) throw new Error(await sentence(answer));
  const packed = answer.headers.get("content-type") === "application/octet-stream";
  return packed ? unpack(await answer.arrayBuffer()) : answer.json();
}

export function send(path, query = {}, body = undefined) {
  return ask(path, query, { method: "POST", body, headers: { "X-Certiseg": "1" } });
}

async function sentence(answer) {
  try {
    return (await answer.json()).error;
  } catch {
    return `the server answered ${answer.status}`;
  }
}

export function unpack(buffer) {
  const length = new DataView(buffer).getUint32(0, true);
  const facts = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 4, length)));
  const maps = {};
  for (const layer of facts.layers) {
    const type = ARRAYS[layer.type];
    maps[layer.name] = new type(buffer, 4 + length + layer.offset, layer.bytes / type.BYTES_PER_ELEMENT);
  }
  return { ...facts, maps };
}

// One question at a time; of those asked meanwhile only the newest is sent.
export class Lane {
  constructor(path, name, { onAnswer, onError }) {
    Object.assign(this, { path, name: `${TAB}-${name}`, onAnswer, onError });
    this.busy = false;
    this.waiting = null;
    this.number = 0;
    this.settled = 0; // how many answers have been dealt with, for tests
  }

  // path: where to ask this time, when it is not the usual place.
  ask(query, path = this.path) {
    this.waiting = { query, path };
    if (!this.busy) this.next();
  }

  get idle() {
    return !this.busy && this.waiting === null;
  }

  async next() {
    this.busy = true;
    while (this.waiting !== null) {
      const { path } = this.waiting;
      const { body, ...asked } = this.waiting.query; // with a body it is sent as a POST
      const query = { ...asked, lane: this.name, request: ++this.number };
      this.waiting = null;
      try {
        const answer = await (body === undefined ? ask(path, query) : send(path, query, body));
        if (answer !== null) this.onAnswer(answer, query);
      } catch (error) {
        this.onError(error.message);
      }
      this.settled += 1;
    }
    this.busy = false;
  }
}
