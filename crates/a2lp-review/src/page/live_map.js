// Map: the report's map with the labels as they are now. A lasso selects items to correct.

import { act, drawMap, element, find, get, state, tell, unpack } from "./page.js";
import { showPicture } from "./items.js";
import { listSelected } from "./correct.js";

const CHECKED = 2;
let map = null, origins = null, changed = new Set();

export async function load() {
  const { has_map, classes, colours, in_use } = state.session;
  find("#no-map").hidden = has_map;
  find("#map-root").hidden = !has_map;
  if (!has_map) return;
  const labels = await get("/api/labels");
  origins = unpack(labels.origins, 1);
  changed = new Set(state.effect?.changed_items);
  if (!map) {
    const drawn = (await get("/api/map")).map;
    const data = { classes, colours, known: classes.length, map: { ...drawn, frames: drawn.frames.slice(-1) } };
    map = drawMap(find("#map-root"), data, { ringed: (item) => origins[item] > 0, marked: (item) => changed.has(item), show, select });
  }
  map?.setLabels(unpack(labels.labels, 2), unpack(labels.confidence, 1), classes, colours, in_use);
}

function show(item, tip) {
  if (!state.session.has_pictures) return;
  const image = element("img");
  image.alt = "";
  tip.append(image);
  showPicture(item, "small", image);
}

function select(items) {
  const open = items.filter((item) => origins[item] !== CHECKED);
  if (!open.length) return tell("There are no items within that can be corrected.");
  act(() => listSelected(open));
}

export const press = () => false;

find("#lasso").addEventListener("click", () => {
  const on = find("#lasso").getAttribute("aria-checked") !== "true";
  find("#lasso").setAttribute("aria-checked", String(on));
  map?.useLasso(on);
});
