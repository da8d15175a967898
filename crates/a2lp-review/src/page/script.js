// The review: four places, the keys that all of them have, and what other pages and the full method do.

import * as check from "./check.js";
import * as correct from "./correct.js";
import * as finish from "./finish.js";
import * as liveMap from "./live_map.js";
import { Refused, act, ask, find, get, go, places, plural, reload, showEdges, state, tell, untell } from "./page.js";

places.set("check", check).set("correct", correct).set("map", liveMap).set("finish", finish);

// A key that means something everywhere. Tells whether it did.
function press(key) {
  if (key === "Backspace") correct.undo();
  else if (key === "?") find("#keys").showModal();
  else if (key === ".") correct.showChanged();
  else if (key === "[" || key === "]") {
    const names = [...places.keys()], at = names.indexOf(state.place) + (key === "]" ? 1 : -1);
    act(() => go(names[(at + names.length) % names.length]));
  } else return false;
  return true;
}

document.addEventListener("keydown", (event) => {
  const isUndo = event.ctrlKey && event.key === "z", key = isUndo ? "Backspace" : event.key;
  if (document.querySelector("dialog[open]") || event.altKey || event.metaKey || (event.ctrlKey && !isUndo)) return;
  if (event.target.matches("input:not([type=checkbox], [type=range]), select")) return;
  // Buttons and boxes that the keyboard is on are pressed as everywhere.
  if ((key === "Enter" || key === " ") && event.target.matches("button:not(.tile), input, a")) return;
  if (press(key) || places.get(state.place)?.press(key)) event.preventDefault();
});

async function listen() {
  for (;;) {
    try {
      const response = await ask("/api/events");
      untell("The connection");
      // What happened before we listened.
      await hear({ kind: "connected" });
      const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
      let text = "";
      for (;;) {
        const { value, done } = await reader.read();
        if (done) break;
        text += value;
        const parts = text.split("\n\n");
        text = parts.pop();
        for (const part of parts) if (part.startsWith("data: ")) await hear(JSON.parse(part.slice(6)));
      }
    } catch (error) {
      if (error instanceof Refused) return tell(error.message, "bad");
    }
    tell("The connection is gone. What you see as taken is kept; start a2lp review again to go on.", "bad");
    await new Promise((resolve) => setTimeout(resolve, 1000));
  }
}

async function hear({ kind, state: run, changed }) {
  const isDone = kind === "full-run" && run === "done";
  if (isDone) tell(`The full method ran with your corrections: ${plural(changed, "label")} changed.`, "good");
  const before = state.session.events;
  state.session = await get("/api/session");
  showEdges();
  // Our own action has been shown already.
  const isNews = state.session.events !== before || (kind === "full-run" && run !== "running");
  if (isNews && !state.busy) await reload();
}

find("#undo").addEventListener("click", correct.undo);
find("#help").addEventListener("click", () => find("#keys").showModal());
for (const link of document.querySelectorAll("[data-place]")) link.addEventListener("click", () => act(() => go(link.dataset.place)));

act(async () => {
  state.session = await get("/api/session");
  showEdges();
  await go("correct");
  listen();
});
