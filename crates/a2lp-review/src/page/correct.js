// Correct: groups of items that look alike, corrected together; and lists of items from elsewhere.

import { act, button, element, find, get, go, number, plural, post, reload, state, tell } from "./page.js";
import { classByKey, colour, findClass, look, nameOf, showClasses } from "./items.js";

const MOST_LISTED = 1000;
const selected = new Set();
let groups = [], groupCount = 24, focused = null;
// What is listed: the items most worth a click, those that the last action changed, or those selected on the map.
let list = { kind: "doubtful", items: [] };

export async function load() {
  groups = list.kind === "doubtful" ? (await get(`/api/groups?count=${groupCount}`)).groups : await byLabel(list.items);
  show();
}

async function byLabel(items) {
  const views = items.length ? (await get(`/api/items?items=${items.slice(0, MOST_LISTED).join(",")}`)).items : [];
  const groups = new Map();
  for (const view of views) {
    if (!groups.has(view.label)) groups.set(view.label, []);
    groups.get(view.label).push(view);
  }
  return [...groups].map(([label, items]) => ({ label, items })).sort((a, b) => b.items.length - a.items.length);
}

// Lists items that were selected elsewhere.
export async function listSelected(items) {
  list = { kind: "selected", items };
  selected.clear();
  items.slice(0, MOST_LISTED).forEach((item) => selected.add(item));
  await go("correct");
}

const listed = () => groups.flatMap((group) => group.items);
const open = (items) => items.filter((item) => item.origin !== "checked");

function show() {
  const count = number(list.items.length);
  const [title, caption] = {
    doubtful: ["Worth a click", "Each group looks alike and has one label. The first groups repair most for a click."],
    changed: [`Changed by the last action: ${count}`, "Items that nobody spoke of, whose label followed the correction."],
    selected: [`Selected on the map: ${count}`, "Press the key of a class to give it to all that are selected."],
  }[list.kind];
  const isDoubtful = list.kind === "doubtful";
  find("#list-title").textContent = title;
  find("#list-caption").textContent = caption + (list.items.length > MOST_LISTED ? " The first 1,000 are shown." : "");
  find("#more").hidden = !isDoubtful;
  find("#back").hidden = isDoubtful;
  find("#show-changed").hidden = !isDoubtful || !state.effect?.changed;
  find("#groups").replaceChildren(...groups.map(showGroup));
  showSelection();
}

function showGroup({ label, items }) {
  const root = element("div"), head = element("h3"), swatch = element("i"), tiles = element("div");
  root.className = "group";
  swatch.style.background = label === null ? "var(--muted)" : colour(label);
  head.append(swatch, `${label ?? "no label"}${items.length > 1 ? `: ${number(items.length)} look alike` : ""}`);
  if (label !== null) {
    const accept = () => correct(open(items).map((item) => [item.row, label]));
    head.append(button(items.length > 1 ? "All are right" : "It is right", null, accept));
  }
  if (items.length > 1) head.append(button("Select all", null, () => select(items)));
  tiles.className = "tiles";
  tiles.append(...items.map(showTile));
  root.append(head, tiles);
  return root;
}

function showTile(item) {
  const tile = button("", null, () => toggle(item.item));
  tile.className = "tile";
  tile.dataset.item = item.item;
  tile.disabled = item.origin === "checked";
  // Of a path, the end says most.
  const name = element("span", nameOf(item).split("/").pop()), words = element("span");
  name.title = nameOf(item);
  words.className = "muted";
  words.textContent = words.title = item.origin === "propagated" ? otherClasses(item) : `${item.label ?? "no class"}, by a person`;
  tile.append(look(item, "small"), name, words);
  tile.addEventListener("focus", () => {
    focused = item.item;
    showClasses(find("#correct-classes"), item, correctSelected);
  });
  return tile;
}

// How probable the label is, and what else it may be.
function otherClasses(item) {
  const share = (p) => `${(100 * p).toFixed(0)} %`;
  const own = item.classes.find(([name]) => name === item.label);
  const others = item.classes.filter(([name, p]) => name !== item.label && p >= 0.005).map(([name, p]) => `${name} ${share(p)}`);
  return [own ? share(own[1]) : null, others.length ? `or ${others.join(", ")}` : null].filter(Boolean).join(", ");
}

// ---- selecting

