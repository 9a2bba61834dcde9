// Creates DOM nodes. Strings become only text nodes and attributes, so texts of users are never interpreted as markup.
// The Content-Security-Policy makes the browser block everything else.

const SVG = "http://www.w3.org/2000/svg";

/** Creates a node: `h("a.link", { href }, "text", child)`. Null and false children are skipped. */
export function h(what, props, ...children) {
  const [tag, ...classes] = what.split(".");
  const node = document.createElement(tag || "div");
  if (classes.length) node.className = classes.join(" ");
  return fill(node, props, children);
}

/** Creates an SVG node, as `h` does. */
export function svg(tag, props, ...children) {
  return fill(document.createElementNS(SVG, tag), props, children);
}

function fill(node, props, children) {
  for (const [name, value] of Object.entries(props ?? {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (name.startsWith("--")) node.style.setProperty(name, value);
    else node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== false));
  return node;
}

/** Replaces the children of a node. Null and false children are skipped. */
export function setChildren(node, ...children) {
  node.replaceChildren(...children.flat().filter((child) => child !== null && child !== undefined && child !== false));
  return node;
}

/** Puts the children of a list in this order. Nodes already at their position are not moved and keep the focus. */
export function arrange(list, nodes) {
  let at = list.firstElementChild;
  for (const node of nodes) {
    if (node === at) at = at.nextElementSibling;
    else list.insertBefore(node, at);
  }
}

/** Removes a node of a list. Moves a focus inside it to a neighbor, or to the title of the page. */
export function drop(node) {
  const near = node.nextElementSibling ?? node.previousElementSibling;
  const focused = node.contains(document.activeElement);
  node.remove();
  if (!focused) return;
  const link = near?.querySelector("a.named");
  if (link) link.focus();
  else focusTitle();
}

/** Focuses the title of the page. Returns it, or null if there is none yet. */
export function focusTitle() {
  const title = document.querySelector("main h1");
  title?.setAttribute("tabindex", "-1");
  title?.focus({ preventScroll: true });
  return title;
}

/** Whether the user prefers reduced motion. */
export const calm = matchMedia("(prefers-reduced-motion: reduce)");

/** Resolves after a delay, or when the signal aborts. */
export function pause(ms, signal) {
  return new Promise((done) => {
    const timer = setTimeout(done, ms);
    signal?.addEventListener("abort", () => { clearTimeout(timer); done(); }, { once: true });
  });
}

/** Returns a function that runs `task` one at a time: calls during a run cause one more run after it. */
export function single(task) {
  let busy = false;
  let again = false;
  return async () => {
    again = true;
    if (busy) return;
    busy = true;
    try {
      while (again) {
        again = false;
        await task();
      }
    } finally {
      busy = false;
    }
  };
}
