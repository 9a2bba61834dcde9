// What `/metrics` tells, read and compared: rates are differences between two readings, percentiles
// come from the differences of histograms.

/** A reading: the samples of each name, and when it was taken (in seconds). */
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

/** The sum of all samples of a name whose labels fit; null if there are none. */
export function sum(reading, name, fits = all) {
  const found = (reading.samples.get(name) ?? []).filter(({ labels }) => fits(labels));
  return found.length ? found.reduce((total, { value }) => total + value, 0) : null;
}

/** How fast a sum grew between two readings, a second. A server that began anew counts from 0. */
export function rate(before, after, name, fits) {
  const now = sum(after, name, fits);
  if (now === null || !before) return null;
  const was = sum(before, name, fits) ?? 0;
  return Math.max(0, now < was ? now : now - was) / (after.at - before.at);
}

/** What came into a histogram between two readings: ends of its buckets and how many fell in each. */
function grown(before, after, name, fits) {
  const ends = new Map();
  for (const [reading, sign] of [[before, -1], [after, 1]]) {
    for (const { labels, value } of reading.samples.get(`${name}_bucket`) ?? []) {
      if (!fits(labels)) continue;
      const end = labels.le === "+Inf" ? Infinity : Number(labels.le);
      ends.set(end, (ends.get(end) ?? 0) + sign * value);
    }
  }
  const sorted = [...ends].sort(([one], [other]) => one - other);
  return sorted.map(([end, upTo], place) => ({ end, count: upTo - (place ? sorted[place - 1][1] : 0) }));
}

/** Percentiles (shares from 0 to 1) of what came between two readings; null if nothing did. */
export function percentiles(before, after, name, shares, fits = all) {
  const buckets = grown(before, after, name, fits);
  const total = buckets.reduce((sum, { count }) => sum + count, 0);
  if (total <= 0) return shares.map(() => null);
  return shares.map((share) => {
    let rest = share * total;
    let start = 0;
    for (const { end, count } of buckets) {
      if (rest <= count && count > 0) return end === Infinity ? start : start + (end - start) * (rest / count);
      rest -= count;
      if (end !== Infinity) start = end;
    }
    return start;
  });
}

/** The mean of what came between two readings. */
export function mean(before, after, name) {
  const count = (sum(after, `${name}_count`) ?? 0) - (sum(before, `${name}_count`) ?? 0);
  if (count <= 0) return null;
  return ((sum(after, `${name}_sum`) ?? 0) - (sum(before, `${name}_sum`) ?? 0)) / count;
}
