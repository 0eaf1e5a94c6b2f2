// The keyboard: single keys, silent while somebody types or moves a slider.

import { byId } from "./elements.js";

export function listenToKeys(actions) {
  addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "Escape") return actions.escape();
    if (document.querySelector("dialog[open]")) return;
    const target = event.target;
    const typing = target.matches("input:not([type=range]), select, textarea");
    const sliding = target.matches("input[type=range]") && event.key.startsWith("Arrow");
    if (typing || sliding) return;
    const arrows = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] };
    if (event.key in arrows && event.shiftKey) actions.movePixel(...arrows[event.key]);
    else if (event.key === "ArrowLeft") actions.step(-1);
    else if (event.key === "ArrowRight") actions.step(1);
    else if (/^[1-5]$/.test(event.key)) actions.method(Number(event.key) - 1);
    else if (event.key in actions.single) actions.single[event.key]();
    else return;
    event.preventDefault();
  });
  byId("help-button").addEventListener("click", () => byId("help").showModal());
}
