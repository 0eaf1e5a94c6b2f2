// Another image: dropped or chosen, certified with the run's model and settings while its map grows.

import { ask, send } from "./api.js";
import { byId, percent } from "./elements.js";

export class Dropper {
  constructor(run, { chosen, onGrow, onDone }) {
    Object.assign(this, { run, chosen, onGrow, onDone, id: null });
    byId("file").addEventListener("change", (event) => this.take(event.target.files[0]));
    byId("drop-cancel").addEventListener("click", () => this.wish("cancel"));
    byId("drop-stop").addEventListener("click", () => this.wish("stop"));
    this.listen();
    this.resume();
  }

  listen() {
    let depth = 0;
    const veil = byId("drop-veil");
    const files = (event) => [...(event.dataTransfer?.types ?? [])].includes("Files");
    addEventListener("dragenter", (event) => {
      if (files(event)) veil.hidden = ++depth === 0;
    });
    addEventListener("dragleave", (event) => {
      if (files(event)) veil.hidden = --depth <= 0;
    });
    addEventListener("dragover", (event) => files(event) && event.preventDefault());
    addEventListener("drop", (event) => {
      depth = 0;
      veil.hidden = true;
      if (!files(event)) return;
      event.preventDefault();
      this.take(event.dataTransfer.files[0]);
    });
  }

  words() {
    const { setting, method } = this.chosen();
    byId("drop-words").textContent = `Drop an image anywhere: ${method.name}, sigma = ${setting.sigma}, tau = ` +
      `${setting.tau}, up to ${setting.n} draws, with the anytime test: each map on the way is a certificate.`;
  }

  async take(file) {
    if (!file) return;
    this.error("");
    byId("drop-link").hidden = true;
    if (file.size > this.run.max_bytes) {
      this.error(`${file.name}: must be at most ${this.run.max_bytes >> 20} MB, got ${Math.ceil(file.size / 2 ** 20)} MB`);
      return;
    }
    const { setting, method } = this.chosen();
    try {
      const query = { name: file.name, ...setting, method: method.text };
      this.follow(await send("/api/drop", query, file));
    } catch (error) {
      this.error(error.message);
    }
    byId("file").value = "";
  }

  async resume() {
    const drop = await ask("/api/drop/current");
    if (drop) this.follow(drop);
  }

  async follow(drop) {
    this.id = drop.id;
    byId("drop-progress").hidden = false;
    this.card();
    let shown = -1;
    while (drop.state === "drawing") {
      await new Promise((resolve) => setTimeout(resolve, 150));
      try {
        drop = await ask(`/api/drop/${this.id}`);
      } catch (error) {
        drop = { state: "failed", error: error.message };
      }
      if (drop.state === "failed" || drop.state === "cancelled") break;
      this.progress(drop);
      if (drop.maps.vertex && drop.shown_draws !== shown) this.onGrow(drop);
      shown = drop.shown_draws;
    }
    byId("drop-progress").hidden = true;
    this.id = null;
    this.end(drop);
  }

  progress(drop) {
    byId("drop-bar").value = drop.made / drop.total;
    const certified = drop.maps.vertex ? `, ${percent(1 - drop.abstain)} certified` : "";
    byId("drop-state").textContent = `${nameOf(this.run, drop)}: ${drop.made} of ${drop.total} draws${certified}`;
  }

  end(drop) {
    this.card();
    if (drop.state === "done") {
      const image = `dropped/${drop.name}`;
      const link = byId("drop-link");
      link.hidden = false;
      link.href = `/api/certificate?${new URLSearchParams({ image })}`;
      this.card();
      this.onDone(image, drop);
      return;
    }
    if (drop.state === "failed") this.error(drop.error);
    this.onDone(null, drop);
  }

  wish(wish) {
    if (this.id) send(`/api/drop/${this.id}/${wish}`).catch((error) => this.error(error.message));
  }

  error(text) {
    byId("drop-error").textContent = text;
    this.card();
  }

  // The card is there while it has something to say.
  card() {
    byId("drop-now").hidden = byId("drop-progress").hidden && byId("drop-link").hidden && !byId("drop-error").textContent;
  }
}

export const nameOf = (run, { method }) => run.all_methods.find((known) => known.method === method).name;
