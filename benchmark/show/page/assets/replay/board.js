// A board as SVG: every character a cell in the game's colour, with its letter, so that colour is never all there is.

const CELL = 32;
const EMPTY = new Set(["_", ".", " "]);

function drawBoard(text, before, scenario, label) {
  const rows = text.split("\n").map((row) => [...row]);
  const old = before === null ? null : before.split("\n").map((row) => [...row]);
  const width = Math.max(...rows.map((row) => row.length));
  const height = rows.length;
  const axes = Math.max(width, height) <= 20;
  const [columnNames, rowNames] = namesOf(rows, scenario);
  const margin = axes ? 18 : 0;
  const board = svg("svg", {
    class: "board",
    width: Math.min(400, width * 64 + margin),
    viewBox: `${-margin} 0 ${width * CELL + margin} ${height * CELL + margin}`,
    role: "img",
    "aria-label": `${label} ${describe(rows, scenario)}`,
  });
  rows.forEach((row, top) => {
    row.forEach((character, left) => {
      const changed = old !== null && old[top] !== undefined && old[top][left] !== character;
      board.append(drawCell(character, left * CELL, top * CELL, changed, scenario));
    });
    if (axes) board.append(axisLabel(-margin / 2, (top + 0.5) * CELL, rowNames[top]));
  });
  for (let left = 0; axes && left < width; left += 1) {
    board.append(axisLabel((left + 0.5) * CELL, height * CELL + margin / 2 + 1, columnNames[left]));
  }
  return board;
}

function drawCell(character, x, y, changed, scenario) {
  const empty = EMPTY.has(character);
  const colour = scenario.palette[character];
  const rect = { x: x + 1.5, y: y + 1.5, width: CELL - 3, height: CELL - 3, rx: 5 };
  const cell = svg("g", {}, svg("rect", { ...rect, class: empty ? "cell-empty" : colour ? null : "cell" }));
  if (!empty && colour) {
    cell.firstChild.setAttribute("fill", `rgb(${colour.map(Number).join(" ")})`);
  }
  if (!empty) {
    const dark = !colour || luminance(colour) < 0.18;
    const at = { x: x + CELL / 2, y: y + CELL / 2, class: dark ? "glyph glyph-light" : "glyph glyph-dark" };
    cell.append(svg("text", at, visible(character)));
  }
  if (changed) cell.append(svg("rect", { ...rect, class: "cell-changed" }));
  return cell;
}

const axisLabel = (x, y, name) => svg("text", { class: "axis", x, y, "aria-hidden": "true" }, visible(name || ""));

// The names of the columns and rows, as the observations have them: of most games numbers, from (0, 0) at the bottom left.
function namesOf(rows, scenario) {
  if (scenario.board_labels) return scenario.board_labels;
  const width = Math.max(...rows.map((row) => row.length));
  return [[...Array(width).keys()].map(String), rows.map((_, top) => String(rows.length - 1 - top))];
}

// Relative luminance, 0 to 1 (WCAG 2).
function luminance([red, green, blue]) {
  const linear = (value) => (value <= 10 ? value / 3294 : ((value / 255 + 0.055) / 1.055) ** 2.4);
  return 0.2126 * linear(red) + 0.7152 * linear(green) + 0.0722 * linear(blue);
}

// The board in words, with the names of cells that the observations use: "(0, 0)", "a1".
function describe(rows, scenario) {
  const places = new Map();
  const [columnNames, rowNames] = namesOf(rows, scenario);
  const cell = (left, top) => {
    const [column, row] = [columnNames[left] || "", rowNames[top] || ""];
    if (!column && left && columnNames[left - 1]) return `right of ${cell(left - 1, top)}`;  // a wall between two cells
    return /\D/.test(column) ? column + row : `(${column}, ${row})`;
  };
  rows.forEach((row, top) =>
    row.forEach((character, left) => {
      if (EMPTY.has(character)) return;
      if (!places.has(character)) places.set(character, []);
      places.get(character).push(cell(left, top));
    }),
  );
  const parts = [...places].map(([character, at]) => `${scenario.legend[character] || character} at ${at.join(", ")}`);
  return parts.length ? parts.join("; ") : "empty";
}

// `named` puts the agents' names into what a character stands for.
function drawLegend(boards, scenario, named = (text) => text) {
  const used = new Set(boards.flatMap((board) => [...board.replaceAll("\n", "")]));
  const known = Object.keys(scenario.legend).filter((character) => used.has(character));
  if (!known.length) return null;
  return el(
    "ul",
    { class: "legend", "aria-label": "Key" },
    known.map((character) => {
      const swatch = svg("svg", { viewBox: `0 0 ${CELL} ${CELL}`, class: "swatch", "aria-hidden": "true" });
      swatch.append(drawCell(character, 0, 0, false, scenario));
      return el("li", {}, swatch, el("span", {}, foreign(named(scenario.legend[character]))));
    }),
  );
}
