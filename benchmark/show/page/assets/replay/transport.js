// Stepping through a replay: buttons, slider, speed, keys.

// Buttons, slider and count; one for both sides.
function makeTransport(last) {
  const button = (id, label, act) => el("button", { type: "button", id, onclick: act }, label);
  const first = button("step-first", "First", () => showStep(0));
  const back = button("step-back", "Back", () => showStep(replay.step - 1));
  const play = button("step-play", "Play", () => (playing ? stopPlaying() : startPlaying()));
  const next = button("step-next", "Next", () => showStep(replay.step + 1));
  const end = button("step-last", "Last", () => showStep(replay.last));
  const slider = el("input", {
    id: "step-slider",
    type: "range",
    min: 0,
    max: last,
    value: 0,
    "aria-label": "Round",
    oninput: (event) => showStep(Number(event.target.value)),
  });
  const count = el("span", { class: "count" });
  const quicker = (event) => {
    speed = Number(event.target.value);
    if (playing) startPlaying();
  };
  const speeds = el("select", { id: "step-speed", "aria-label": "Speed", onchange: quicker });
  speeds.append(...SPEEDS.map((value) => el("option", { value, selected: value === speed }, `${value}\u00d7`)));
  const bar = el(
    "div",
    { class: "transport", role: "group", "aria-label": "Stepping" },
    el("div", { class: "buttons" }, first, back, play, next, end, speeds),
    slider,
    count,
  );
  const keys = (...names) => names.map((name) => [el("kbd", {}, name), " "]);
  const help = el(
    "p",
    { class: "note keys" },
    ["Keys: ", keys("Left", "Right"), "one round, ", keys("Home", "End"), "first and last, "],
    [keys("Shift"), "with ", keys("Left", "Right"), "previous and next seed."],
  );
  return { help, bar, first, back, play, next, end, slider, count };
}

function showStep(step, moved = true) {
  const { last, transport, sides } = replay;
  replay.step = Math.min(last, Math.max(0, step));
  const now = replay.step;
  transport.slider.value = now;
  transport.slider.setAttribute("aria-valuetext", now === last ? `end, after ${plural(last, "round")}` : `round ${now + 1} of ${last}`);
  transport.count.textContent = now === last ? `End, ${plural(last, "round")}` : `Round ${now + 1} of ${last}`;
  // aria-disabled keeps the focus where it is when a button comes to its end
  for (const name of ["first", "back"]) transport[name].setAttribute("aria-disabled", String(now === 0));
  for (const name of ["next", "end"]) transport[name].setAttribute("aria-disabled", String(now === last));
  const told = sides.map((side) => side.show(now)).filter(Boolean);
  if (!moved) return;
  announce(`${transport.count.textContent}. ${told.join(" ")}`);
  rememberStep();
}

let remembering = 0;
// The address follows the stepping, not faster than browsers allow addresses to change.
function rememberStep() {
  clearTimeout(remembering);
  remembering = setTimeout(() => {
    const { scenario, a, b, seed, order, step } = replay;
    rewrite("replay", { scenario, a, b, seed, order: orderInAddress(order), step });
  }, 250);
}

const SPEEDS = [0.5, 1, 2, 4, 8];
const ROUND_SHOWN = 700; // milliseconds at speed 1
let speed = 1;
let playing = 0;
function startPlaying() {
  clearInterval(playing);
  if (replay.step === replay.last) showStep(0);
  replay.transport.play.textContent = "Pause";
  playing = setInterval(() => {
    if (replay.step >= replay.last) stopPlaying();
    else showStep(replay.step + 1);
  }, ROUND_SHOWN / speed);
}

function stopPlaying() {
  clearInterval(playing);
  playing = 0;
  if (replay && replay.transport) replay.transport.play.textContent = "Play";
}

function onReplayKey(event) {
  if (!replay || !replay.sides || event.ctrlKey || event.altKey || event.metaKey) return;
  if (event.target.closest("select, textarea, input:not([type=range])")) return;
  const onSlider = event.target.id === "step-slider"; // it moves by itself
  const side = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
  if (event.shiftKey && side) byId(side < 0 ? "replay-seed-before" : "replay-seed-after").click();
  else if (event.shiftKey || onSlider) return;
  else if (side) showStep(replay.step + side);
  else if (event.key === "Home") showStep(0);
  else if (event.key === "End") showStep(replay.last);
  else return;
  event.preventDefault();
}
