// Finish: what is accepted, and the files.

import { act, ask, element, find, get, number, percent, plural, state, tell } from "./page.js";

// The check, and the set that is accepted, in tenths; null until one was chosen.
let check = null, accepted = null;

export async function load() {
  const told = state.session.answers ? await get("/api/check") : { waiting: true };
  check = told.waiting ? null : told.check;
  const signed = check ? check.signed_off : 0, slider = find("#accept-set");
  slider.max = String(signed);
  slider.disabled = !signed;
  if (accepted === null || accepted > signed) accepted = signed;
  slider.value = String(accepted);
  show();
}

function show() {
  const { items, corrections, answers, unlabelled } = state.session;
  const set = check && accepted ? check.sets[accepted - 1] : null;
  find("#statement").textContent = set
    ? `At most ${percent(check.settings.max_error)} of the ${number(set.items)} accepted labels are wrong, with ${percent(check.confidence)} confidence.`
    : `Nothing is signed off yet: ${answers ? "answer more in Check" : "nothing was checked"}.`;
  find("#finish-figures").textContent =
    `${plural(items, "item")}: ${number(corrections)} corrected or confirmed, ${number(answers)} answered in the check, ` +
    `${number(unlabelled)} without a label.`;
  find("#accept-words").textContent = set
    ? `${number(set.items)} most confident labels (confidence ${set.least_confidence.toFixed(3)} or more)`
    : "none of the labels that nobody looked at";
  find("#certificate").disabled = !check;
}

function download(path, name) {
  act(async () => {
    const blob = await (await ask(path)).blob(), link = element("a");
    link.href = URL.createObjectURL(blob);
    link.download = name;
    document.body.append(link);
    link.click();
    link.remove();
    setTimeout(() => URL.revokeObjectURL(link.href), 60000);
    tell(`${name} is in your downloads.`, "good");
  });
}

export const press = () => false;

find("#accept-set").addEventListener("input", (event) => {
  accepted = Number(event.target.value);
  show();
});
find("#export").addEventListener("click", () => {
  const format = find("#format").value, probabilities = find("#probabilities").checked ? "&probabilities=1" : "";
  download(`/api/export?format=${format}&accept=${accepted ?? 0}${probabilities}`, `labels.${format}`);
});
find("#certificate").addEventListener("click", () => download(`/api/certificate?accept=${accepted ?? 0}`, "certificate.json"));
for (const link of document.querySelectorAll("[data-corrections]")) {
  const format = link.dataset.corrections;
  link.addEventListener("click", () => download(`/api/corrections?format=${format}`, `corrections.${format}`));
}
