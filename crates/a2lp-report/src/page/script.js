
"use strict";
(() => {
  const { element, drawMap } = a2lp;

  for (const section of document.querySelectorAll("section.run")) {
    const source = section.querySelector("script.data");
    if (!source) continue;
    const data = JSON.parse(source.textContent);
    drawMap(section.querySelector(".map"), data);
    const items = section.querySelector(".items");
    if (items) listItems(items, data);
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
