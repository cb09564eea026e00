// What is said to screen readers, and the addresses that lead to views: #view?name=value&...

const live = el("div", { class: "unseen", role: "status", "aria-live": "polite" });
document.body.append(live);

function announce(text) {
  live.textContent = text;
}

// ---- addresses: #view?name=value&...

function link(view, params) {
  const given = Object.entries(params).filter(([, value]) => value !== "" && value !== null && value !== undefined);
  const query = new URLSearchParams(given).toString();
  return `#${view}${query ? `?${query}` : ""}`;
}

function navigate(view, params) {
  location.hash = link(view, params); // hashchange draws
}

// The address changes, the page stays. A browser may refuse (too often, or an opaque origin): nothing is lost then.
function rewrite(view, params) {
  try {
    history.replaceState(null, "", link(view, params));
  } catch (error) {
    console.warn(error.message);
  }
}
