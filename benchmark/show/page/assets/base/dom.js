// Building blocks. Text from the document reaches the page through text nodes and attributes only.

const MINUS = "\u2212";
const DASH = "\u2013";
const SVG = "http://www.w3.org/2000/svg";

const byId = (id) => document.getElementById(id);

// el("p", {class: "note", onclick: f}, "text", node, ...): false, null and undefined are left out.
function el(tag, attributes, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

function svg(tag, attributes, ...children) {
  return fill(document.createElementNS(SVG, tag), attributes, children);
}

function fill(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes || {})) {
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (value === true) node.setAttribute(name, "");
    else if (value !== false && value !== null && value !== undefined) node.setAttribute(name, value);
  }
  for (const child of children.flat(Infinity)) {
    if (child !== false && child !== null && child !== undefined) node.append(child);
  }
  return node;
}

// Puts these children in place of the ones that node has, left out as in el().
const refill = (node, ...children) => {
  node.replaceChildren();
  return fill(node, null, children);
};

// What would be invisible is shown: control characters as their pictures (U+2400 ...), what reorders text as its code.
// Line breaks and tabs stay.
function visible(text) {
  return text
    .replace(/[\u0000-\u0008\u000b\u000c\u000e-\u001f]/g, (c) => String.fromCharCode(0x2400 + c.charCodeAt(0)))
    .replace(/\u007f/g, "\u2421")
    .replace(/[\u202a-\u202e\u2066-\u2069]/g, (c) => `[U+${c.charCodeAt(0).toString(16).toUpperCase()}]`)
    .replace(/[\u2028\u2029]/g, "\u21b5\n");
}

// Text that somebody else wrote: set apart, so that right-to-left marks in it reorder nothing around it.
const foreign = (text, attributes) => el("bdi", attributes, visible(text));

function number(value, digits = 2) {
  const text = value.toFixed(digits);
  return Number(text) === 0 ? text.replace("-", "") : text.replace("-", MINUS);
}

// A return or reward: whole numbers without a fraction, others with at most three digits.
function points(value) {
  return String(Math.round(value * 1000) / 1000).replace("-", MINUS);
}

const signed = (value, form) => (value > 0 ? "+" : "") + form(value);

const plural = (count, word) => `${count} ${word}${count === 1 ? "" : "s"}`;

function pValue(p) {
  return p < 0.001 ? "< 0.001" : p.toFixed(3);
}

function select(id, label, options, chosen, onchange) {
  const field = el("select", { id, onchange: (event) => onchange(event.target.value) });
  for (const option of options) {
    const [value, text] = Array.isArray(option) ? option : [option, option];
    field.append(el("option", { value, selected: value === chosen }, visible(text)));
  }
  field.value = chosen;
  return el("p", { class: "field" }, el("label", { for: id }, label), field);
}

// An interval bar on a scale from low to high, with a dashed line at zero.
function intervalBar(estimate, low, high) {
  const span = high - low || 1;
  const place = (value) => 2 + (96 * (value - low)) / span;
  const path = (name, d) => svg("path", { class: name, d });
  const start = estimate.low === null ? estimate.value : estimate.low;
  const end = estimate.high === null ? estimate.value : estimate.high;
  return svg(
    "svg",
    { class: "bar", viewBox: "0 0 100 16", preserveAspectRatio: "none", "aria-hidden": "true" },
    path(null, "M2 8H98"),
    path("mark", `M${place(0)} 1V15`),
    path("interval-line", `M${place(start)} 8H${place(end)}`),
    path("point", `M${place(estimate.value)} 3V13`),
  );
}
