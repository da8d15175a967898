
"use strict";
(() => {
  const NO_CLASS = 65535;

  // Numbers come as base64 of their little-endian bytes.
  const unpack = (text, size) => {
    const bytes = Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
    if (size === 1) return bytes;
    const view = new DataView(bytes.buffer);
    const numbers = new (size === 2 ? Uint16Array : Uint32Array)(bytes.length / size);
    for (let i = 0; i < numbers.length; i++) {
      numbers[i] = size === 2 ? view.getUint16(2 * i, true) : view.getUint32(4 * i, true);
    }
    return numbers;
  };

  const variable = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const element = (tag, text) => {
    const made = document.createElement(tag);
    if (text !== undefined) made.textContent = text;
    return made;
  };
  // Orange where unsure, grey between, blue where sure.
  const ramp = (t) => (t < 0.5 ? `hsl(28 ${95 - 180 * t}% 52%)` : `hsl(212 ${5 + 180 * (t - 0.5)}% 52%)`);

  for (const section of document.querySelectorAll("section.run")) {
    const source = section.querySelector("script.data");
    if (!source) continue;
    const data = JSON.parse(source.textContent);
    drawMap(section.querySelector(".map"), data);
    const items = section.querySelector(".items");
    if (items) listItems(items, data);
  }

  function drawMap(root, data) {
    const { classes, colours, map } = data;
    const x = unpack(map.x, 2), y = unpack(map.y, 2), rows = unpack(map.rows, 4);
    const sourceLabels = unpack(map.source_labels, 2), truth = unpack(map.truth, 2);
    const frames = map.frames.map((f) => ({ round: f.round, labels: unpack(f.labels, 2), confidence: unpack(f.confidence, 1) }));
    if (!frames.length) return;
    const sources = map.source_points, points = x.length;
    const canvas = root.querySelector("canvas"), tip = root.querySelector(".tip"), legend = root.querySelector(".legend");
    const hidden = new Set(), hiddenDomains = new Set();
    let frame = frames.length - 1, colourBy = "class";
    let zoom = 1, centre = [32767.5, 32767.5];
    let placed = [];

    const classOf = (i) => (i < sources ? sourceLabels[i] : frames[frame].labels[i - sources]);
    const name = (c) => (c === NO_CLASS ? "no label" : classes[c]);
    const shown = (i) => !hidden.has(classOf(i)) && !hiddenDomains.has(i < sources ? "source" : "target");
    const anchorsNow = () => map.anchors.filter((a) => a.round <= frames[frame].round);
    const newest = () => {
      const rounds = anchorsNow().map((a) => a.round);
      return rounds.length ? Math.max(...rounds) : -1;
    };

    const colourOf = (i, theme) => {
      const c = classOf(i);
      if (colourBy === "domain") return i < sources ? theme.second : theme.accent;
      if (colourBy === "confidence") return i < sources ? theme.muted : ramp(frames[frame].confidence[i - sources] / 255);
      if (colourBy === "truth") return i < sources ? theme.muted : c === truth[i - sources] ? theme.good : theme.bad;
      return c === NO_CLASS ? theme.muted : colours[c];
    };

    const place = (px, py, box) => {
      const scale = (Math.min(box.width, box.height) - 24) / 65535 * zoom;
      return [box.width / 2 + (px - centre[0]) * scale, box.height / 2 - (py - centre[1]) * scale];
    };

    const draw = () => {
      const box = canvas.getBoundingClientRect(), ratio = window.devicePixelRatio || 1;
      canvas.width = Math.round(box.width * ratio);
      canvas.height = Math.round(box.height * ratio);
      const g = canvas.getContext("2d");
      g.scale(ratio, ratio);
      const theme = Object.fromEntries(["text", "muted", "surface", "accent", "second", "good", "bad"].map((n) => [n, variable("--" + n)]));
      const size = (points > 8000 ? 1.6 : points > 2000 ? 2.4 : 3.2) * Math.min(2, Math.sqrt(zoom));
      placed = [];
      for (let i = 0; i < points; i++) {
        if (!shown(i)) continue;
        const [px, py] = place(x[i], y[i], box);
        if (px < -9 || py < -9 || px > box.width + 9 || py > box.height + 9) continue;
        placed.push([px, py, i]);
        const colour = colourOf(i, theme);
        if (i < sources) {
          g.globalAlpha = 0.5;
          g.strokeStyle = colour;
          g.strokeRect(px - size, py - size, 2 * size, 2 * size);
        } else {
          g.globalAlpha = 0.8;
          g.fillStyle = colour;
          g.beginPath();
          g.arc(px, py, size, 0, 7);
          g.fill();
        }
      }
      if (!hiddenDomains.has("anchors")) {
        const latest = newest();
        for (const a of anchorsNow()) {
          if (hidden.has(a.class)) continue;
          const [px, py] = place(a.x, a.y, box), d = a.round === latest ? 8 : 4;
          g.globalAlpha = a.round === latest ? 1 : 0.45;
          g.fillStyle = colourBy === "class" ? colours[a.class] : theme.text;
          g.strokeStyle = theme.text;
          g.lineWidth = 1.5;
          g.beginPath();
          g.moveTo(px, py - d);
          g.lineTo(px + d, py);
          g.lineTo(px, py + d);
          g.lineTo(px - d, py);
          g.closePath();
          g.fill();
          g.stroke();
          g.lineWidth = 1;
          placed.push([px, py, a]);
        }
      }
      g.globalAlpha = 1;
    };

    const describe = (what) => {
      if (typeof what === "object") {
        return `anchor of ${name(what.class)}\nfrom ${what.items.toLocaleString("en")} items, since round ${what.round}`;
      }
      if (what < sources) return `source row ${rows[what]}\n${name(sourceLabels[what])}`;
      const at = what - sources, id = map.ids.length ? map.ids[at] : `target row ${rows[what]}`;
      let text = `${id}\n${name(classOf(what))}, confidence ${(frames[frame].confidence[at] / 255).toFixed(2)}`;
      if (truth.length) text += classOf(what) === truth[at] ? "\nright" : `\nin truth ${name(truth[at])}`;
      return text;
    };

    const hover = (event) => {
      const box = canvas.getBoundingClientRect();
      const mx = event.clientX - box.left, my = event.clientY - box.top;
      let best = null, nearest = 144;
      // Anchors and target points are drawn last and win ties.
      for (const [px, py, what] of placed) {
        const d = (px - mx) ** 2 + (py - my) ** 2;
        if (d <= nearest) [nearest, best] = [d, [px, py, what]];
      }
      tip.hidden = !best;
      if (!best) return;
      tip.textContent = describe(best[2]);
      const left = Math.min(best[0] + 12, box.width - tip.offsetWidth - 4);
      const top = best[1] + 14 + tip.offsetHeight > box.height ? best[1] - 14 - tip.offsetHeight : best[1] + 14;
      tip.style.left = `${Math.max(0, left)}px`;
      tip.style.top = `${Math.max(0, top)}px`;
    };

    const toggle = (button, set, key) => {
      if (set.has(key)) set.delete(key);
      else set.add(key);
      button.setAttribute("aria-pressed", String(!set.has(key)));
      draw();
    };

    const drawLegend = () => {
      legend.replaceChildren();
      if (colourBy === "confidence") {
        const bar = element("span");
        bar.className = "ramp";
        bar.style.background = `linear-gradient(to right, ${[0, 0.25, 0.5, 0.75, 1].map(ramp).join(",")})`;
        legend.append(element("span", "0"), bar, element("span", "1 confidence of target items; source items are grey"));
        return;
      }
      if (colourBy !== "class") {
        const entries = colourBy === "domain" ? [["source", "--second"], ["target", "--accent"]] : [["right", "--good"], ["wrong", "--bad"]];
        for (const [word, colour] of entries) {
          const entry = element("span"), swatch = element("i");
          swatch.style.background = `var(${colour})`;
          entry.append(swatch, ` ${word}  `);
          legend.append(entry);
        }
        return;
      }
      const counts = new Map();
      for (const c of frames[frame].labels) counts.set(c, (counts.get(c) || 0) + 1);
      const known = [...Array(data.known).keys()];
      if (counts.has(NO_CLASS)) known.push(NO_CLASS);
      for (const c of known) {
        const button = element("button"), swatch = element("i");
        button.type = "button";
        swatch.style.background = c === NO_CLASS ? "var(--muted)" : colours[c];
        const number = element("span", (counts.get(c) || 0).toLocaleString("en"));
        number.className = "number";
        button.append(swatch, name(c), number);
        button.title = "target points drawn with this label; click to hide or show";
        button.setAttribute("aria-pressed", String(!hidden.has(c)));
        button.addEventListener("click", () => toggle(button, hidden, c));
        legend.append(button);
      }
      if (known.length > 3) {
        for (const [word, none] of [["all", false], ["none", true]]) {
          const button = element("button", word);
          button.type = "button";
          button.addEventListener("click", () => {
            hidden.clear();
            if (none) known.forEach((c) => hidden.add(c));
            drawLegend();
            draw();
          });
          legend.append(button);
        }
      }
    };

    const slider = root.querySelector("input[type=range]"), output = root.querySelector("output");
    const showFrame = () => {
      if (output) {
        const before = frame > 0 ? frames[frame - 1].labels : null, now = frames[frame].labels;
        let changed = 0;
        if (before) for (let i = 0; i < now.length; i++) changed += now[i] !== before[i];
        output.textContent = `${frames[frame].round}` + (before ? ` (${changed.toLocaleString("en")} ${changed === 1 ? "point" : "points"} changed)` : " (no anchors yet)");
      }
      drawLegend();
      draw();
    };
    if (slider) {
      slider.addEventListener("input", () => {
        frame = Number(slider.value);
        showFrame();
      });
      let timer = 0;
      const play = root.querySelector(".play");
      const stop = () => {
        clearInterval(timer);
        timer = 0;
        play.textContent = "play";
      };
      play.addEventListener("click", () => {
        if (timer) return stop();
        frame = 0;
        slider.value = 0;
        showFrame();
        play.textContent = "stop";
        timer = setInterval(() => {
          if (frame + 1 >= frames.length) return stop();
          slider.value = ++frame;
          showFrame();
        }, 700);
      });
    }
    root.querySelector("select").addEventListener("change", (event) => {
      colourBy = event.target.value;
      drawLegend();
      draw();
    });
    for (const button of root.querySelectorAll("[data-domain]")) {
      button.addEventListener("click", () => toggle(button, hiddenDomains, button.dataset.domain));
    }
    for (const button of root.querySelectorAll("[data-zoom]")) {
      button.addEventListener("click", () => {
        if (button.dataset.zoom === "all") [zoom, centre] = [1, [32767.5, 32767.5]];
        else zoom = Math.min(64, Math.max(1, zoom * (button.dataset.zoom === "in" ? 1.5 : 1 / 1.5)));
        draw();
      });
    }
    let dragged = null;
    canvas.addEventListener("pointerdown", (event) => {
      hover(event);
      if (zoom > 1) {
        dragged = [event.clientX, event.clientY];
        canvas.setPointerCapture(event.pointerId);
      }
    });
    canvas.addEventListener("pointermove", (event) => {
      if (!dragged) return hover(event);
      const box = canvas.getBoundingClientRect();
      const scale = (Math.min(box.width, box.height) - 24) / 65535 * zoom;
      centre = [centre[0] - (event.clientX - dragged[0]) / scale, centre[1] + (event.clientY - dragged[1]) / scale];
      dragged = [event.clientX, event.clientY];
      tip.hidden = true;
      draw();
    });
    canvas.addEventListener("pointerup", () => (dragged = null));
    canvas.addEventListener("pointerleave", () => (tip.hidden = true));
    new ResizeObserver(draw).observe(canvas);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
    window.addEventListener("beforeprint", draw);
    showFrame();
  }

  function listItems(root, data) {
    const all = data.items;
    const has = (key) => all.some((item) => (item[key] ?? null) !== null);
    const columns = [
      has("thumbnail") && { key: "thumbnail", name: "" },
      { key: "row", name: "row" },
      has("id") && { key: "id", name: "id" },
      { key: "label", name: "label" },
      { key: "probability", name: "probability" },
      { key: "second", name: "next best" },
      { key: "second_probability", name: "its probability" },
      { key: "confidence", name: "confidence" },
      { key: "status", name: "status" },
      has("nearest") && { key: "nearest", name: "looks like" },
      has("reach") && { key: "reach", name: "reach" },
      has("views") && { key: "views", name: "views" },
      has("truth") && { key: "truth", name: "truth" },
    ].filter(Boolean);
    const find = root.querySelector(".find"), most = root.querySelector(".most"), right = root.querySelector(".right");
    const classSelect = root.querySelector(".class"), count = root.querySelector(".count"), more = root.querySelector(".more");
    const head = root.querySelector("thead"), body = root.querySelector("tbody");
    let sort = null, limit = 100;

    for (const label of [...new Set(all.map((item) => item.label))].sort((a, b) => String(a).localeCompare(String(b), "en", { numeric: true }))) {
      const option = element("option", label === null ? "no label" : label);
      option.value = JSON.stringify(label);
      classSelect.append(option);
    }

    const header = element("tr");
    for (const column of columns) {
      const cell = element("th", column.name);
      if (column.name) {
        cell.tabIndex = 0;
        const click = () => {
          const again = sort && sort.key === column.key;
          sort = { key: column.key, down: again ? !sort.down : false };
          for (const other of header.children) other.removeAttribute("aria-sort");
          cell.setAttribute("aria-sort", sort.down ? "descending" : "ascending");
          show();
        };
        cell.addEventListener("click", click);
        cell.addEventListener("keydown", (event) => {
          if (event.key === "Enter") click();
        });
      }
      header.append(cell);
    }
    head.append(header);

    const chosen = () => {
      const words = find.value.trim().toLowerCase(), top = most.value === "" ? 1 : Number(most.value);
      const items = all.filter((item) => {
        if (item.confidence > top) return false;
        if (classSelect.value && JSON.stringify(item.label) !== classSelect.value) return false;
        if (right && right.value && (item.label === item.truth) !== (right.value === "right")) return false;
        return !words || [item.id, String(item.row), item.label, item.second, item.truth].some((t) => t !== null && String(t).toLowerCase().includes(words));
      });
      if (sort) {
        const compare = (a, b) => {
          const [u, v] = [a[sort.key], b[sort.key]];
          if (u === null || v === null) return (u === null) - (v === null);
          return typeof u === "number" ? u - v : u.localeCompare(v, "en", { numeric: true });
        };
        items.sort((a, b) => (sort.down ? compare(b, a) : compare(a, b)));
      }
      return items;
    };

    const cellOf = (item, key) => {
      const cell = element("td"), value = item[key];
      if (key === "thumbnail") {
        if (value) {
          const image = element("img");
          image.alt = `picture of row ${item.row}`;
          image.src = `data:image/${value.startsWith("/9j/") ? "jpeg" : "png"};base64,${value}`;
          cell.append(image);
        }
      } else if (key === "confidence") {
        const meter = element("span"), fill = element("i");
        meter.className = "meter";
        fill.style.width = `${100 * value}%`;
        meter.append(fill);
        cell.append(meter, value.toFixed(3));
      } else if (key === "reach") {
        cell.textContent = value === null ? "" : value.toFixed(3);
      } else if (key === "probability" || key === "second_probability") {
        cell.textContent = item.label === null || (key === "second_probability" && item.second === null) ? "" : value.toFixed(3);
      } else {
        cell.textContent = value === null ? "" : value;
        if (key === "id") {
          cell.className = "id";
          cell.title = value;
        }
        if (key === "truth" && item.truth !== item.label) cell.className = "wrong";
      }
      return cell;
    };

    const show = () => {
      const items = chosen();
      body.replaceChildren(...items.slice(0, limit).map((item) => {
        const line = element("tr");
        line.append(...columns.map((column) => cellOf(item, column.key)));
        return line;
      }));
      count.textContent = items.length === all.length ? `${all.length} items` : `${items.length} of ${all.length} items`;
      more.hidden = items.length <= limit;
    };

    for (const input of [find, most, classSelect, right].filter(Boolean)) {
      input.addEventListener("input", () => {
        limit = 100;
        show();
      });
    }
    more.addEventListener("click", () => {
      limit += 200;
      show();
    });
    root.querySelector(".download").addEventListener("click", () => {
      const quote = (value) => {
        const text = value === null ? "" : String(value);
        return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
      };
      const keys = columns.map((column) => column.key).filter((key) => key !== "thumbnail");
      const lines = [keys, ...chosen().map((item) => keys.map((key) => item[key]))];
      const link = element("a");
      link.href = "data:text/csv;charset=utf-8," + encodeURIComponent(lines.map((line) => line.map(quote).join(",") + "\n").join(""));
      link.download = "items.csv";
      document.body.append(link);
      link.click();
      link.remove();
    });
    show();
  }
})();
