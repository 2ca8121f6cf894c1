// The table of claims: filters above it, a count, and an order by what was used of a bound. Without scripts it is a table.
document.addEventListener("DOMContentLoaded", () => {
  const table = document.querySelector("table.claims");
  if (!table) return;
  const rows = [...table.tBodies[0].rows];
  const names = JSON.parse(table.dataset.names);
  const bar = document.createElement("form");
  bar.className = "claims-filters";
  const put = (label, control) => {
    const around = document.createElement("label");
    around.append(label + " ", control);
    bar.append(around);
    return control;
  };
  const choice = (label, options) => {
    const control = document.createElement("select");
    for (const [value, text] of options) control.add(new Option(text, value));
    control.name = label;
    return put(label, control);
  };
  const values = (name) => [...new Set(rows.map((row) => row.dataset[name]))];
  const filter = (name) =>
    choice(name, [["", "all"], ...values(name).map((value) => [value, (names[name] || {})[value] || value])]);

  const search = put("search", Object.assign(document.createElement("input"), { type: "search", name: "search" }));
  search.placeholder = "Lemma 4.3, V_k, A15 ...";
  const filters = Object.fromEntries(["part", "kind", "run", "verdict"].map((name) => [name, filter(name)]));
  const order = choice("order", [["", "of the paper"], ["tight", "tightest first"], ["loose", "loosest first"]]);
  const count = document.createElement("output");
  bar.append(count);
  table.parentElement.before(bar);

  const show = () => {
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    let left = 0;
    for (const row of rows) {
      const text = row.textContent.toLowerCase();
      const chosen = Object.entries(filters).every(([name, { value }]) => !value || row.dataset[name] === value);
      row.hidden = !(chosen && words.every((word) => text.includes(word)));
      left += !row.hidden;
    }
    count.textContent = `${left} of ${rows.length}`;
    const sign = { tight: -1, loose: 1 }[order.value] || 0;
    const used = (row) => Number(row.dataset.used);
    const last = (row) => (sign && used(row) < 0 ? 1 : 0); // where nothing was measured
    const sorted = rows.map((row, place) => [row, place]);
    sorted.sort(([a, i], [b, j]) => last(a) - last(b) || sign * (used(a) - used(b)) || i - j);
    table.tBodies[0].append(...sorted.map(([row]) => row));
  };
  bar.addEventListener("input", show);
  bar.addEventListener("submit", (event) => event.preventDefault());
  show();
});
