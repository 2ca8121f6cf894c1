"use strict";
// What can be done on the page? Figures are drawn when they come into sight; boxes choose what they show.
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const root = document.documentElement;
  // Colours that are told apart by every kind of colour vision (after Okabe and Ito), at least 3:1 on the page.
  // Seven colours and six dashes, so that 42 learners look different; the column is told by markers.
  const COLOURS = {
    light: ["#0072B2", "#B83A00", "#00916A", "#B44A88", "#A58200", "#5B2DA8", "#20242A"],
    dark: ["#4AA8EC", "#FF8A45", "#3FD0A4", "#F0A6D2", "#F2CC50", "#9A5CF0", "#F2F4F7"],
  };
  const DASHES = ["solid", "dash", "dot", "dashdot", "longdash", "longdashdot"];
  const STROKES = { solid: "", dash: "7 4", dot: "2 3", dashdot: "7 3 2 3", longdash: "11 4", longdashdot: "11 3 2 3" };
  const WORDS = { theory: "the theory's constants", tuned: "tuned multipliers", given: "constants as given" };
  const MARKERS = { theory: "circle-open", tuned: "square", given: "diamond" };
  const FEW = 14; // learners that are all ranked; of more, those that are shown at first
  const PAPER = { width: 680, height: 340 }; // of a figure in print, in pixels: within the margins of A4 and of Letter
  let before = null; // how the page was before it was printed
  const place = new Map(data.labels.map((label, i) => [label, i]));
  const dark = () => (root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches);
  const colour = (i) => COLOURS[dark() ? "dark" : "light"][data.styles[i][0]];
  const dash = (i) => DASHES[data.styles[i][1]];
  const ink = (name) => getComputedStyle(root).getPropertyValue(name).trim();
  // Plotly reads a little HTML in its texts; labels are plain.
  const plain = (text) => text.replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;");
  const faded = (hex, share) => `rgba(${[1, 3, 5].map((k) => parseInt(hex.slice(k, k + 2), 16)).join(",")},${share})`;

  function swatches() {
    for (const span of document.querySelectorAll(".swatch")) {
      const i = place.get(span.dataset.label);
      span.innerHTML = `<svg width="30" height="12" focusable="false"><line x1="1" x2="29" y1="6" y2="6" stroke="${colour(i)}" stroke-width="2.5" stroke-dasharray="${STROKES[dash(i)]}"/></svg>`;
    }
  }

  function axis(title, log, values = []) {
    const positive = values.flat().filter((value) => value > 0);
    const decades = Math.log10(Math.max(...positive) / Math.min(...positive)) >= 2;
    return {
      title: { text: title, standoff: 8 }, type: log ? "log" : "linear", gridcolor: ink("--line"), linecolor: ink("--edge"),
      zerolinecolor: ink("--line"), automargin: true, ...(log ? { ...(decades ? { dtick: 1, exponentformat: "power" } : { dtick: "D2", tickformat: ",.3~r" }) } : { separatethousands: true, exponentformat: "none", rangemode: "tozero" }),
    };
  }

  function layout(x, y) {
    return {
      xaxis: x, yaxis: y, showlegend: false, hovermode: "closest", dragmode: "zoom", margin: { l: 12, r: 12, t: 28, b: 12 },
      paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)", font: { color: ink("--ink"), family: "system-ui, sans-serif", size: 13 },
      hoverlabel: { bgcolor: ink("--page"), bordercolor: ink("--edge"), font: { color: ink("--ink") }, align: "left", namelength: -1 },
      modebar: { bgcolor: "rgba(0,0,0,0)", color: ink("--soft"), activecolor: ink("--ink") },
    };
  }

  // A line with its band. On a log axis a band that reaches 0 is cut a little below the line.
  function traced(line, x, y, low, high, options) {
    const i = line.label, traces = [];
    if (low && options.bands) {
      const least = Math.min(...y.filter((value) => value > 0)) / 10;
      const cut = options.log ? low.map((value) => Math.max(value, least)) : low;
      traces.push({
        x: x.concat(x.slice().reverse()), y: high.concat(cut.slice().reverse()), type: "scatter", mode: "lines", fill: "toself",
        fillcolor: faded(colour(i), 0.16), line: { width: 0, shape: "linear" }, hoverinfo: "skip", name: "band",
      });
    }
    const both = options.both, every = Math.max(1, Math.ceil(x.length / 12));
    traces.push({
      x, y, type: "scatter", mode: both ? "lines+markers" : "lines", name: plain(data.labels[i]), line: { color: colour(i), dash: dash(i), width: 2.2, shape: options.shape ?? "linear" },
      ...(both ? { marker: { symbol: MARKERS[line.column], color: colour(i), size: x.map((_, k) => (k % every === every - 1 ? 7 : 0)) } } : {}),
      customdata: x.map((_, k) => (low ? `[${short(low[k])}, ${short(high[k])}]` : "no interval")), meta: options.meta,
      hovertemplate: options.hover,
    });
    return traces;
  }

  function short(value) {
    return Math.abs(value) >= 1000 ? Math.round(value).toLocaleString("en") : String(Number(value.toPrecision(4))).replace("-", "\u2212");
  }

  const views = {
    curves(lines, chosen, held) {
      const traces = lines.flatMap((line) => traced(line, held.times, line.mean, line.low, line.high, {
        bands: chosen.bands, log: chosen.regret, both: chosen.both,
        meta: `${line.seeds} seed${line.seeds === 1 ? "" : "s"}, ${WORDS[line.column]}`,
        hover: "<b>%{fullData.name}</b><br>t = %{x:,}<br>regret %{y:,.5~g} %{customdata}<br>%{meta}<extra></extra>",
      }));
      traces.sort((a, b) => (a.fill ? 0 : 1) - (b.fill ? 0 : 1)); // bands lie behind all lines
      return [traces, layout(axis("step t", chosen.time, held.times), axis("regret", chosen.regret, lines.map((line) => line.mean)))];
    },
    seeds(lines, chosen) {
      const names = lines.map((line) => plain(data.labels[line.label]) + (chosen.both ? ` (${line.column})` : ""));
      const traces = lines.map((line, k) => ({
        x: line.finals, y: line.finals.map((_, j) => k + 0.5 * (line.finals.length > 1 ? j / (line.finals.length - 1) - 0.5 : 0)), type: "scatter", mode: "markers",
        name: names[k], marker: { color: colour(line.label), symbol: MARKERS[line.column], size: 8, opacity: 0.8 },
        hovertemplate: "<b>%{fullData.name}</b><br>regret %{x:,.5~g}<extra></extra>",
      }));
      const y = { ...axis("", false), tickvals: names.map((_, k) => k), ticktext: names.map((name) => (name.length > 26 ? name.slice(0, 25) + "…" : name)), autorange: "reversed", rangemode: "normal" };
      const few = lines.every((line) => line.finals.length === line.seeds);
      const title = few ? "regret at T, a point per seed" : "regret at T, some seeds evenly through their order";
      return [traces, layout(axis(title, chosen.regret, lines.map((line) => line.finals)), y)];
    },
    pareto(lines, chosen) {
      const traces = lines.map((line) => {
        const last = line.mean.length - 1;
        const high = line.high ? line.high[last] - line.mean[last] : 0, low = line.low ? line.mean[last] - line.low[last] : 0;
        return {
          x: [line.seconds], y: [line.mean[last]], type: "scatter", mode: "markers+text", name: plain(data.labels[line.label]),
          text: [plain(data.labels[line.label])], textposition: "top center", textfont: { size: 11 },
          ...(chosen.bands && line.high ? { error_y: { type: "data", symmetric: false, array: [high], arrayminus: [low], color: colour(line.label) } } : {}),
          marker: { color: colour(line.label), symbol: line.front ? "diamond" : MARKERS[line.column], size: line.front ? 13 : 9 },
          customdata: [line.high ? `[${short(line.low[last])}, ${short(line.high[last])}]` : "no interval"],
          meta: `${line.seeds} seeds, ${WORDS[line.column]}${line.front ? "; no rival has less regret in less time" : ""}`,
          hovertemplate: "<b>%{fullData.name}</b><br>%{x:.3~g} s per run<br>regret %{y:,.5~g} %{customdata}<br>%{meta}<extra></extra>",
        };
      });
      return [traces, layout(axis("seconds of computing per run", chosen.time, lines.map((line) => line.seconds)), axis("mean regret at T", chosen.regret, lines.map((line) => line.mean.at(-1))))];
    },
    profile(lines, chosen, held) {
      const traces = lines.flatMap((line) => traced(line, held.thresholds, line.share, line.low, line.high, {
        bands: chosen.bands, shape: "hv", hover: "<b>%{fullData.name}</b><br>τ = %{x:.4~g}<br>share %{y:.1%} %{customdata}<extra></extra>",
      }));
      traces.sort((a, b) => (a.fill ? 0 : 1) - (b.fill ? 0 : 1));
      const y = { ...axis("share of runs", false), tickformat: ".0%", range: [0, 1.02], autorange: false };
      return [traces, layout(axis("score τ", chosen.score, held.thresholds), y)];
    },
    // Who wins, by how much: a row per learner, ranked by the last column; where there are many, those shown at first.
    ranks(lines, chosen, held) {
      const last = lines.at(-1)?.column;
      const mean = (line) => (line.nothing ? 0 : line.mean.at(-1));
      const first = lines.filter((line) => line.column === last).sort((a, b) => mean(a) - mean(b));
      const rows = [...new Set([...first, ...lines].map((line) => line.label))];
      const drawn = lines.filter((line) => mean(line) > 0);
      const traces = drawn.map((line) => {
        const at = mean(line), low = Math.max(line.low?.at(-1) ?? at, at / 10), high = line.high?.at(-1) ?? at;
        return {
          x: [at], y: [rows.indexOf(line.label)], type: "scatter", mode: "markers", name: plain(data.labels[line.label]),
          marker: { color: colour(line.label), symbol: MARKERS[line.column], size: 10, line: { width: 2, color: colour(line.label) } },
          error_x: { type: "data", symmetric: false, array: [high - at], arrayminus: [at - low], color: colour(line.label), thickness: 2, width: 5 },
          customdata: [line.low ? `[${short(line.low.at(-1))}, ${short(line.high.at(-1))}]` : "no interval"], meta: WORDS[line.column],
          hovertemplate: "<b>%{fullData.name}</b><br>%{x:,.5~g} %{customdata}<br>%{meta}<extra></extra>",
        };
      });
      const brief = (value) => Number(value.toPrecision(3));
      const least = first.length ? mean(first[0]) : 0;
      const times = (line) => (line === first[0] ? "★" : `${line.rank === "tie" ? "≈ " : ""}${least > 0 ? `×${short(brief(mean(line) / least))}` : ""}`);
      const notes = first.map((line) => ({
        text: `<b>${short(brief(mean(line)))}</b> ${times(line)}`, x: 1.01, xref: "paper", xanchor: "left", y: rows.indexOf(line.label), showarrow: false,
      }));
      const names = rows.map((label) => plain(data.labels[label]));
      const cut = chosen.narrow ? 14 : 26;
      const y = { ...axis("", false), tickvals: rows.map((_, k) => k), ticktext: names.map((name) => (name.length > cut ? name.slice(0, cut - 1) + "…" : name)), range: [rows.length - 0.5, -0.5], autorange: false, zeroline: false };
      const made = layout(axis(held.by ?? "mean regret at T", true, drawn.map(mean)), y);
      if (chosen.narrow && held.by) made.xaxis.title.text = "score";
      return [traces, { ...made, annotations: notes, margin: { ...made.margin, t: 8, r: chosen.narrow ? 96 : 130 } }];
    },
  };

  function chosen(figure) {
    const on = (query) => Boolean(figure.querySelector(query)?.checked);
    return {
      view: figure.querySelector("[data-view]:checked")?.value ?? (figure.dataset.profile ? "profile" : "ranks"), column: figure.querySelector("[data-column]:checked")?.value ?? null,
      time: on('[data-log="time"]'), regret: on('[data-log="regret"]'), score: on('[data-log="score"]'), bands: on("[data-bands]"),
      labels: new Set([...figure.querySelectorAll("input[data-label]:checked")].map((box) => place.get(box.dataset.label))),
    };
  }

  function draw(figure) {
    const where = figure.querySelector("[data-where]")?.value ?? figure.dataset.panel;
    const held = data.panels[where] ?? data.overall[where] ?? data.profiles[figure.dataset.profile];
    const now = chosen(figure), plot = figure.querySelector(".plot");
    now.both = now.column === "";
    now.narrow = !before && plot.clientWidth < 520;
    const many = new Set(held.lines.map((line) => line.label)).size > FEW;
    const asked = (line) => (now.view === "ranks" ? !line.oracle && (!many || line.shown) : now.labels.has(line.label));
    const lines = held.lines.filter((line) => asked(line) && (!now.column || line.column === now.column));
    const [traces, form] = views[now.view](lines, now, held);
    if (!lines.length) form.annotations = [{ text: "No learner is ticked.", showarrow: false, xref: "paper", yref: "paper", x: 0.5, y: 0.5 }];
    const rows = { seeds: Math.max(26 * 16, 60 + 26 * lines.length), ranks: 64 + 27 * new Set(lines.map((line) => line.label)).size }[now.view] ?? null;
    if (before) Object.assign(form, { autosize: false, width: PAPER.width, height: rows ?? PAPER.height });
    plot.style.height = form.height || rows ? `${form.height ?? rows}px` : "";
    form.uirevision = `${where}${now.view}${now.time}${now.regret}${now.score}`; // a zoom stays while learners come and go
    figure.dataset.drawn = String(lines.length);
    if (now.narrow) form.font.size = 11;
    Plotly.react(plot, traces, form, {
      responsive: true, displaylogo: false, displayModeBar: now.narrow || now.view === "ranks" ? false : "hover", scrollZoom: false,
      modeBarButtonsToRemove: ["select2d", "lasso2d", "autoScale2d"], toImageButtonOptions: { format: "svg", filename: "ravi" },
    });
    const status = figure.querySelector("[role=status]");
    if (status && figure.dataset.touched) status.textContent = `${lines.length} lines are shown: ${now.view}.`;
  }

  const figures = [...document.querySelectorAll("figure.chart")];
  const drawn = () => figures.filter((figure) => figure.dataset.drawn !== undefined);
  for (const figure of figures) {
    const again = () => {
      figure.dataset.touched = "yes";
      draw(figure);
    };
    figure.addEventListener("change", again);
    const all = (value) => () => {
      for (const box of figure.querySelectorAll("input[data-label]")) box.checked = value;
      again();
    };
    figure.querySelector("[data-all]")?.addEventListener("click", all(true));
    figure.querySelector("[data-none]")?.addEventListener("click", all(false));
  }
  const sight = new IntersectionObserver((seen) => {
    for (const one of seen) {
      if (one.isIntersecting) {
        sight.unobserve(one.target);
        draw(one.target);
      }
    }
  }, { rootMargin: "400px" });
  for (const figure of figures) sight.observe(figure);

  const button = document.getElementById("theme");
  function repaint() {
    button.textContent = dark() ? "Light" : "Dark"; // what it does
    swatches();
    drawn().forEach(draw);
  }
  button.addEventListener("click", () => {
    root.dataset.theme = dark() ? "light" : "dark";
    try {
      localStorage.setItem("ravi-theme", root.dataset.theme);
    } catch { /* a page from a file may have no storage */ }
    repaint();
  });
  try {
    const kept = localStorage.getItem("ravi-theme");
    if (kept === "dark" || kept === "light") root.dataset.theme = kept;
  } catch { /* as above */ }
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", repaint);
  repaint();

  if (matchMedia("(max-width: 60rem)").matches) document.getElementById("contents").open = false;
  addEventListener("beforeprint", () => {
    before = { theme: root.dataset.theme, shut: [...document.querySelectorAll("details:not([open])")] };
    root.dataset.theme = "light";
    for (const one of before.shut) one.open = true;
    figures.forEach(draw);
    swatches();
  });
  addEventListener("afterprint", () => {
    if (!before) return;
    for (const one of before.shut) one.open = false;
    if (before.theme) root.dataset.theme = before.theme;
    else delete root.dataset.theme;
    before = null;
    repaint();
  });
  // A table that is wider than the page says so, until it has been scrolled to its end.
  const wide = [...document.querySelectorAll(".scroll")];
  const hint = (one) => one.classList.toggle("more", one.scrollWidth - one.clientWidth - one.scrollLeft > 4);
  const sized = new ResizeObserver((seen) => seen.forEach(({ target }) => hint(target)));
  for (const one of wide) {
    one.addEventListener("scroll", () => hint(one), { passive: true });
    sized.observe(one);
  }
  root.dataset.ready = "yes";
})();
