"use strict";
// Figures with zoom and tooltips, in the place of the drawings of the same numbers; drawings keep their texts as tooltips.
(() => {
  const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const short = (v) => (v == null ? "" : String(Number(v.toPrecision(4))));
  const tip = document.createElement("div");
  tip.className = "tip";
  tip.hidden = true;
  document.body.append(tip);

  function tell(text, x, y) {
    tip.hidden = !text;
    tip.textContent = text;
    const left = x + 14 + tip.offsetWidth > innerWidth ? x - 14 - tip.offsetWidth : x + 14;
    tip.style.left = Math.max(2, left) + "px";
    tip.style.top = Math.max(2, Math.min(y + 12, innerHeight - tip.offsetHeight - 4)) + "px";
  }

  // A drawing's marks have a text each, which a browser shows late, and a phone never.
  for (const hit of document.querySelectorAll(".hit")) {
    const title = hit.querySelector("title");
    hit.dataset.tip = title.textContent;
    title.remove();
  }
  document.addEventListener("pointerover", (e) => {
    const hit = e.target.closest?.(".hit");
    if (hit) tell(hit.dataset.tip, e.clientX, e.clientY);
    else if (!e.target.closest?.(".u-over")) tell("");
  });

  function triangles(u, n, from, to) {
    const path = new Path2D();
    const size = 6 * devicePixelRatio;
    for (let i = from; i <= to; i++) {
      const value = u.data[n][i];
      if (value == null) continue;
      const [x, y] = [u.valToPos(u.data[0][i], "x", true), u.valToPos(value, u.series[n].scale, true)];
      path.moveTo(x, y - size);
      path.lineTo(x + size, y + size * 0.8);
      path.lineTo(x - size, y + size * 0.8);
      path.closePath();
    }
    return { stroke: path, fill: null };
  }

  // The columns of a chart: of each line its band, itself, and what was published.
  function columns(spec) {
    const [data, series, bands, told] = [[spec.x], [{}], [], []];
    const add = (values, options) => data.push(values) && series.push(options) - 1;
    spec.lines.forEach((line, n) => {
      const colour = css("--c" + (n % 9));
      const entry = { label: line.label };
      if (line.high) {
        const edge = { stroke: "transparent", width: 0, points: { show: false }, spanGaps: true };
        entry.high = add(line.high, edge);
        entry.low = add(line.low, { ...edge });
        bands.push({ series: [entry.high, entry.low], fill: colour + "38" });
      }
      const paths = spec.step ? uPlot.paths.stepped({ align: 1 }) : undefined;
      entry.y = add(line.y, { stroke: colour, width: 2, spanGaps: true, paths, points: { show: line.points, size: 6, fill: colour } });
      if (line.paper) {
        const points = { show: true, paths: triangles, stroke: colour, width: 2 };
        entry.paper = add(line.paper, { stroke: colour, paths: () => null, points });
      }
      told.push(entry);
    });
    return { data, series, bands, told };
  }

  function nearest(column, i) {
    for (let d = 0; d < column.length; d++) {
      if (column[i - d] != null) return i - d;
      if (column[i + d] != null) return i + d;
    }
    return null;
  }

  function text(spec, u, told, i) {
    const lines = told.map(({ label, y, low, high, paper }) => {
      const k = nearest(u.data[y], i);
      const far = k == null || (spec.x.length > 1 && k !== i && Math.abs(u.data[0][k] - u.data[0][i]) > (u.scales.x.max - u.scales.x.min) / 25);
      const band = low && !far ? ` [${short(u.data[low][k])}, ${short(u.data[high][k])}]` : "";
      const ours = far ? "" : short(u.data[y][k]) + band;
      const theirs = paper && u.data[paper][i] != null ? ` paper ${short(u.data[paper][i])}` : "";
      return ours || theirs ? `${label}: ${ours}${theirs}` : null;
    });
    return [`${spec.xLabel}: ${short(u.data[0][i])}`, ...lines.filter(Boolean)].join("\n");
  }

  function axes(spec) {
    const [ink, grid] = [css("--ink"), css("--grid")];
    const axis = { stroke: ink, font: "13px system-ui, sans-serif", labelFont: "13px system-ui, sans-serif", ticks: { stroke: grid }, grid: { stroke: grid, width: 1 } };
    const values = (_, all) => all.map(short);
    return [{ ...axis, label: spec.xLabel, values }, { ...axis, label: spec.yLabel, size: 62, values }];
  }

  function level(spec) {
    return (u) => {
      if (spec.level == null) return;
      const y = u.valToPos(spec.level, "y", true);
      u.ctx.save();
      u.ctx.strokeStyle = css("--ink");
      u.ctx.setLineDash([8, 6]);
      u.ctx.beginPath();
      u.ctx.moveTo(u.bbox.left, y);
      u.ctx.lineTo(u.bbox.left + u.bbox.width, y);
      u.ctx.stroke();
      u.ctx.restore();
    };
  }

  function make(figure) {
    const spec = JSON.parse(figure.querySelector("script").textContent);
    const chart = figure.querySelector(".chart");
    chart.querySelector(".live")?.remove();
    const holder = document.createElement("div");
    holder.className = "live";
    chart.prepend(holder);
    const { data, series, bands, told } = columns(spec);
    const all = [spec.x[0], spec.x.at(-1)];
    const top = (max) => spec.yMax ?? (max > 0 ? max * 1.06 : max + 1);
    const y = (_, min, max) => (spec.log[1] ? [min / 1.1, spec.yMax ?? max * 1.1] : [Math.min(0, min), top(Math.max(max, spec.level ?? max))]);
    const size = () => ({ width: holder.clientWidth, height: Math.max(240, Math.min(400, holder.clientWidth * 0.55)) });
    const scale = (log) => (log ? { distr: 3 } : {});
    const u = new uPlot({
      ...size(), series, bands, axes: axes(spec),
      scales: { x: { time: false, ...scale(spec.log[0]) }, y: { range: y, ...scale(spec.log[1]) } },
      cursor: { drag: { x: true, y: false }, points: { size: 7 } },
      hooks: {
        draw: [level(spec)],
        setCursor: [(u) => {
          const { idx, left, top } = u.cursor;
          const box = u.over.getBoundingClientRect();
          if (idx == null || left < 0) tell("");
          else tell(text(spec, u, told, idx), box.left + left, box.top + top);
        }],
        setScale: [(u, key) => key === "x" && (figure.dataset.zoom = [u.scales.x.min, u.scales.x.max].join(" "))],
      },
    }, data, holder);
    tools(u, holder, all);
    touch(u);
    new ResizeObserver(() => u.width !== holder.clientWidth && u.setSize(size())).observe(holder);
  }

  // A mouse selects; these are for fingers and keyboards.
  function tools(u, holder, [first, last]) {
    const box = document.createElement("div");
    box.className = "tools";
    const zoom = (factor) => () => {
      const { min, max } = u.scales.x;
      const [middle, half] = [(min + max) / 2, ((max - min) / 2) * factor];
      u.setScale("x", { min: Math.max(first, middle - half), max: Math.min(last, middle + half) });
    };
    for (const [label, name, act] of [["+", "zoom in", zoom(0.5)], ["−", "zoom out", zoom(2)], ["all", "whole figure", () => u.setScale("x", { min: first, max: last })]]) {
      const button = document.createElement("button");
      button.textContent = label;
      button.title = name;
      button.addEventListener("click", act);
      box.append(button);
    }
    holder.append(box);
  }

  // A finger that moves sideways reads the values.
  function touch(u) {
    const read = (e) => {
      const box = u.over.getBoundingClientRect();
      const { clientX, clientY } = e.touches[0];
      u.setCursor({ left: clientX - box.left, top: clientY - box.top });
    };
    u.over.addEventListener("touchstart", read, { passive: true });
    u.over.addEventListener("touchmove", read, { passive: true });
  }

  const figures = [...document.querySelectorAll("figure")].filter((f) => f.querySelector("script"));
  const near = new IntersectionObserver((seen) => {
    for (const { target, isIntersecting } of seen) {
      if (!isIntersecting) continue;
      near.unobserve(target);
      make(target);
      target.dataset.live = "yes";
    }
  }, { rootMargin: "600px" });
  figures.forEach((f) => near.observe(f));
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => figures.filter((f) => f.dataset.live).forEach(make));
})();
