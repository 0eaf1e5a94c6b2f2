// A file for whoever looks at the page: it is made here and goes to no server.

import { make } from "./elements.js";

export function saveBlob(name, blob) {
  const address = URL.createObjectURL(blob);
  make("a", { href: address, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
}

export const saveText = (name, text, type) => saveBlob(name, new Blob([text], { type: `${type};charset=utf-8` }));
