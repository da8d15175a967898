"use strict";
(() => {
  const { NO_CLASS, unpack, element, drawMap } = a2lp;
  const KEYS = "1234567890abcdefghijklmnopqrstuvwxyz";
  const PLACES = ["check", "correct", "map", "finish"];
  const MANY_CLASSES = KEYS.length;
  const token = location.hash.slice(1);
  const find = (selector) => document.querySelector(selector);
  const number = (value) => value.toLocaleString("en");
  const plural = (count, word) => `${number(count)} ${word}${count === 1 ? "" : "s"}`;
  const percent = (share) => `${Number((100 * share).toFixed(1))} %`;

  let session = null, place = null, check = null, shown = null, groups = [], lastEffect = null;
  let listKind = "doubtful", listItems = [], groupCount = 24, focused = null;
  const selected = new Set();
  let map = null, labels = null, busy = false, acceptSet = null;

  // ---- asking the server

  class Refused extends Error {}

  async function ask(path, body) {
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
  const get = async (path) => (await ask(path)).json();

  // One action at a time; the next one waits. Answers and corrections do not: they would mean something else than what was seen.
  async function act(work, waits = true) {
    while (busy && waits) await new Promise((resolve) => setTimeout(resolve, 10));
    if (busy) return;
    setBusy(true);
    try {
      await work();
    } catch (error) {
      tell(error instanceof Refused ? error.message : "a2lp review does not answer; is it still running?", "bad");
    } finally {
      setBusy(false);
    }
  }

  function setBusy(value) {
    busy = value;
    find("main").setAttribute("aria-busy", String(value));
  }

  const pictures = new Map();
  async function picture(item, size, image) {
    const key = `${item} ${size}`;
    if (!pictures.has(key)) {
      if (pictures.size > 600) {
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
  function look(item, size) {
    const root = element("div");
    root.className = "picture";
    if (session.has_pictures) {
      const image = element("img");
      image.alt = "";
      root.append(image);
      picture(item.item, size, image);
    }
    if (session.has_texts) {
      const text = element("div");
      text.className = "text";
      root.append(text);
      get(`/api/text/${item.item}`).then((told) => (text.textContent = told.text)).catch(() => {});
    }
    if (!session.has_pictures && !session.has_texts) root.append(element("span", nameOf(item)));
    return root;
  }

  const nameOf = (item) => item.id ?? `row ${item.row}`;

  // ---- what is at the edges of the page

  function tell(message, kind, ...buttons) {
    const notice = find("#notice");
    notice.replaceChildren(message, ...buttons);
    notice.className = kind || "";
    notice.hidden = !message;
  }

  function showEdges() {
    document.title = `Review: ${session.title}`;
    find("#title").textContent = session.title;
    find("#figures").textContent =
      `${plural(session.items, "item")}, ${number(session.corrections)} corrected or confirmed, ${number(session.answers)} checked`;
    find("#undo").disabled = !session.can_undo;
    const run = session.full_run, pill = find("#full-run");
    pill.hidden = run.state === "idle";
    pill.textContent = {
      running: "the full method runs with your corrections…",
      waiting: "the full method runs when you pause",
      failed: `the full method failed: ${run.message}`,
      idle: "",
    }[run.state];
  }

  const colour = (name) => {
    const at = session.classes.indexOf(name);
    return at < 0 ? "var(--muted)" : session.colours[at];
  };

  // The key of each class: its own name if that is a key, else the next one that is free.
  function keysOf(names) {
    const own = new Set(names.filter((name) => name.length === 1 && KEYS.includes(name)));
    const free = [...KEYS].filter((key) => !own.has(key));
    return names.map((name) => (own.has(name) ? name : free.shift()));
  }

  // The classes that keys stand for: all of them, or of many the most probable ones of an item.
  const keyed = (item) => {
    const names = session.classes.filter((_, at) => session.in_use[at]);
    return names.length > MANY_CLASSES ? (item ? item.classes : []).map(([name]) => name) : names;
  };

  // Buttons for the classes; of many classes only the most probable ones of the item, and the finder.
  function showClasses(root, item, choose) {
    const names = keyed(item), keys = keysOf(names);
    root.replaceChildren(...names.map((name, at) => {
      const button = element("button"), swatch = element("i");
      button.type = "button";
      button.dataset.name = name;
      swatch.style.background = colour(name);
      button.append(swatch, name);
      if (keys[at]) button.append(element("kbd", keys[at]));
      button.addEventListener("click", () => choose(name));
      return button;
    }));
    const other = element("button", "another class… ");
    other.type = "button";
    other.className = "another";
    other.append(element("kbd", "/"));
    other.addEventListener("click", () => findClass(choose));
    root.append(other);
  }

  function classByKey(key, item) {
    const names = keyed(item), at = keysOf(names).indexOf(key);
    return at < 0 ? undefined : names[at];
  }

  let chosen = null;
  function findClass(choose) {
    const names = session.classes.map((name) => {
      const option = element("option");
      option.value = name;
      return option;
    });
    find("#class-names").replaceChildren(...names);
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

  // ---- check

  let showsLabel = false;

  async function loadCheck(asIs) {
    const answer = await get(`/api/check${asIs ? "?as_is=1" : ""}`);
    if (answer.waiting) {
      const button = element("button", "Check the labels as they are");
      button.type = "button";
      button.addEventListener("click", () => act(() => loadCheck(true)));
      check = null;
      tell("The full method runs with your corrections. The check begins when it is done. ", "", button);
      find("#check").hidden = true;
      return;
    }
    if (find("#notice").textContent.startsWith("The full method runs with")) tell("");
    find("#check").hidden = place !== "check";
    [check, shown] = [answer.check, answer.next];
    showsLabel = find("#show-labels").checked;
    showCheck();
  }

  function showCheck() {
    const card = find("#shown");
    if (shown) {
      card.querySelector(".picture").replaceWith(look(shown, "large"));
      card.querySelector(".name").textContent = nameOf(shown);
    } else {
      const root = element("div", "There is nothing left to ask.");
      root.className = "picture";
      card.querySelector(".picture").replaceWith(root);
      card.querySelector(".name").textContent = "";
    }
    const label = find("#hidden-label");
    label.replaceChildren(showsLabel && shown ? `The label is ${shown.label}.` : "The label is hidden until you answer.");
    find("#is-right").disabled = !showsLabel || !shown;
    find("#none-fits").disabled = !shown;
    showClasses(find("#check-classes"), showsLabel ? shown : null, answer);
    showLadder();
  }

  function showLadder() {
    const { sets, signed_off, testing, settings } = check;
    const under = sets[testing - 1], allowed = percent(settings.max_error), done = sets[signed_off - 1];
    find("#sign-off").textContent = signed_off
      ? `Signed off: the ${number(done.items)} most confident labels. At most ${allowed} of them are wrong, with 95 % confidence.`
      : `Nothing is signed off yet at ${allowed} wrong labels.`;
    const hopeless = under.hopeless && signed_off < testing;
    find("#share-right").textContent =
      `${plural(check.answers, "answer")}, of which ${number(check.wrong)} found a wrong label. ` +
      `Of the ${number(under.items)} most confident labels, between ${percent(under.fewest_right)} and ${percent(under.most_right)} are right` +
      ` (from ${plural(under.answers, "answer")}).` +
      (hopeless ? " Too many of them are wrong to be accepted: correct more, or allow more." : "");
    find("#ladder").replaceChildren(...sets.map((set, at) => {
      const line = element("li"), fill = element("span");
      line.className = [set.signed_off && "signed", at + 1 === testing && !set.signed_off && "testing", set.hopeless && "hopeless"].filter(Boolean).join(" ");
      line.append(element("b", `${10 * (at + 1)} %`), number(set.items));
      line.title = `${plural(set.items, "label")} of confidence ${set.least_confidence.toFixed(3)} or more; ${plural(set.answers, "answer")}, ${number(set.wrong)} wrong`;
      fill.className = "fill";
      fill.style.width = `${100 * (set.signed_off ? 1 : set.progress)}%`;
      line.append(fill);
      return line;
    }));
    const began = check.answers > 0;
    find("#max-error").value = String(settings.max_error);
    find("#first-set").value = String(settings.first_set);
    find("#final-labels").checked = settings.final_labels;
    find("#final-labels").disabled = began;
    find("#max-error").disabled = find("#first-set").disabled = check.is_final;
    find("#version").textContent = settings.final_labels
      ? "The labels are final, so the whole of the confidence is spent on them."
      : `Version ${check.version} of the labels. Each time you come back with other labels or settings, the check needs more answers than before: correct first, then check. Answers given so far count again.`;
  }

  function answer(said) {
    if (!shown) return;
    const item = shown;
    act(async () => {
      const told = await (await ask("/api/answer", { row: item.row, said })).json();
      session = told.session;
      const right = said !== null && said === item.label;
      tell(right ? `${nameOf(item)}: ${item.label} is right.` : `${nameOf(item)}: the label was ${item.label}, you said ${said ?? "that no class fits"}.`, right ? "good" : "bad");
      showEdges();
      await loadCheck();
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
        session = (await (await ask("/api/promise", settings)).json()).session;
      } finally {
        await loadCheck();
      }
    });
  }

  // ---- correct

  async function loadList() {
    if (listKind === "doubtful") groups = (await get(`/api/groups?count=${groupCount}`)).groups;
    else await loadItems(listItems);
    showList();
  }

  async function loadItems(items) {
    const views = items.length ? (await get(`/api/items?items=${items.slice(0, 1000).join(",")}`)).items : [];
    const byLabel = new Map();
    for (const view of views) {
      if (!byLabel.has(view.label)) byLabel.set(view.label, []);
      byLabel.get(view.label).push(view);
    }
    groups = [...byLabel].map(([label, items]) => ({ label, items })).sort((a, b) => b.items.length - a.items.length);
  }

  const inList = () => groups.flatMap((group) => group.items);

  function showList() {
    const [title, caption] = {
      doubtful: ["Worth a click", "Each group looks alike and has one label. The first groups repair most for a click."],
      changed: [`Changed by the last action: ${number(listItems.length)}`, "Items that nobody spoke of, whose label followed the correction."],
      selected: [`Selected on the map: ${number(listItems.length)}`, "Press the key of a class to give it to all that are selected."],
    }[listKind];
    find("#list-title").textContent = title;
    find("#list-caption").textContent = caption + (listKind !== "doubtful" && listItems.length > 1000 ? " The first 1,000 are shown." : "");
    find("#more").hidden = listKind !== "doubtful";
    find("#back").hidden = listKind === "doubtful";
    find("#show-changed").hidden = listKind !== "doubtful" || !lastEffect || !lastEffect.changed;
    find("#groups").replaceChildren(...groups.map(showGroup));
    showSelection();
  }

  function showGroup(group) {
    const root = element("div"), head = element("h3"), swatch = element("i"), tiles = element("div");
    root.className = "group";
    swatch.style.background = group.label === null ? "var(--muted)" : colour(group.label);
    const count = group.items.length;
    head.append(swatch, `${group.label ?? "no label"}${count > 1 ? `: ${number(count)} look alike` : ""}`);
    const open = group.items.filter((item) => item.origin !== "checked");
    const button = (text, work) => {
      const made = element("button", text);
      made.type = "button";
      made.addEventListener("click", work);
      head.append(made);
    };
    if (group.label !== null) button(count > 1 ? "All are right" : "It is right", () => correct(open.map((item) => [item.row, group.label])));
    if (count > 1) button("Select all", () => {
      open.forEach((item) => selected.add(item.item));
      showSelection();
    });
    tiles.className = "tiles";
    tiles.append(...group.items.map(showTile));
    root.append(head, tiles);
    return root;
  }

  function showTile(item) {
    const tile = element("button");
    tile.type = "button";
    tile.className = "tile";
    tile.dataset.item = item.item;
    tile.append(look(item, "small"));
    // Of a path, the end says most.
    const name = element("span", nameOf(item).split("/").pop()), words = element("span");
    name.title = nameOf(item);
    words.className = "muted";
    words.textContent = item.origin === "propagated"
      ? otherClasses(item)
      : `${item.label ?? "no class"}, by a person`;
    words.title = words.textContent;
    tile.append(name, words);
    tile.disabled = item.origin === "checked";
    tile.addEventListener("click", () => toggle(item.item));
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

  function toggle(item) {
    if (!selected.delete(item)) selected.add(item);
    showSelection();
  }

  function showSelection() {
    for (const tile of document.querySelectorAll(".tile")) {
      tile.setAttribute("aria-pressed", String(selected.has(Number(tile.dataset.item))));
    }
    find("#selected").textContent = selected.size ? `${plural(selected.size, "item")} selected` : "Nothing selected";
    find("#accept").disabled = find("#clear").disabled = !selected.size;
    const first = inList().find((item) => selected.has(item.item));
    showClasses(find("#correct-classes"), first, correctSelected);
  }

  const chosenItems = () => inList().filter((item) => selected.has(item.item));

  function correctSelected(name) {
    // A key without a selection means the item that the keyboard is on.
    if (!selected.size && focused !== null && find(`.tile[data-item="${focused}"]`) === document.activeElement) selected.add(focused);
    const items = chosenItems();
    if (!items.length) return tell("Select items first: click them, or move with the arrows and press space.");
    correct(items.map((item) => [item.row, name]));
  }

  function correct(pairs) {
    act(async () => {
      const began = performance.now();
      const told = await (await ask("/api/correct", { labels: pairs })).json();
      afterEffect(told);
      await reload();
      // The second frame begins when the first has been painted.
      requestAnimationFrame(() => requestAnimationFrame(() => (document.documentElement.dataset.lastClickMs = (performance.now() - began).toFixed(1))));
    }, false);
  }

  function afterEffect(told) {
    session = told.session;
    lastEffect = told.effect;
    selected.clear();
    const { clicks, changed, passed_over } = lastEffect;
    let words = `${plural(clicks, "click")}, ${plural(changed, "other label")} changed.`;
    if (passed_over) words += ` ${plural(passed_over, "item")} passed over: they were answered in the check.`;
    const buttons = [];
    if (changed) {
      const show = element("button", "Show them ");
      show.type = "button";
      show.append(element("kbd", "."));
      show.addEventListener("click", showChanged);
      buttons.push(" ", show);
    }
    tell(words, "good", ...buttons);
    if (listKind !== "selected") listKind = "doubtful";
    showEdges();
  }

  function showChanged() {
    if (!lastEffect || !lastEffect.changed) return tell("The last action changed no other label.");
    act(async () => {
      [listKind, listItems] = ["changed", lastEffect.changed_items];
      await go("correct");
    });
  }

  function backToList() {
    act(async () => {
      listKind = "doubtful";
      selected.clear();
      await loadList();
    });
  }

  function undo() {
    act(async () => {
      const told = await (await ask("/api/undo", {})).json();
      session = told.session;
      lastEffect = told.effect;
      selected.clear();
      tell(`Taken back. ${plural(told.effect.changed, "other label")} changed.`);
      showEdges();
      await reload();
    });
  }

  // ---- map

  async function loadMap() {
    find("#no-map").hidden = session.has_map;
    find("#map-root").hidden = !session.has_map;
    if (!session.has_map) return;
    const packed = await get("/api/labels");
    labels = { classes: unpack(packed.labels, 2), confidence: unpack(packed.confidence, 1), origins: unpack(packed.origins, 1) };
    const changed = new Set(lastEffect ? lastEffect.changed_items : []);
    if (!map) {
      const drawn = (await get("/api/map")).map;
      const data = { classes: session.classes, colours: session.colours, known: session.classes.length, map: { ...drawn, frames: drawn.frames.slice(-1) } };
      map = drawMap(find("#map-root"), data, {
        ringed: (item) => labels.origins[item] > 0,
        marked: (item) => map?.changed.has(item),
        show: (item, tip) => {
          if (!session.has_pictures) return;
          const image = element("img");
          image.alt = "";
          tip.append(image);
          picture(item, "small", image);
        },
        select: (items) => act(async () => {
          if (!items.length) return tell("There are no items within.");
          [listKind, listItems] = ["selected", items];
          selected.clear();
          items.filter((item) => labels.origins[item] !== 2).slice(0, 1000).forEach((item) => selected.add(item));
          await go("correct");
        }),
      });
      if (!map) return;
    }
    map.changed = changed;
    map.setLabels(labels.classes, labels.confidence, session.classes, session.colours, session.in_use);
  }

  // ---- finish

  async function loadFinish() {
    let view = null;
    if (session.answers) {
      const told = await get("/api/check");
      view = told.waiting ? null : told.check;
      check = view ?? check;
    }
    const signed = view ? view.signed_off : 0;
    const slider = find("#accept-set");
    slider.max = String(signed);
    slider.disabled = !signed;
    if (acceptSet === null || acceptSet > signed) acceptSet = signed;
    slider.value = String(acceptSet);
    showFinish(view);
  }

  function showFinish(view) {
    const set = view && acceptSet ? view.sets[acceptSet - 1] : null;
    find("#statement").textContent = set
      ? `At most ${percent(view.settings.max_error)} of the ${number(set.items)} accepted labels are wrong, with 95 % confidence.`
      : session.answers ? "Nothing is signed off yet: answer more in Check." : "Nothing is signed off yet: nothing was checked.";
    find("#finish-figures").textContent =
      `${plural(session.items, "item")}: ${number(session.corrections)} corrected or confirmed, ${number(session.answers)} answered in the check, ${number(session.unlabelled)} without a label.`;
    find("#accept-words").textContent = set ? `${number(set.items)} most confident labels (confidence ${set.least_confidence.toFixed(3)} or more)` : "none of the labels that nobody looked at";
    find("#certificate").disabled = !view;
    find("#accept-set").oninput = (event) => {
      acceptSet = Number(event.target.value);
      showFinish(view);
    };
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

  // ---- places

  async function go(to) {
    if (place !== to) tell("");
    place = to;
    for (const other of PLACES) find(`#${other}`).hidden = other !== to;
    for (const button of document.querySelectorAll("[data-place]")) button.setAttribute("aria-current", String(button.dataset.place === to));
    await reload();
  }

  async function reload() {
    await { check: () => loadCheck(), correct: loadList, map: loadMap, finish: loadFinish }[place]();
  }

  // What other pages and the full method do.
  async function listen() {
    for (;;) {
      try {
        const response = await ask("/api/events");
        if (find("#notice").textContent.startsWith("The connection")) tell("");
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

  async function hear(news) {
    if (news.kind === "full-run" && news.state === "done") tell(`The full method ran with your corrections: ${plural(news.changed, "label")} changed.`, "good");
    const before = session.events;
    session = await get("/api/session");
    showEdges();
    // Our own action has been shown already.
    const moved = session.events !== before || news.kind === "full-run" && news.state !== "running";
    if (moved && !busy) await reload();
  }

  // ---- keys and clicks

  const allTiles = () => [...document.querySelectorAll(".tile")];

  function move(step) {
    const tiles = allTiles();
    if (!tiles.length) return;
    const at = tiles.indexOf(document.activeElement);
    tiles[Math.min(tiles.length - 1, Math.max(0, at < 0 ? 0 : at + step))].focus();
  }

  function perRow() {
    const tiles = allTiles(), top = tiles[0]?.offsetTop;
    return Math.max(1, tiles.findIndex((tile) => tile.offsetTop !== top));
  }

  document.addEventListener("keydown", (event) => {
    const target = event.target, key = event.key;
    if (document.querySelector("dialog[open]") || event.altKey || event.metaKey || (event.ctrlKey && key !== "z")) return;
    if (target.matches("input[type=text], input[type=search], select")) return;
    const stop = () => event.preventDefault();
    if (key === "Backspace" || (event.ctrlKey && key === "z")) return stop(), undo();
    if (key === "?") return stop(), find("#keys").showModal();
    if (key === "[" || key === "]") {
      stop();
      const at = PLACES.indexOf(place) + (key === "]" ? 1 : -1);
      return act(() => go(PLACES[(at + PLACES.length) % PLACES.length]));
    }
    if (key === ".") return stop(), listKind === "doubtful" ? showChanged() : backToList();
    const lower = key.length === 1 ? key.toLowerCase() : key;
    if (place === "check" && check) {
      if (key === "Enter" && showsLabel && shown) return stop(), answer(shown.label);
      if (key === "-" && shown) return stop(), answer(null);
      if (key === " ") {
        stop();
        showsLabel = !showsLabel;
        return showCheck();
      }
      if (key === "/") return stop(), findClass(answer);
      const name = classByKey(lower, showsLabel ? shown : null);
      if (name !== undefined) return stop(), answer(name);
    }
    if (place === "correct") {
      if (key === "Enter" && selected.size) return stop(), acceptSelected();
      if (key === "Escape") return stop(), selected.clear(), showSelection();
      if (key === " " && target.matches(".tile")) return stop(), toggle(Number(target.dataset.item));
      if (key === "ArrowRight") return stop(), move(1);
      if (key === "ArrowLeft") return stop(), move(-1);
      if (key === "ArrowDown") return stop(), move(perRow());
      if (key === "ArrowUp") return stop(), move(-perRow());
      if (key === "/") return stop(), findClass(correctSelected);
      if (key === "+") {
        stop();
        const group = groups.find((group) => group.items.some((item) => item.item === focused)) ?? groups[0];
        group?.items.filter((item) => item.origin !== "checked").forEach((item) => selected.add(item.item));
        return showSelection();
      }
      const first = inList().find((item) => selected.has(item.item)) ?? inList().find((item) => item.item === focused);
      const name = classByKey(lower, first);
      if (name !== undefined) return stop(), correctSelected(name);
    }
  });

  function acceptSelected() {
    const items = chosenItems().filter((item) => item.label !== null);
    if (!items.length) return tell("None of the selected items has a label to accept.");
    correct(items.map((item) => [item.row, item.label]));
  }

  find("#undo").addEventListener("click", undo);
  find("#help").addEventListener("click", () => find("#keys").showModal());
  for (const button of document.querySelectorAll("[data-place]")) button.addEventListener("click", () => act(() => go(button.dataset.place)));
  find("#is-right").addEventListener("click", () => answer(shown.label));
  find("#none-fits").addEventListener("click", () => answer(null));
  find("#show-labels").addEventListener("change", (event) => {
    showsLabel = event.target.checked;
    if (check) showCheck();
  });
  for (const input of ["#max-error", "#first-set", "#final-labels"]) find(input).addEventListener("change", promise);
  find("#accept").addEventListener("click", acceptSelected);
  find("#clear").addEventListener("click", () => {
    selected.clear();
    showSelection();
  });
  find("#show-changed").addEventListener("click", showChanged);
  find("#back").addEventListener("click", backToList);
  find("#more").addEventListener("click", () => act(async () => {
    groupCount = Math.min(1000, groupCount + 48);
    await loadList();
  }));
  find("#lasso").addEventListener("click", () => {
    const on = find("#lasso").getAttribute("aria-checked") !== "true";
    find("#lasso").setAttribute("aria-checked", String(on));
    map?.useLasso(on);
  });
  find("#export").addEventListener("click", () => {
    const format = find("#format").value, probabilities = find("#probabilities").checked ? "&probabilities=1" : "";
    download(`/api/export?format=${format}&accept=${acceptSet ?? 0}${probabilities}`, `labels.${format}`);
  });
  find("#certificate").addEventListener("click", () => download(`/api/certificate?accept=${acceptSet ?? 0}`, "certificate.json"));
  for (const button of document.querySelectorAll("[data-corrections]")) {
    const format = button.dataset.corrections;
    button.addEventListener("click", () => download(`/api/corrections?format=${format}`, `corrections.${format}`));
  }
  for (let set = 1; set <= 10; set++) {
    const option = element("option", set === 10 ? "all items" : `the most confident ${10 * set} %`);
    option.value = String(set);
    find("#first-set").append(option);
  }

  act(async () => {
    session = await get("/api/session");
    showEdges();
    await go("correct");
    listen();
  });
})();
