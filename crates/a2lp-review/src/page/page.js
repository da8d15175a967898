// What all places share: what the server said last, how it is asked, and what stands at the edges of the page.

export const { unpack, element, drawMap } = a2lp;
export const find = (selector) => document.querySelector(selector);
export const number = (value) => value.toLocaleString("en");
export const plural = (count, word) => `${number(count)} ${word}${count === 1 ? "" : "s"}`;
export const percent = (share) => `${Number((100 * share).toFixed(1))} %`;

// `session` is what the server says of the review, `place` where the page is, `effect` what the last action did.
export const state = { session: null, place: null, effect: null, busy: false };

// Every place by its name, in order: `load` shows it, `press` takes a key and tells whether it meant something.
export const places = new Map();

// ---- asking the server

const token = location.hash.slice(1);

export class Refused extends Error {}

export async function ask(path, body) {
  const options = { headers: { "X-A2LP-Token": token } };
  if (body !== undefined) {
    options.method = "POST";
    options.headers["Content-Type"] = "application/json";
    options.body = JSON.stringify(body);
  }
  const response = await fetch(path, options);
  if (!response.ok) {
    const told = await response.json().catch(() => ({}));
    throw new Refused(told.error || `the server answered ${response.status}`);
  }
  return response;
}

export const get = async (path) => (await ask(path)).json();

// An action that the journal keeps. Gives what it did.
export async function post(path, body) {
  const told = await (await ask(path, body)).json();
  state.session = told.session;
  showEdges();
  return told.effect;
}

// One action at a time; the next one waits. Answers and corrections do not: they would mean something else than what was seen.
export async function act(work, waits = true) {
  while (state.busy && waits) await new Promise((resolve) => setTimeout(resolve, 10));
  if (state.busy) return;
  setBusy(true);
  try {
    await work();
  } catch (error) {
    tell(error instanceof Refused ? error.message : "a2lp review does not answer; is it still running?", "bad");
  } finally {
    setBusy(false);
  }
}

function setBusy(busy) {
  state.busy = busy;
  find("main").setAttribute("aria-busy", String(busy));
}

// ---- the edges of the page

export function tell(message, kind, ...buttons) {
  const notice = find("#notice");
  notice.replaceChildren(message, ...buttons);
  notice.className = kind || "";
  notice.hidden = !message;
}

// Takes a notice away that begins like this.
export function untell(beginning) {
  if (find("#notice").textContent.startsWith(beginning)) tell("");
}

export function button(text, key, work) {
  const made = element("button", text);
  made.type = "button";
  if (key) made.append(" ", element("kbd", key));
  made.addEventListener("click", work);
  return made;
}

export function showEdges() {
  const { title, items, corrections, answers, can_undo, full_run } = state.session;
  document.title = `Review: ${title}`;
  find("#title").textContent = title;
  find("#figures").textContent = `${plural(items, "item")}, ${number(corrections)} corrected or confirmed, ${number(answers)} checked`;
  find("#undo").disabled = !can_undo;
  find("#full-run").hidden = full_run.state === "idle";
  find("#full-run").textContent = {
    running: "the full method runs with your corrections…",
    waiting: "the full method runs when you pause",
    failed: `the full method failed: ${full_run.message}`,
    idle: "",
  }[full_run.state];
}

export async function go(to) {
  if (state.place !== to) tell("");
  state.place = to;
  for (const place of places.keys()) find(`#${place}`).hidden = place !== to;
  for (const link of document.querySelectorAll("[data-place]")) link.setAttribute("aria-current", String(link.dataset.place === to));
  await reload();
}

export async function reload() {
  await places.get(state.place).load();
}