function toggle(item) {
  if (!selected.delete(item)) selected.add(item);
  showSelection();
}

function select(items) {
  open(items).forEach((item) => selected.add(item.item));
  showSelection();
}

function clear() {
  selected.clear();
  showSelection();
}

const chosen = () => listed().filter((item) => selected.has(item.item));

function showSelection() {
  for (const tile of document.querySelectorAll(".tile")) {
    tile.setAttribute("aria-pressed", String(selected.has(Number(tile.dataset.item))));
  }
  find("#selected").textContent = selected.size ? `${plural(selected.size, "item")} selected` : "Nothing selected";
  find("#accept").disabled = find("#clear").disabled = !selected.size;
  showClasses(find("#correct-classes"), chosen()[0], correctSelected);
}

function move(step) {
  const tiles = [...document.querySelectorAll(".tile")], at = tiles.indexOf(document.activeElement);
  tiles[Math.min(tiles.length - 1, Math.max(0, at < 0 ? 0 : at + step))]?.focus();
}

function perRow() {
  const tiles = [...document.querySelectorAll(".tile")];
  return Math.max(1, tiles.findIndex((tile) => tile.offsetTop !== tiles[0].offsetTop));
}

// ---- correcting

function correctSelected(name) {
  // A key without a selection means the item that the keyboard is on.
  if (!selected.size && document.activeElement?.matches(".tile")) selected.add(focused);
  const items = chosen();
  if (!items.length) return tell("Select items first: click them, or move with the arrows and press space.");
  correct(items.map((item) => [item.row, name]));
}

function acceptSelected() {
  const items = chosen().filter((item) => item.label !== null);
  if (!items.length) return tell("None of the selected items has a label to accept.");
  correct(items.map((item) => [item.row, item.label]));
}

function correct(labels) {
  act(async () => {
    const began = performance.now();
    state.effect = await post("/api/correct", { labels });
    selected.clear();
    if (list.kind === "changed") list = { kind: "doubtful", items: [] };
    tellEffect();
    await reload();
    // For measurements: the second frame begins when the first has been painted.
    const painted = () => (document.documentElement.dataset.lastClickMs = (performance.now() - began).toFixed(1));
    requestAnimationFrame(() => requestAnimationFrame(painted));
  }, false);
}

function tellEffect() {
  const { clicks, changed, passed_over } = state.effect;
  let words = `${plural(clicks, "click")}, ${plural(changed, "other label")} changed.`;
  if (passed_over) words += ` ${plural(passed_over, "item")} passed over: they were answered in the check.`;
  tell(`${words} `, "good", ...(changed ? [button("Show them", ".", showChanged)] : []));
}

export function undo() {
  act(async () => {
    state.effect = await post("/api/undo", {});
    selected.clear();
    tell(`Taken back. ${plural(state.effect.changed, "other label")} changed.`);
    await reload();
  });
}

// What the last action changed, and back to the list.
export function showChanged() {
  if (list.kind !== "doubtful") return back();
  if (!state.effect?.changed) return tell("The last action changed no other label.");
  list = { kind: "changed", items: state.effect.changed_items };
  act(() => go("correct"));
}

function back() {
  list = { kind: "doubtful", items: [] };
  selected.clear();
  act(() => go("correct"));
}

export function press(key) {
  const onTile = document.activeElement?.matches(".tile");
  const name = classByKey(key, chosen()[0] ?? listed().find((item) => item.item === focused));
  if (key === "Enter" && selected.size) acceptSelected();
  else if (key === "Escape") clear();
  else if (key === " " && onTile) toggle(focused);
  else if (key === "ArrowRight") move(1);
  else if (key === "ArrowLeft") move(-1);
  else if (key === "ArrowDown") move(perRow());
  else if (key === "ArrowUp") move(-perRow());
  else if (key === "/") findClass(correctSelected);
  else if (key === "+") select((groups.find((group) => group.items.some((item) => item.item === focused)) ?? groups[0])?.items ?? []);
  else if (name !== undefined) correctSelected(name);
  else return false;
  return true;
}

find("#accept").addEventListener("click", acceptSelected);
find("#clear").addEventListener("click", clear);
find("#show-changed").addEventListener("click", showChanged);
find("#back").addEventListener("click", back);
find("#more").addEventListener("click", () => act(async () => {
  groupCount = Math.min(MOST_LISTED, groupCount + 48);
  await load();
}));
