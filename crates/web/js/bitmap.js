// Drawings of 32 x 32 pixels in the recognizer's format: 256 hexadecimal digits, row by row, the first pixel in the
// highest bit.

import { h } from "./dom.js";

export const SIDE = 32;

/** Whether the pixel at index `at` is ink. */
const ink = (bits, at) => (parseInt(bits[at >> 2], 16) >> (3 - (at & 3))) & 1;

/** Creates a small image of a drawing, in the color of text; blank if `bits` is null. */
export function bitmap(bits, label) {
  const node = h("canvas.bitmap", { width: SIDE, height: SIDE, role: "img", "aria-label": label });
  if (!bits) return node;
  const brush = node.getContext("2d");
  const image = brush.createImageData(SIDE, SIDE);
  const dark = matchMedia("(prefers-color-scheme: dark)").matches ? 232 : 21;
  for (let at = 0; at < SIDE * SIDE; at += 1) {
    image.data.fill(dark, 4 * at, 4 * at + 3);
    image.data[4 * at + 3] = ink(bits, at) ? 255 : 0;
  }
  brush.putImageData(image, 0, 0);
  return node;
}
