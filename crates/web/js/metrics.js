// Parses and compares readings of `/metrics`. Rates are differences between two readings.

/** Parses a reading: the samples of each name, taken at the time `at` in seconds. */
export function parse(text, at) {
  const samples = new Map();
  for (const line of text.split("\n")) {
    const match = /^([a-zA-Z_:][\w:]*)(?:\{(.*)\})? (\S+)/.exec(line);
    if (!match) continue;
    const [, name, labels = "", value] = match;
    const list = samples.get(name) ?? samples.set(name, []).get(name);
    list.push({ labels: labelled(labels), value: Number(value) });
  }
  return { samples, at };
}

function labelled(text) {
  const labels = {};
  for (const [, name, value] of text.matchAll(/(\w+)="((?:[^"\\]|\\.)*)"/g)) labels[name] = value;
  return labels;
}

const all = () => true;

/** Sum of the samples of a name with matching labels; null if there are none. */
export function sum(reading, name, fits = all) {
  const found = (reading.samples.get(name) ?? []).filter(({ labels }) => fits(labels));
  return found.length ? found.reduce((total, { value }) => total + value, 0) : null;
}

/** Growth of a sum between two readings, per second. A restarted server counts from 0. */
export function rate(before, after, name, fits) {
  const now = sum(after, name, fits);
  if (now === null || !before) return null;
  const was = sum(before, name, fits) ?? 0;
  return Math.max(0, now < was ? now : now - was) / (after.at - before.at);
}
