// Line endings of a text edited in a text area, which supports only LF. Unedited lines keep their line endings; new
// lines get the one of the first line.

const END = /\r\n|\r|\n/g;

/** Returns the edited text (with LF) with the line endings of the original. */
export function respell(original, edited) {
  const ends = original.match(END) ?? [];
  if (ends.every((end) => end === "\n")) return edited;
  const before = original.replace(END, "\n");
  const most = Math.min(before.length, edited.length);
  let head = 0;
  while (head < most && before[head] === edited[head]) head += 1;
  let tail = 0;
  while (tail < most - head && before.at(-1 - tail) === edited.at(-1 - tail)) tail += 1;
  const count = (text) => text.split("\n").length - 1;
  const kept = [ends.slice(0, count(before.slice(0, head))), ends.slice(ends.length - count(before.slice(before.length - tail)))];
  const added = Array(count(edited) - kept[0].length - kept[1].length).fill(ends[0]);
  const all = [...kept[0], ...added, ...kept[1]];
  let at = 0;
  return edited.replace(/\n/g, () => all[at++]);
}
