// What a certificate is about, to be looked at in the place of the photograph: the image along the threat, draws as the
// model got them, perturbations of size R and beyond.

import { Lane, send } from "./api.js";
import { byId, press } from "./elements.js";
import { choice } from "./state.js";

const TIMES = 256; // the slider of a perturbation ends at so many R

export class Look {
  constructor(run, stage) {
    const threat = run.threat;
    Object.assign(this, { run, stage, threat, along: threat.law !== "none", what: "photo", draw: 0, picture: null, certified: null });
    this.lane = new Lane("/api/look", "l", { onAnswer: (answer, query) => this.show(answer, query), onError: (text) => this.say(text) });
    byId("look-title").textContent = this.along ? `The threat: ${threat.name}` : "What R looks like";
    byId("look-about").textContent = this.along ? threat.words : "Beside the noise that the draws have.";
    byId("look-label").textContent = this.along ? "t" : "size";
    for (const button of document.querySelectorAll("[data-look]")) {
      button.hidden = button.dataset.look === "moved" ? !this.along : this.along && !["photo", "draw"].includes(button.dataset.look);
      button.addEventListener("click", () => this.take(button.dataset.look));
    }
    const slider = byId("look-amount");
    const ends = this.along ? [threat.law === "normal" ? -threat.most : 0, threat.most] : [0, Math.log2(TIMES)];
    Object.assign(slider, { min: ends[0], max: ends[1], step: (ends[1] - ends[0]) / 200 });
    slider.value = 0;
    slider.addEventListener("input", () => this.slide());
    byId("look-next").addEventListener("click", () => this.next());
    byId("look-search").addEventListener("click", () => this.search());
    this.take("photo");
  }

  // The slider of a threat is the parameter; that of a perturbation a power of two of R.
  get amount() {
    if (this.what === "draw") return this.draw;
    const value = Number(byId("look-amount").value);
    return this.along ? value : 2 ** value;
  }

  take(what) {
    this.what = what;
    press(document.querySelectorAll("[data-look]"), "look", what);
    byId("look-next").hidden = what !== "draw";
    byId("look-search").hidden = what !== "attack";
    byId("look-row").hidden = !(this.along ? ["photo", "moved"] : ["random", "attack"]).includes(what);
    this.ask();
  }

  slide() {
    if (this.along && this.what === "photo") this.take("moved");
    else this.ask();
  }

  next() {
    this.draw = (this.draw + 1) % choice().n;
    this.ask();
  }

  ask() {
    this.mark();
    if (this.what === "photo") return this.back();
    if (this.what === "attack") {
      this.back();
      this.say("A few gradient steps look for a perturbation that changes as much as possible.");
      return;
    }
    this.lane.ask({ ...choice(), what: this.what, amount: this.amount });
  }

  // The photograph itself.
  back() {
    this.say("");
    this.beyond(false);
    this.stage.title("photo", "Image");
    if (this.picture) this.stage.setPhoto(this.picture);
  }

  // Another image, with its photograph when it is there.
  forget() {
    this.picture = null;
    this.draw = 0;
    byId("look").hidden = true; // until its photograph is there
    byId("look-amount").value = 0;
    this.take("photo");
  }

  // True where something else stands in its place.
  photo(picture) {
    this.picture = picture;
    byId("look").hidden = false;
    if (this.what === "photo") this.stage.setPhoto(picture);
  }

  // What map A covers, and as what.
  refresh(answer) {
    this.certified = { low: this.threat.law === "normal" ? -answer.end : 0, high: answer.end, role: answer.role, extent: answer.extent };
    if (this.what === "photo" || this.what === "attack") this.mark();
    else this.ask();
  }

  // The part of the slider that is certified; for a perturbation R is where it begins.
  mark() {
    if (!this.certified) return;
    const { min, max } = byId("look-amount");
    const place = (t) => Math.min(100, Math.max(0, ((t - min) / (max - min)) * 100));
    const [from, to] = this.along ? [place(this.certified.low), place(this.certified.high)] : [0, 1];
    const part = byId("look-certified");
    Object.assign(part.style, { left: `${from}%`, width: `${to - from}%` });
    part.className = `range-part ${this.certified.role}`;
    byId("look-range").textContent = `${this.certified.role}: ${this.certified.extent}`;
  }

  show(answer, query) {
    if (query.what !== this.what || query.image !== choice().image) return;
    this.paint(answer);
  }

  paint(answer) {
    const { width, height } = answer;
    const sent = new ImageData(new Uint8ClampedArray(answer.maps.picture.buffer, answer.maps.picture.byteOffset, 4 * width * height), width, height);
    const small = Object.assign(document.createElement("canvas"), { width, height });
    small.getContext("2d").putImageData(sent, 0, 0);
    this.stage.setPhoto(small);
    this.stage.title("photo", "Image", answer.words);
    const where = { true: `inside what is certified (${answer.extent})`, false: `beyond ${answer.extent}: nothing is promised here` };
    const changed = answer.changed === undefined ? "" : ` It changes the answer of the model without noise at ` +
      `${(100 * answer.changed).toFixed(1)} % of the pixels; certified are its answers under noise.`;
    this.say(`${answer.words}${answer.inside === null ? "" : `; ${where[answer.inside]}`}.${changed}`);
    this.beyond(answer.inside === false);
  }

  async search() {
    byId("look-search").disabled = true;
    this.say("Searching…");
    const asked = choice();
    try {
      const answer = await send("/api/attack", { ...asked, amount: this.amount });
      if (this.what === "attack" && asked.image === choice().image) this.paint(answer);
    } catch (error) {
      this.say(error.message);
    }
    byId("look-search").disabled = false;
  }

  say(text) {
    byId("look-words").textContent = text;
  }

  // Beyond the certified range the maps fade.
  beyond(value) {
    this.stage.root.classList.toggle("beyond", value);
  }
}
