// Check: items drawn at random, one at a time, and which labels can be accepted.

import { act, button, element, find, get, number, percent, plural, post, state, tell, untell } from "./page.js";
import { classByKey, findClass, look, nameOf, showClasses } from "./items.js";

let check = null, shown = null, showsLabel = false;

export async function load(asIs = false) {
  const answer = await get(`/api/check${asIs ? "?as_is=1" : ""}`);
  if (answer.waiting) {
    check = null;
    find("#check").hidden = true;
    const anyway = button("Check the labels as they are", null, () => act(() => load(true)));
    return tell("The full method runs with your corrections. The check begins when it is done. ", "", anyway);
  }
  untell("The full method runs with");
  find("#check").hidden = state.place !== "check";
  [check, shown] = [answer.check, answer.next];
  showsLabel = find("#show-labels").checked;
  show();
}

function show() {
  const card = find("#shown");
  let root = element("div", "There is nothing left to ask.");
  root.className = "picture";
  if (shown) root = look(shown, "large");
  card.querySelector(".picture").replaceWith(root);
  card.querySelector(".name").textContent = shown ? nameOf(shown) : "";
  find("#hidden-label").textContent = showsLabel && shown ? `The label is ${shown.label}.` : "The label is hidden until you answer.";
  find("#is-right").disabled = !showsLabel || !shown;
  find("#none-fits").disabled = !shown;
  showClasses(find("#check-classes"), showsLabel ? shown : null, answer);
  showResult();
  showSettings();
}

function showResult() {
  const { sets, signed_off, testing, settings } = check;
  const under = sets[testing - 1], allowed = percent(settings.max_error), done = sets[signed_off - 1];
  find("#sign-off").textContent = signed_off
    ? `Signed off: the ${number(done.items)} most confident labels. At most ${allowed} of them are wrong, with ${percent(check.confidence)} confidence.`
    : `Nothing is signed off yet at ${allowed} wrong labels.`;
  const hopeless = under.hopeless && signed_off < testing;
  find("#share-right").textContent =
    `${plural(check.answers, "answer")}, of which ${number(check.wrong)} found a wrong label. ` +
    `Of the ${number(under.items)} most confident labels, between ${percent(under.fewest_right)} and ${percent(under.most_right)} are right` +
    ` (from ${plural(under.answers, "answer")}).` +
    (hopeless ? " Too many of them are wrong to be accepted: correct more, or allow more." : "");
  find("#ladder").replaceChildren(...sets.map((set, at) => {
    const line = element("li"), fill = element("span");
    const isTested = at + 1 === testing && !set.signed_off;
    line.className = [set.signed_off && "signed", isTested && "testing", set.hopeless && "hopeless"].filter(Boolean).join(" ");
    line.append(element("b", `${10 * (at + 1)} %`), number(set.items));
    line.title =
      `${plural(set.items, "label")} of confidence ${set.least_confidence.toFixed(3)} or more; ` +
      `${plural(set.answers, "answer")}, ${number(set.wrong)} wrong`;
    fill.className = "fill";
    fill.style.width = `${100 * (set.signed_off ? 1 : set.progress)}%`;
    line.append(fill);
    return line;
  }));
}

function showSettings() {
  const { settings, version } = check;
  find("#max-error").value = String(settings.max_error);
  find("#first-set").value = String(settings.first_set);
  find("#final-labels").checked = settings.final_labels;
  find("#final-labels").disabled = check.answers > 0;
  find("#max-error").disabled = find("#first-set").disabled = check.is_final;
  find("#version").textContent = settings.final_labels
    ? "The labels are final, so the whole of the confidence is spent on them."
    : `Version ${version} of the labels. Each time you come back with other labels or settings, the check needs more answers than ` +
      "before: correct first, then check. Answers given so far count again.";
}

function answer(said) {
  if (!shown) return;
  const item = shown;
  act(async () => {
    await post("/api/answer", { row: item.row, said });
    const right = said !== null && said === item.label;
    const words = right ? `${item.label} is right.` : `the label was ${item.label}, you said ${said ?? "that no class fits"}.`;
    tell(`${nameOf(item)}: ${words}`, right ? "good" : "bad");
    await load();
  }, false);
}

function promise() {
  act(async () => {
    const settings = {
      max_error: Number(find("#max-error").value),
      first_set: Number(find("#first-set").value),
      final_labels: find("#final-labels").checked,
    };
    try {
      await post("/api/promise", settings);
    } finally {
      await load();
    }
  });
}

export function press(key) {
  if (!check || !shown) return false;
  const name = classByKey(key, showsLabel ? shown : null);
  if (key === "Enter" && showsLabel) answer(shown.label);
  else if (key === "-") answer(null);
  else if (key === "/") findClass(answer);
  else if (key === " ") {
    showsLabel = !showsLabel;
    show();
  } else if (name !== undefined) answer(name);
  else return false;
  return true;
}

find("#is-right").addEventListener("click", () => answer(shown.label));
find("#none-fits").addEventListener("click", () => answer(null));
find("#show-labels").addEventListener("change", (event) => {
  showsLabel = event.target.checked;
  if (check) show();
});
for (const input of ["#max-error", "#first-set", "#final-labels"]) find(input).addEventListener("change", promise);
for (let set = 1; set <= 10; set++) {
  const option = element("option", set === 10 ? "all items" : `the most confident ${10 * set} %`);
  option.value = String(set);
  find("#first-set").append(option);
}
