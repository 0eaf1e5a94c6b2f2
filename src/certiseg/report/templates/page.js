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

window.addEventListener("beforeprint", () => {
  for (const folded of document.querySelectorAll("details")) folded.open = true;
});
