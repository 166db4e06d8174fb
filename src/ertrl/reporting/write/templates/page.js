// The page works without this: it marks where the reader is, and opens the latent explorers.
"use strict";

const links = new Map([...document.querySelectorAll("nav a")].map((a) => [a.hash.slice(1), a]));
const watcher = new IntersectionObserver((entries) => {
  for (const entry of entries) {
    if (!entry.isIntersecting || !links.has(entry.target.id)) continue;
    links.forEach((a, id) => a.classList.toggle("here", id === entry.target.id));
  }
}, { rootMargin: "-20% 0px -70% 0px" });
document.querySelectorAll("section[id]").forEach((section) => watcher.observe(section));

// Say where something is wider than the window; a dotted line alone is easily overlooked.
const boxes = [...document.querySelectorAll(".scroll")];
const measure = () => boxes.forEach((b) => b.classList.toggle("wider", b.scrollWidth > b.clientWidth + 2));
addEventListener("resize", measure);
document.addEventListener("toggle", measure, true);

const SVG = document.querySelector("svg").namespaceURI;
const WIDTH = 720, HEIGHT = 470;
const FRAME = { left: 52, right: 700, top: 14, bottom: 372 };
const SHAPES = [
  "M-4,0a4,4 0 1 0 8,0a4,4 0 1 0 -8,0z", "M0,-5.5L5.5,0L0,5.5L-5.5,0z", "M0,-5L5,4L-5,4z",
  "M0,5L5,-4L-5,-4z",
];
const CROSS = "M-4,-4L4,4M-4,4L4,-4";

function element(name, attributes, parent, text) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  if (text !== undefined) made.textContent = text;
  parent.append(made);
  return made;
}

function chooser(box, title, choices, changed) {
  const label = document.createElement("label");
  const select = document.createElement("select");
  for (const choice of choices) select.append(new Option(choice));
  select.addEventListener("change", changed);
  label.append(title + " ", select);
  box.append(label);
  return select;
}

// Round numbers between two ends, about five of them.
function ticks(low, high) {
  const rough = (high - low) / 5 || 1, power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((m) => m * power).find((s) => s >= rough);
  const found = [];
  for (let i = Math.ceil(low / step); i * step <= high; i++) found.push(i * step);
  return found.map((x) => [x, x.toPrecision(3).replace(/\.?0+(?=$|e)/, "").replace("-", "\u2212")]);
}

// What colours and shapes mean, below the axes.
function drawKey(svg, data, crosses) {
  const { colours, ends, label } = data.key, left = FRAME.left, y = HEIGHT - 44, each = 14;
  colours.forEach((colour, i) =>
    element("rect", { x: left + i * each, y: y, width: each + 0.5, height: 10, fill: colour }, svg));
  element("text", { x: left, y: y + 25 }, svg, ends[0]);
  const end = { x: left + colours.length * each, y: y + 25, "text-anchor": "end" };
  element("text", end, svg, ends[1]);
  element("text", { x: left + colours.length * each + 10, y: y + 10, class: "title" }, svg, label);
  let x = 400;
  data.groups.concat(crosses ? ["own (online) context"] : []).forEach((name, i) => {
    const cross = i === data.groups.length, line = Math.floor(i / 2);
    const look = cross ? { stroke: "var(--muted)", "stroke-width": 2 } : { fill: "var(--muted)" };
    const at = `translate(${x + 160 * (i % 2)},${y + 5 + 20 * line})`;
    element("path", { d: cross ? CROSS : SHAPES[i % SHAPES.length], transform: at, ...look }, svg);
    element("text", { x: x + 160 * (i % 2) + 10, y: y + 9 + 20 * line }, svg, name);
  });
}

