
"use strict";
// The map of the items, for the report and for the review.
const a2lp = (() => {
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

  // `live` is for a map whose labels change while it is looked at: `ringed(item)` and `marked(item)` tell which target items stand out,
  // `show(item, tip)` adds to the words about one, and `select(items)` is given those that a lasso was drawn around.
  function drawMap(root, data, live) {
    const { map } = data;
    let { classes, colours } = data;
    const x = unpack(map.x, 2), y = unpack(map.y, 2), rows = unpack(map.rows, 4);
    const sourceLabels = unpack(map.source_labels, 2), truth = unpack(map.truth, 2);
    const frames = map.frames.map((f) => ({ round: f.round, labels: unpack(f.labels, 2), confidence: unpack(f.confidence, 1) }));
    if (!frames.length) return null;
    const sources = map.source_points, points = x.length;
    const canvas = root.querySelector("canvas"), tip = root.querySelector(".tip"), legend = root.querySelector(".legend");
    const hidden = new Set(), hiddenDomains = new Set();
    let frame = frames.length - 1, colourBy = "class";
    let zoom = 1, centre = [32767.5, 32767.5];
    let placed = [], lasso = null, usesLasso = false;

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
          g.arc(px, py, live?.marked(rows[i]) ? 1.6 * size : size, 0, 7);
          g.fill();
          if (live?.ringed(rows[i])) {
            g.globalAlpha = 1;
            g.strokeStyle = theme.text;
            g.lineWidth = 1.5;
            g.stroke();
            g.lineWidth = 1;
          }
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
      if (lasso) {
        g.strokeStyle = theme.accent;
        g.setLineDash([5, 4]);
        g.beginPath();
        lasso.forEach(([px, py]) => g.lineTo(px, py));
        g.closePath();
        g.stroke();
        g.setLineDash([]);
      }
    };

    // Is a place within the lasso? A ray to the right crosses its outline an odd number of times.
    const isWithin = (px, py) => {
      let within = false;
      lasso.forEach(([ax, ay], at) => {
        const [bx, by] = lasso[(at + 1) % lasso.length];
        if (ay > py !== by > py && px < ((bx - ax) * (py - ay)) / (by - ay) + ax) within = !within;
      });
      return within;
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
      if (live && best[2] >= sources) live.show(rows[best[2]], tip);
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
      const known = [...Array(data.known).keys()].filter((c) => !data.inUse || data.inUse[c]);
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
      if (usesLasso) {
        const box = canvas.getBoundingClientRect();
        lasso = [[event.clientX - box.left, event.clientY - box.top]];
        canvas.setPointerCapture(event.pointerId);
      } else if (zoom > 1) {
        dragged = [event.clientX, event.clientY];
        canvas.setPointerCapture(event.pointerId);
      }
    });
    canvas.addEventListener("pointermove", (event) => {
      const box = canvas.getBoundingClientRect();
      if (lasso) {
        lasso.push([event.clientX - box.left, event.clientY - box.top]);
        tip.hidden = true;
        return draw();
      }
      if (!dragged) return hover(event);
      const scale = (Math.min(box.width, box.height) - 24) / 65535 * zoom;
      centre = [centre[0] - (event.clientX - dragged[0]) / scale, centre[1] + (event.clientY - dragged[1]) / scale];
      dragged = [event.clientX, event.clientY];
      tip.hidden = true;
      draw();
    });
    canvas.addEventListener("pointerup", () => {
      dragged = null;
      if (!lasso) return;
      const within = placed.filter(([px, py, what]) => typeof what === "number" && what >= sources && isWithin(px, py));
      lasso = null;
      draw();
      live.select(within.map(([, , what]) => rows[what]));
    });
    canvas.addEventListener("pointerleave", () => (tip.hidden = true));
    new ResizeObserver(draw).observe(canvas);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
    window.addEventListener("beforeprint", draw);
    showFrame();
    return {
      draw,
      useLasso(on) {
        usesLasso = on;
        canvas.style.touchAction = on ? "none" : "";
      },
      // Puts other labels in place: class and confidence of every target item, the classes there are now, and which are in use.
      setLabels(labels, confidence, names, palette, inUse) {
        [classes, colours, data.known, data.inUse] = [names, palette, names.length, inUse];
        const now = frames[frames.length - 1];
        for (let i = sources; i < points; i++) {
          now.labels[i - sources] = labels[rows[i]];
          now.confidence[i - sources] = confidence[rows[i]];
        }
        drawLegend();
        draw();
      },
    };
  }

  return { NO_CLASS, unpack, element, drawMap };
})();
