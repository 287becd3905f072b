"use strict";
// Values under the pointer, copies of tables, and all switches at once. The
// page stands without this script: points have titles and switches are styles.

const tip = document.body.appendChild(document.createElement("div"));
tip.className = "tip";
tip.hidden = true;

function element(parent, name, text, style) {
  const made = parent.appendChild(document.createElement(name));
  made.textContent = text;
  if (style) made.className = style;
  return made;
}

// The points of a chart. Their titles would be shown beside our own box.
function pointsOf(chart) {
  return Array.from(chart.querySelectorAll("circle"), circle => {
    const title = circle.querySelector("title");
    const [name, x, y] = title.textContent.split("\n");
    circle.setAttribute("aria-label", `${name}, ${x}, ${y}`);
    title.remove();
    return {circle, name, x, y, curve: circle.parentNode,
            cx: +circle.getAttribute("cx"), cy: +circle.getAttribute("cy")};
  });
}

function visible(points) {
  const hidden = new Map();
  return points.filter(({curve}) => {
    if (!hidden.has(curve))
      hidden.set(curve, getComputedStyle(curve).display === "none");
    return !hidden.get(curve);
  });
}

// Puts the box beside a point, or on a narrow page above or below it.
function place(at) {
  const away = 14, width = tip.offsetWidth, height = tip.offsetHeight;
  const before = at.left - away - width, after = at.right + away;
  const beside = after + width <= innerWidth ? after : before;
  const above = at.top - away - height;
  const left = beside >= 0 ? beside
    : Math.max(4, Math.min(at.left, innerWidth - width - 4));
  const top = beside >= 0
    ? Math.max(4, Math.min(at.top, innerHeight - height - 8))
    : above >= 0 ? above : at.bottom + away;
  tip.style.left = left + "px";
  tip.style.top = top + "px";
}

function watch(chart) {
  const points = pointsOf(chart);
  const cross = document.createElementNS(chart.namespaceURI, "path");
  cross.setAttribute("class", "cross");
  let near = null;

  function hide() {
    if (near) near.circle.classList.remove("near");
    near = null;
    cross.remove();
    tip.hidden = true;
  }

  // Shows a point, and those of the other curves at the same x.
  function show(point) {
    hide();
    near = point;
    near.circle.classList.add("near");
    const box = chart.viewBox.baseVal;
    cross.setAttribute("d", `M${point.cx} 12V${box.height - 44}`);
    chart.insertBefore(cross, chart.querySelector(".curve"));
    const same = visible(points)
      .filter(other => Math.abs(other.cx - point.cx) < 0.2)
      .sort((a, b) => a.cy - b.cy);
    tip.replaceChildren();
    element(tip, "b", point.x);
    for (const other of same) {
      const line = element(tip, "div", "",
                           other.curve.getAttribute("class"));
      if (other === point) line.classList.add("on");
      element(line, "span", other.name);
      element(line, "span", other.y);
    }
    tip.hidden = false;
    place(point.circle.getBoundingClientRect());
  }

  chart.addEventListener("pointermove", event => {
    const at = new DOMPoint(event.clientX, event.clientY)
      .matrixTransform(chart.getScreenCTM().inverse());
    let best = null, least = Infinity;
    for (const point of visible(points)) {
      const away = Math.hypot(point.cx - at.x, point.cy - at.y);
      if (away < least) [best, least] = [point, away];
    }
    if (best && best !== near) show(best);
  });
  chart.addEventListener("pointerleave", hide);
  chart.addEventListener("blur", hide);
  chart.tabIndex = 0;
  chart.addEventListener("keydown", event => {
    const step = {ArrowRight: 1, ArrowLeft: -1}[event.key];
    const shown = visible(points);
    if (!step || !shown.length) return;
    event.preventDefault();
    const i = shown.indexOf(near) + step;
    show(shown[(i + shown.length) % shown.length]);
  });
}

// A chart as wide as the page, with fine lines.
function addEnlarge(chart) {
  const figure = chart.closest("figure");
  const button = element(figure.querySelector("figcaption"), "button",
                         "enlarge");
  button.addEventListener("click", () => {
    const big = figure.classList.toggle("big");
    button.textContent = big ? "reduce" : "enlarge";
    figure.scrollIntoView({block: "nearest"});
  });
}

// Cells divided by tabs, as spreadsheets take them.
function tableText(table) {
  return Array.from(table.rows, row =>
    Array.from(row.cells, cell => cell.textContent).join("\t")).join("\n");
}

function copyByHand(text) {
  const field = element(document.body, "textarea", text);
  field.select();
  document.execCommand("copy");
  field.remove();
}

function addCopy(scroll) {
  const bar = document.createElement("div");
  bar.className = "copy";
  scroll.before(bar);
  const button = element(bar, "button", "copy table");
  button.addEventListener("click", async () => {
    const text = tableText(scroll.querySelector("table"));
    try {
      await navigator.clipboard.writeText(text);
    } catch {
      copyByHand(text);
    }
    button.textContent = "copied";
    setTimeout(() => { button.textContent = "copy table"; }, 1500);
  });
}

function addSwitches(list) {
  const boxes = Array.from(list.querySelectorAll("input"));
  const bar = document.createElement("div");
  bar.className = "all";
  list.before(bar);
  for (const [text, on] of [["all", true], ["none", false]]) {
    element(bar, "button", text).addEventListener("click", () => {
      for (const box of boxes) box.checked = on;
    });
  }
  for (const box of boxes) {
    box.closest("label").title = "double click: only this one";
    box.closest("label").addEventListener("dblclick", () => {
      for (const other of boxes) other.checked = other === box;
    });
  }
}

// Links to the sections, below the switches.
function addLinks(nav) {
  element(nav, "h2", "Sections");
  const list = element(nav, "ul", "", "links");
  for (const heading of document.querySelectorAll("main h2")) {
    const item = element(list, "li", "");
    element(item, "a", heading.textContent).href = "#" + heading.id;
  }
}

document.querySelectorAll(".chart").forEach(watch);
document.querySelectorAll(".chart").forEach(addEnlarge);
document.querySelectorAll(".scroll").forEach(addCopy);
document.querySelectorAll(".switches").forEach(addSwitches);
document.querySelectorAll("nav").forEach(addLinks);
