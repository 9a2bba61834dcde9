// Builds nodes. Strings become text nodes and attributes and nothing else, so whatever people write
// stays text. The policy of the page has the browser refuse every other way.

const SVG = "http://www.w3.org/2000/svg";

/** A node: `h("a.link", { href }, "text", child)`. Children that are null or false are left out. */
export function h(what, props, ...children) {
  const [tag, ...classes] = what.split(".");
  const node = document.createElement(tag || "div");
  if (classes.length) node.className = classes.join(" ");
  return fill(node, props, children);
}

/** The same for SVG. */
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

/** Puts children in the place of what a node holds. */
export function put(node, ...children) {
  node.replaceChildren(...children.flat().filter((child) => child !== null && child !== undefined && child !== false));
  return node;
}

/** Gives a list its children in this order; those that stand right keep their place and focus. */
export function arrange(list, nodes) {
  let at = list.firstElementChild;
  for (const node of nodes) {
    if (node === at) at = at.nextElementSibling;
    else list.insertBefore(node, at);
  }
}

/** Whether motion is unwelcome. */
export const calm = matchMedia("(prefers-reduced-motion: reduce)");

/** Resolves after a while, or when the signal says so. */
export function pause(ms, signal) {
  return new Promise((done) => {
    const timer = setTimeout(done, ms);
    signal?.addEventListener("abort", () => { clearTimeout(timer); done(); }, { once: true });
  });
}
