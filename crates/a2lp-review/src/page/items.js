// Items and classes: what an item looks like, the buttons and keys of the classes, and the finder of a class by name.

import { ask, button, element, find, get, state } from "./page.js";

const KEYS = "1234567890abcdefghijklmnopqrstuvwxyz";
const KEPT_PICTURES = 600;

export const nameOf = (item) => item.id ?? `row ${item.row}`;

const pictures = new Map();

// Puts the picture of an item into an image. Pictures are asked for with the token, so they come as blobs.
export async function showPicture(item, size, image) {
  const key = `${item} ${size}`;
  if (!pictures.has(key)) {
    if (pictures.size > KEPT_PICTURES) {
      const [oldest, url] = pictures.entries().next().value;
      pictures.delete(oldest);
      url.then((url) => url && URL.revokeObjectURL(url));
    }
    const load = ask(`/api/picture/${item}?size=${size}`).then((r) => r.blob()).then((blob) => URL.createObjectURL(blob));
    pictures.set(key, load.catch(() => null));
  }
  const url = await pictures.get(key);
  if (url) image.src = url;
  else image.replaceWith(element("span", "no picture"));
}

// What an item looks like: its picture, its text, or both.
export function look(item, size) {
  const { has_pictures, has_texts } = state.session;
  const root = element("div");
  root.className = "picture";
  if (has_pictures) {
    const image = element("img");
    image.alt = "";
    root.append(image);
    showPicture(item.item, size, image);
  }
  if (has_texts) {
    const text = element("div");
    text.className = "text";
    root.append(text);
    get(`/api/text/${item.item}`).then((told) => (text.textContent = told.text)).catch(() => {});
  }
  if (!has_pictures && !has_texts) root.append(element("span", nameOf(item)));
  return root;
}

export function colour(name) {
  const at = state.session.classes.indexOf(name);
  return at < 0 ? "var(--muted)" : state.session.colours[at];
}

// The key of each class: its own name if that is a key, else the next one that is free.
function keysOf(names) {
  const own = new Set(names.filter((name) => name.length === 1 && KEYS.includes(name)));
  const free = [...KEYS].filter((key) => !own.has(key));
  return names.map((name) => (own.has(name) ? name : free.shift()));
}

// The classes that keys stand for: all of them, or of many the most probable ones of an item.
function keyed(item) {
  const names = state.session.classes.filter((_, at) => state.session.in_use[at]);
  return names.length > KEYS.length ? (item ? item.classes : []).map(([name]) => name) : names;
}

export function classByKey(key, item) {
  const names = keyed(item), at = keysOf(names).indexOf(key.toLowerCase());
  return at < 0 ? undefined : names[at];
}

// Buttons for the classes, and for the finder.
export function showClasses(root, item, choose) {
  const names = keyed(item), keys = keysOf(names);
  root.replaceChildren(...names.map((name, at) => {
    const made = button(name, keys[at], () => choose(name)), swatch = element("i");
    made.dataset.name = name;
    swatch.style.background = colour(name);
    made.prepend(swatch);
    return made;
  }), button("another class…", "/", () => findClass(choose)));
}

let chosen = null;

// Asks for the name of a class, which may be a new one.
export function findClass(choose) {
  find("#class-names").replaceChildren(...state.session.classes.map((name) => {
    const option = element("option");
    option.value = name;
    return option;
  }));
  find("#class-name").value = "";
  chosen = choose;
  find("#finder").returnValue = "";
  find("#finder").showModal();
}

find("#finder").addEventListener("close", () => {
  const name = find("#class-name").value.trim();
  if (find("#finder").returnValue === "ok" && name && chosen) chosen(name);
  chosen = null;
});
