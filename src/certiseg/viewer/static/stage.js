// The panes in the middle: photograph, ground truth and two certified maps, zoomed and panned in step.

import { make } from "./elements.js";
import { LAYOUTS } from "./state.js";

const PANES = { photo: "Image", truth: "Ground truth", difference: "Difference of A and B", a: "A", b: "B" };

export class Stage {
  constructor(root, { onPoint, onPin, onView }) {
    this.root = root;
    this.onView = onView;
    this.onPoint = onPoint;
    this.onPin = onPin;
    this.size = { width: 4, height: 3 };
    this.view = { zoom: 1, x: 0.5, y: 0.5 };
    this.pointers = new Map();
    this.tool = null; // { down, move, up, twice }: who draws on the maps instead of moving them
    this.panes = {};
    for (const [name, title] of Object.entries(PANES)) this.panes[name] = this.makePane(name, title);
    new ResizeObserver(() => this.place()).observe(root);
  }

  makePane(name, title) {
    const pane = document.createElement("figure");
    pane.className = `pane pane-${name}`;
    pane.innerHTML = `<figcaption>${title}</figcaption><div class="view"><div class="sheet">
      <canvas class="photo" width="4" height="3" role="img"></canvas>
      <canvas class="map" width="4" height="3" role="img" data-map="${name}"></canvas>
      <svg class="shapes" aria-hidden="true"></svg></div>
      <div class="cursor" hidden></div><p class="note" hidden></p></div>`;
    this.root.append(pane);
    const part = (selector) => pane.querySelector(selector);
    const found = { pane, caption: part("figcaption"), view: part(".view"), sheet: part(".sheet"),
      photo: part(".photo"), map: part(".map"), shapes: part(".shapes"), cursor: part(".cursor"), note: part(".note") };
    found.photo.setAttribute("aria-label", `${title}: photograph`);
    found.map.setAttribute("aria-label", title);
    this.listen(name, found.view);
    return found;
  }

  setSize(width, height) {
    this.size = { width, height };
    this.root.style.setProperty("--ratio", `${width} / ${height}`);
    this.root.parentElement.style.setProperty("--wide", width / height);
    for (const { shapes } of Object.values(this.panes)) {
      shapes.setAttribute("width", width);
      shapes.setAttribute("height", height);
    }
    this.place();
  }

  setPhoto(picture) {
    for (const { photo } of Object.values(this.panes)) {
      photo.width = picture ? picture.width : 1;
      photo.height = picture ? picture.height : 1;
      if (picture) photo.getContext("2d").drawImage(picture, 0, 0);
    }
  }

  // role: promise, comparison or exploration.
  title(name, text, { scores = "", role = null } = {}) {
    const chip = role ? [make("b", { class: `pane-role ${role}`, text: role }), " "] : [];
    this.panes[name].caption.replaceChildren(`${text} `, ...chip, make("span", { text: scores }));
    this.panes[name].map.setAttribute("aria-label", [text, role].filter(Boolean).join(", "));
    this.panes[name].title = text;
  }

  note(name, text) {
    this.panes[name].note.hidden = !text;
    this.panes[name].note.textContent = text ?? "";
  }

  // single: the pane that is then shown alone.
  layout(name, single) {
    for (const layout of LAYOUTS) this.root.classList.toggle(layout, name === layout);
    for (const [pane, { pane: figure }] of Object.entries(this.panes)) figure.classList.toggle("chosen", pane === single);
    this.place();
  }

  set busy(value) {
    this.root.setAttribute("aria-busy", String(value));
  }

  // Every pane shows the same part of the image.
  place() {
    const { zoom, x, y } = this.view;
    for (const { view, sheet } of Object.values(this.panes)) {
      if (!view.clientWidth) continue; // not shown
      const scale = (view.clientWidth / this.size.width) * zoom;
      const left = view.clientWidth / 2 - x * this.size.width * scale;
      const top = view.clientHeight / 2 - y * this.size.height * scale;
      sheet.style.transform = `translate(${left}px, ${top}px) scale(${scale})`;
      sheet.style.setProperty("--hair", `${1 / (scale || 1)}px`); // a pixel of the screen, for lines and letters
    }
    this.placeCursor();
  }

  placeCursor() {
    for (const { view, cursor } of Object.values(this.panes)) {
      cursor.hidden = !this.pixel;
      if (!this.pixel) continue;
      const scale = (view.clientWidth / this.size.width) * this.view.zoom;
      const side = Math.max(scale, 9);
      const left = view.clientWidth / 2 + (this.pixel.column + 0.5 - this.view.x * this.size.width) * scale;
      const top = view.clientHeight / 2 + (this.pixel.row + 0.5 - this.view.y * this.size.height) * scale;
      Object.assign(cursor.style, { width: `${side}px`, height: `${side}px`,
        transform: `translate(${left - side / 2}px, ${top - side / 2}px)` });
    }
  }