function explore(box) {
  const data = JSON.parse(box.querySelector("script").textContent);
  const controls = document.createElement("p");
  const svg = document.createElementNS(SVG, "svg");
  const readout = document.createElement("p");
  svg.setAttribute("viewBox", `0 0 ${WIDTH} ${HEIGHT}`);
  svg.setAttribute("role", "application");
  svg.setAttribute("tabindex", "0");
  svg.setAttribute("aria-label", "Latent space, point by point; arrow keys go from task to task");
  readout.className = "fine";
  readout.setAttribute("aria-live", "polite");
  const distinct = (values) => [...new Set(values)];
  const method = chooser(controls, "method", distinct(data.runs.map((r) => r.label)), draw);
  const seed = chooser(controls, "seed", distinct(data.runs.map((r) => String(r.seed))), draw);
  const hint = "Point at a mark, or go from task to task with the arrow keys: all its contexts light up.";
  let chosen = null;

  function light(task) {
    chosen = task;
    svg.classList.toggle("lit", task !== null);
    for (const mark of svg.querySelectorAll(".marks path")) {
      mark.classList.toggle("on", mark.dataset.task === String(task));
    }
    const t = task === null ? null : data.tasks[task];
    readout.textContent =
      t ? `Task ${t.task}, ${data.groups[t.group]}, ${data.key.label} ${t.value}` : hint;
  }

  function draw() {
    const run = data.runs.find((r) => r.label === method.value && String(r.seed) === seed.value);
    svg.replaceChildren();
    light(null);
    if (!run) {
      readout.textContent = "This method has no such seed.";
      return;
    }
    const all = run.offline.flat().concat(run.online || []);
    const middle = [0, 1].map((i) => {
      const one = all.map((p) => p[i]);
      return [(Math.min(...one) + Math.max(...one)) / 2, Math.max(...one) - Math.min(...one) || 1];
    });
    const size = [FRAME.right - FRAME.left, FRAME.bottom - FRAME.top];
    const scale = Math.min(...middle.map(([, span], i) => (size[i] - 30) / span));
    const centre = [(FRAME.left + FRAME.right) / 2, (FRAME.top + FRAME.bottom) / 2];
    const place = ([x, y]) =>
      [centre[0] + scale * (x - middle[0][0]), centre[1] - scale * (y - middle[1][0])];
    element("rect", { x: FRAME.left, y: FRAME.top, width: size[0], height: size[1], class: "frame", fill: "none" }, svg);
    const reach = (i) => [-1, 1].map((side) => middle[i][0] + side * size[i] / 2 / scale);
    for (const [value, text] of ticks(...reach(0))) {
      element("text", { x: place([value, 0])[0], y: FRAME.bottom + 16, "text-anchor": "middle" }, svg, text);
    }
    for (const [value, text] of ticks(...reach(1))) {
      element("text", { x: FRAME.left - 6, y: place([0, value])[1] + 4, "text-anchor": "end" }, svg, text);
    }
    const [first, second] = run.shares, high = centre[1];
    const below = { x: centre[0], y: FRAME.bottom + 34, "text-anchor": "middle", class: "title" };
    element("text", below, svg, `first component of z (${first} of variance)`);
    const beside = { transform: `translate(14,${high}) rotate(-90)`, "text-anchor": "middle", class: "title" };
    element("text", beside, svg, `second (${second})`);
    drawKey(svg, data, run.online);
    const marks = element("g", { class: "marks" }, svg);
    const mark = (point, task, shape, style) => {
      const at = place(point).map((v) => v.toFixed(1)).join(",");
      const made = element("path", { d: shape, transform: `translate(${at})`, ...style }, marks);
      made.dataset.task = task;
      made.addEventListener("pointerenter", () => light(task));
    };
    run.offline.forEach((points, task) => points.forEach((p) =>
      mark(p, task, SHAPES[data.tasks[task].group % SHAPES.length],
        { fill: data.tasks[task].colour, stroke: "var(--muted)", "stroke-width": 0.4 })));
    (run.online || []).forEach((p, task) =>
      mark(p, task, CROSS, { stroke: data.tasks[task].colour, "stroke-width": 2, fill: "none" }));
  }

  const steps = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 };
  svg.addEventListener("keydown", (event) => {
    const count = data.tasks.length;
    if (event.key === "Escape") light(null);
    if (!(event.key in steps)) return;
    event.preventDefault();
    const from = chosen === null ? (steps[event.key] > 0 ? -1 : count) : chosen;
    light((from + steps[event.key] + count) % count);
  });
  svg.addEventListener("pointerleave", () => light(null));
  const frame = document.createElement("div");
  frame.className = "scroll";
  frame.append(svg);
  boxes.push(frame);
  box.append(controls, frame, readout);
  box.hidden = false;
  draw();
}
document.querySelectorAll(".explorer").forEach(explore);
measure();
