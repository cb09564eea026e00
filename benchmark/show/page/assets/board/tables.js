// Sortable tables. Rows without a value stay at the bottom in both directions; equal rows keep their order.

const collator = new Intl.Collator(undefined, { numeric: true });

const opposite = (direction) => (direction === "descending" ? "ascending" : "descending");

// Sorts items by value(item): text by the reader's language, numbers by size, null last.
function sortItems(items, value, direction) {
  const sign = direction === "descending" ? -1 : 1;
  return [...items].sort((a, b) => {
    const [left, right] = [value(a), value(b)];
    if (left === null || right === null) return (left === null) - (right === null);
    return sign * (typeof left === "string" ? collator.compare(left, right) : left - right);
  });
}

const placeOf = (table, key) => [...table.tHead.rows[0].cells].findIndex((head) => head.dataset.key === key);

// Sorts the rows of a table that came with the page.
function sortRows(table, key, direction) {
  const place = placeOf(table, key);
  const head = table.tHead.rows[0].cells[place];
  const words = key !== "rank" && (head.classList.contains("lead") || head.classList.contains("text"));
  const value = (row) => {
    const { sort } = row.cells[place].dataset;
    if (sort === undefined) return null;
    return words ? sort : Number(sort);
  };
  table.tBodies[0].append(...sortItems(table.tBodies[0].rows, value, direction));
}

// Marks the sorted column, in the header and in the list above the table that stands for it on a narrow screen.
function markSorted(table, key, direction) {
  for (const head of table.tHead.rows[0].cells) {
    if (head.dataset.key === key) head.setAttribute("aria-sort", direction);
    else head.removeAttribute("aria-sort");
  }
  table.previousElementSibling.querySelector("select").value = key;
  // a narrow screen shows this column beside the rank and the name
  const head = table.tHead.rows[0].cells[placeOf(table, key)];
  if (!head.classList.contains("lead")) table.dataset.column = placeOf(table, key) + 1;
  // agents of one rank stand together only as long as the ranks are in order
  if (table.querySelector("tr.tie")) table.toggleAttribute("data-ranked", key === "rank" && direction === "ascending");
}

// order(key, direction) puts the rows in order; then(key, direction) learns what the reader chose.
function makeSortable(table, order, then = () => {}) {
  const heads = [...table.tHead.rows[0].cells];
  const sort = (key, direction) => {
    order(key, direction);
    markSorted(table, key, direction);
    const label = heads.find((head) => head.dataset.key === key).textContent;
    announce(`${table.caption.textContent}, sorted by ${label}, ${direction}`);
    then(key, direction);
  };
  for (const head of heads) {
    head.firstElementChild.addEventListener("click", () => {
      const now = head.getAttribute("aria-sort");
      sort(head.dataset.key, now ? opposite(now) : head.dataset.first);
    });
  }
  const bar = table.previousElementSibling;
  bar.querySelector("select").addEventListener("change", (event) => {
    const head = heads.find((candidate) => candidate.dataset.key === event.target.value);
    sort(head.dataset.key, head.dataset.first);
  });
  bar.querySelector("button").addEventListener("click", () => {
    const head = heads.find((candidate) => candidate.hasAttribute("aria-sort")) || heads[0];
    sort(head.dataset.key, opposite(head.getAttribute("aria-sort") || head.dataset.first));
  });
}

// A sortable table of items, with a header cell in the first column. Columns: {key, label, first, value, show, bar}.
// At most `limit` rows are in the page; sorting is over all of them.
function itemTable(name, caption, columns, items, limit = 100) {
  const heads = columns.map(({ key, label, first, bar: drawn }) => {
    const data = { "data-key": key, "data-first": first || "descending" };
    const attributes = { scope: "col", class: key === columns[0].key ? "lead" : drawn ? "with-bar" : null, ...data };
    return el("th", attributes, el("button", { type: "button" }, label));
  });
  const narrow = 1 + Math.max(1, columns.findIndex((column) => column.bar || column.narrow));
  const body = el("tbody");
  const table = el(
    "table",
    { class: "sortable", "data-table": name, "data-column": narrow },
    el("caption", {}, caption),
    el("thead", {}, el("tr", {}, heads)),
    body,
  );
  const options = columns.map((column) => el("option", { value: column.key }, column.label));
  const bar = el(
    "div",
    { class: "sort-by" },
    el("label", {}, "Show ", el("select", {}, options)),
    el("button", { type: "button", class: "flip" }, "Reverse"),
  );
  let sorted = items;
  let shown = limit;
  const more = el("button", { type: "button", class: "more", onclick: () => draw((shown += 500)) });
  const draw = () => {
    body.replaceChildren(...sorted.slice(0, shown).map((item) => itemRow(columns, item)));
    more.hidden = shown >= sorted.length;
    more.textContent = `Show more (${sorted.length - shown} left)`;
  };
  const order = (key, direction) => {
    sorted = sortItems(items, columns.find((column) => column.key === key).value, direction);
    draw();
  };
  draw();
  const box = el("div", { class: "wide" }, bar, table, more);
  makeSortable(table, order);
  markSorted(table, columns[0].key, columns[0].first || "descending");
  return box;
}

function itemRow(columns, item) {
  const cells = columns.map((column, place) => {
    const attributes = place === 0 ? { scope: "row", class: "lead" } : { class: column.bar ? "with-bar" : null };
    return el(place === 0 ? "th" : "td", { ...attributes, "data-key": column.key }, column.show(item));
  });
  return el("tr", {}, cells);
}
