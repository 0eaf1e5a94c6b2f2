"use strict";
// Sorts the gallery, enlarges its pictures, unfolds tables for printing. The page is complete without it.
const cards = document.querySelector(".cards");
const method = document.querySelector("#gain-of");
const order = document.querySelector("#gain-order");

function sortGallery() {
  const gain = (card) => Number(card.dataset.gains.split(" ")[method.selectedIndex]);
  const sign = order.value === "worst" ? 1 : -1;
  const place = (card) => Number(card.dataset.place);
  const sorted = [...cards.children].sort((a, b) => sign * (gain(a) - gain(b)) || place(a) - place(b));
  cards.append(...sorted);
}

if (cards && method && order) {
  method.addEventListener("change", sortGallery);
  order.addEventListener("change", sortGallery);
  sortGallery();
}

const zoom = document.querySelector("#zoom");
document.addEventListener("click", (event) => {
  const button = event.target.closest(".zoom");
  if (button) {
    const picture = button.querySelector("img");
    zoom.querySelector("img").src = picture.src;
    zoom.querySelector("img").alt = picture.alt;
    zoom.querySelector("p").textContent = picture.alt;
    zoom.showModal();
  } else if (event.target === zoom) {
    zoom.close();
  }
});

// The name of the label under the pointer, by the colours of the legend.
const names = new Map();
for (const entry of document.querySelectorAll("[data-colours]")) {
  for (const colour of entry.dataset.colours.split(" ")) names.set(colour, entry.dataset.name);
}
const sheet = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
let drawn = null;
document.addEventListener("pointermove", ({ target, clientX, clientY }) => {
  if (!(target instanceof HTMLImageElement) || !target.closest(".maps, .named, dialog") || !target.naturalWidth) return;
  if (drawn !== target.src) {
    sheet.canvas.width = target.naturalWidth;
    sheet.canvas.height = target.naturalHeight;
    sheet.drawImage(target, 0, 0);
    drawn = target.src;
  }
  const box = target.getBoundingClientRect();
  const at = [(clientX - box.left) / box.width * target.naturalWidth, (clientY - box.top) / box.height * target.naturalHeight];
  const [red, green, blue] = sheet.getImageData(...at.map(Math.floor), 1, 1).data;
  target.title = names.get(`${red},${green},${blue}`) ?? "";
});

window.addEventListener("beforeprint", () => {
  for (const folded of document.querySelectorAll("details")) folded.open = true;
});
