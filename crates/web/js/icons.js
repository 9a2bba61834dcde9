// Icons as strokes on a grid of 24 units. They stand beside words or carry a label, and are hidden
// from those who listen.

import { svg } from "./dom.js";

const PATHS = {
  home: "M4 10.5 12 4l8 6.5V19a1 1 0 0 1-1 1h-4.5v-5.5h-5V20H5a1 1 0 0 1-1-1z",
  mentions: "M15.8 12a3.8 3.8 0 1 1-7.6 0 3.8 3.8 0 0 1 7.6 0Zm0-3.6v5.2a2.3 2.3 0 0 0 4.6 0V12a8.4 8.4 0 1 0-3.5 6.8",
  stories: "M12 7.5v4.7l3 1.8M12 3.6A8.4 8.4 0 1 1 3.6 12M5.2 7.1l.02 0M8.2 4.5l.02 0",
  draw: "M4 20l1-4.2L16.2 4.6a1.8 1.8 0 0 1 2.5 0l.7.7a1.8 1.8 0 0 1 0 2.5L8.2 19zM14.2 6.6l3.2 3.2",
  buckets: "M4.5 7h15l-1.6 11.4a1.8 1.8 0 0 1-1.8 1.6H7.9a1.8 1.8 0 0 1-1.8-1.6zM4.5 7c0-1.6 3.4-3 7.5-3s7.5 1.4 7.5 3",
  dashboard: "M4 19.5V4.5M4 19.5h16M7.5 15l3.6-4.5 3 2.6L19.5 7",
  profile: "M15.6 8.4a3.6 3.6 0 1 1-7.2 0 3.6 3.6 0 0 1 7.2 0ZM4.8 19.6c.9-3.4 3.7-5.2 7.2-5.2s6.3 1.8 7.2 5.2",
  reply: "M9.5 7 4.5 12l5 5M5 12h8.5a6 6 0 0 1 6 6",
  delete: "M5 7h14M10 7V4.8h4V7M7 7l.8 12.2h8.4L17 7M10.3 10.5v5.5M13.7 10.5v5.5",
  plus: "M12 5.5v13M5.5 12h13",
  close: "M6.5 6.5l11 11M17.5 6.5l-11 11",
  left: "M14.5 5.5 8 12l6.5 6.5",
  right: "M9.5 5.5 16 12l-6.5 6.5",
  up: "M12 19V5.5M6.5 11 12 5.5l5.5 5.5",
  eye: "M2.8 12S6 6 12 6s9.2 6 9.2 6-3.2 6-9.2 6-9.2-6-9.2-6Zm11.9 0a2.7 2.7 0 1 1-5.4 0 2.7 2.7 0 0 1 5.4 0Z",
  cloud: "M7 18h10a4 4 0 0 0 .6-7.9A5.7 5.7 0 0 0 6.7 11 3.6 3.6 0 0 0 7 18Z",
  key: "M14.8 9.2a4 4 0 1 0-5.6 5.6 4 4 0 0 0 5.6-5.6Zm0 0L20 4m-2.6 2.6 2.2 2.2",
  people: "M12.4 8.6a3.2 3.2 0 1 1-6.4 0 3.2 3.2 0 0 1 6.4 0ZM3.2 19c.6-3.2 3-5 6-5s5.4 1.8 6 5M15.2 5.6a3.2 3.2 0 0 1 0 6M17.4 14.6c1.9.7 3.1 2.2 3.5 4.4",
  check: "M5 12.5 10 17.5 19.5 7",
};

/** An icon by its name. */
export function icon(name) {
  return svg("svg", { viewBox: "0 0 24 24", class: "icon", "aria-hidden": "true" }, svg("path", { d: PATHS[name] }));
}