  // In which half of the stage a pixel of a pane is seen.
  halfOf({ row, column, pane }) {
    const wanted = [this.panes[this.hovered ?? pane], ...Object.values(this.panes)];
    const box = wanted.find(({ view }) => view.clientWidth).view.getBoundingClientRect();
    const all = this.root.getBoundingClientRect();
    const scale = (box.width / this.size.width) * this.view.zoom;
    const x = box.left + box.width / 2 + (column + 0.5 - this.view.x * this.size.width) * scale;
    const y = box.top + box.height / 2 + (row + 0.5 - this.view.y * this.size.height) * scale;
    return { left: x < all.left + all.width / 2, top: y < all.top + all.height / 2 };
  }

  point(pixel) {
    this.pixel = pixel;
    this.placeCursor();
  }

  zoomBy(factor, at = { x: this.view.x, y: this.view.y }) {
    const zoom = Math.min(40, Math.max(1, this.view.zoom * factor));
    const moved = 1 - this.view.zoom / zoom; // the point under the pointer stays there
    this.moveTo(this.view.x + (at.x - this.view.x) * moved, this.view.y + (at.y - this.view.y) * moved, zoom);
  }

  moveTo(x, y, zoom = this.view.zoom) {
    const half = 0.5 / zoom;
    const inside = (value) => Math.min(1 - half, Math.max(half, value));
    this.view = { zoom, x: inside(x), y: inside(y) };
    this.place();
    this.onView(zoom === 1 ? null : this.view);
  }

  // Come back to a view that was kept, without telling.
  show(view) {
    this.view = view ?? { zoom: 1, x: 0.5, y: 0.5 };
    this.place();
  }

  fit() {
    this.moveTo(0.5, 0.5, 1);
  }

  // Where a pointer is, in shares of the image.
  under(view, event) {
    const box = view.getBoundingClientRect();
    const scale = box.width * this.view.zoom;
    const tall = scale * (this.size.height / this.size.width);
    return {
      x: this.view.x + (event.clientX - box.left - box.width / 2) / scale,
      y: this.view.y + (event.clientY - box.top - box.height / 2) / tall,
    };
  }

  pixelAt(view, event) {
    const at = this.under(view, event);
    const column = Math.floor(at.x * this.size.width);
    const row = Math.floor(at.y * this.size.height);
    const inside = column >= 0 && row >= 0 && column < this.size.width && row < this.size.height;
    return inside ? { row, column } : null;
  }

  // In a swipe the right side belongs to B, although A lies on top.
  paneUnder(name, view, event) {
    if (!this.root.classList.contains("swipe")) return name === "b" ? "b" : "a";
    const box = view.getBoundingClientRect();
    return (event.clientX - box.left) / box.width > this.split ? "b" : "a";
  }

  set splitAt(value) {
    this.split = value;
    this.root.style.setProperty("--split", value);
  }

  listen(name, view) {
    view.addEventListener("wheel", (event) => {
      event.preventDefault();
      this.zoomBy(Math.exp(-event.deltaY * 0.0018), this.under(view, event));
    }, { passive: false });
    view.addEventListener("dblclick", () => (this.tool ? this.tool.twice() : this.fit()));
    view.addEventListener("pointerdown", (event) => {
      view.setPointerCapture(event.pointerId);
      if (this.tool) return this.tool.down(this.under(view, event));
      this.pointers.set(event.pointerId, { x: event.clientX, y: event.clientY });
      this.moved = 0;
    });
    view.addEventListener("pointermove", (event) => {
      if (this.tool) this.tool.move(this.under(view, event));
      else this.onMove(name, view, event);
    });
    view.addEventListener("pointerup", (event) => {
      if (this.tool) return this.tool.up(this.under(view, event));
      if (this.moved < 5 && this.pointers.size === 1) {
        this.onPin(this.pixelAt(view, event), this.paneUnder(name, view, event));
      }
      this.pointers.delete(event.pointerId);
    });
    view.addEventListener("pointercancel", (event) => this.pointers.delete(event.pointerId));
    view.addEventListener("pointerleave", () => this.pointers.size === 0 && this.onPoint(null, name));
  }

  onMove(name, view, event) {
    this.hovered = name;
    const before = this.pointers.get(event.pointerId);
    if (!before) {
      this.onPoint(this.pixelAt(view, event), this.paneUnder(name, view, event));
      return;
    }
    const now = { x: event.clientX, y: event.clientY };
    const others = [...this.pointers].filter(([id]) => id !== event.pointerId).map(([, where]) => where);
    this.moved += Math.hypot(now.x - before.x, now.y - before.y);
    if (others.length) {
      const apart = (where) => Math.hypot(where.x - others[0].x, where.y - others[0].y) || 1;
      this.zoomBy(apart(now) / apart(before), this.under(view, event));
    } else if (this.moved > 4) {
      const scale = view.clientWidth * this.view.zoom;
      const tall = scale * (this.size.height / this.size.width);
      this.moveTo(this.view.x - (now.x - before.x) / scale, this.view.y - (now.y - before.y) / tall);
    }
    this.pointers.set(event.pointerId, now);
  }
}
