// Small pieces of page, made without markup in strings where text comes from a file.

export function make(tag, { class: name, text, ...attributes } = {}, children = []) {
  const element = document.createElement(tag);
  if (name) element.className = name;
  if (text !== undefined) element.textContent = text;
  for (const [key, value] of Object.entries(attributes)) {
    if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
    else if (value === true) element.setAttribute(key, "");
    else if (value !== false && value !== null && value !== undefined) element.setAttribute(key, value);
  }
  element.append(...children);
  return element;
}

export const byId = (id) => document.getElementById(id);
export const percent = (share, digits = 1) => `${(share * 100).toFixed(digits)} %`;
// A share of something that is there is never shown as none.
export const some = (share) => (share > 0 && share < 0.0005 ? "< 0.1 %" : percent(share));
// A radius or a range is never shown as more than it is.
export const down = (value, digits) => (Math.floor(value * 10 ** digits) / 10 ** digits).toFixed(digits);
export const rgb = (colour) => `rgb(${colour.join(" ")})`;

// texture: of a vertex above the classes, with the colour of its lines.
export function swatch(colour, { texture = 0, line = null } = {}) {
  const element = make("span", { class: "swatch", "aria-hidden": "true" });
  if (colour) element.style.backgroundColor = rgb(colour);
  else element.classList.add("hatched");
  if (texture) {
    element.classList.add(`texture-${texture}`);
    element.style.setProperty("--line", rgb(line));
  }
  return element;
}

export function press(group, name, value) {
  for (const button of group) button.setAttribute("aria-pressed", String(button.dataset[name] === value));
}
