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

const SVG = document.querySelector("svg").namespaceURI;
const WIDTH = 720, HEIGHT = 420, MARGIN = 24;
const SHAPES = [
  "M-4,0a4,4 0 1 0 8,0a4,4 0 1 0 -8,0z", "M0,-5.5L5.5,0L0,5.5L-5.5,0z", "M0,-5L5,4L-5,4z",
  "M0,5L5,-4L-5,-4z",
];
const CROSS = "M-4,-4L4,4M-4,4L4,-4";

function element(name, attributes, parent) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
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

function explore(box) {
  const data = JSON.parse(box.querySelector("script").textContent);
  const controls = document.createElement("p");
  const svg = document.createElementNS(SVG, "svg");
  const readout = document.createElement("p");
  svg.setAttribute("viewBox", `0 0 ${WIDTH} ${HEIGHT}`);
  svg.setAttribute("role", "img");
  svg.setAttribute("aria-label", "Latent space, point by point");
  readout.className = "fine";
  const distinct = (values) => [...new Set(values)];
  const method = chooser(controls, "method", distinct(data.runs.map((r) => r.label)), draw);
  const seed = chooser(controls, "seed", distinct(data.runs.map((r) => String(r.seed))), draw);
  const crosses = data.runs.some((r) => r.online) ? " Filled: offline context; cross: online." : "";
  const hint = "Point at a mark, and all contexts of its task light up." + crosses;

  function light(task) {
    svg.classList.toggle("lit", task !== null);
    for (const mark of svg.querySelectorAll("path")) {
      mark.classList.toggle("on", mark.dataset.task === String(task));
    }
    const t = task === null ? null : data.tasks[task];
    readout.textContent = t ? `Task ${t.task}, ${t.group}, ${data.axis} ${t.value}` : hint;
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
    const xs = all.map((p) => p[0]), ys = all.map((p) => p[1]);
    const low = [Math.min(...xs), Math.min(...ys)], high = [Math.max(...xs), Math.max(...ys)];
    const scale = Math.min(
      (WIDTH - 2 * MARGIN) / (high[0] - low[0] || 1), (HEIGHT - 2 * MARGIN) / (high[1] - low[1] || 1));
    const mark = (point, task, shape, style) => {
      const x = WIDTH / 2 + scale * (point[0] - (low[0] + high[0]) / 2);
      const y = HEIGHT / 2 - scale * (point[1] - (low[1] + high[1]) / 2);
      const made = element("path", { d: shape, transform: `translate(${x.toFixed(1)},${y.toFixed(1)})`, ...style }, svg);
      made.dataset.task = task;
      made.addEventListener("pointerenter", () => light(task));
    };
    run.offline.forEach((points, task) => points.forEach((p) =>
      mark(p, task, SHAPES[data.tasks[task].shape % SHAPES.length], { fill: data.tasks[task].colour })));
    (run.online || []).forEach((p, task) =>
      mark(p, task, CROSS, { stroke: data.tasks[task].colour, "stroke-width": 2, fill: "none" }));
  }

  svg.addEventListener("pointerleave", () => light(null));
  box.append(controls, svg, readout);
  box.hidden = false;
  draw();
}
document.querySelectorAll(".explorer").forEach(explore);
