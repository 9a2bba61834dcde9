// Reports of a simulation and of the lab, and a page with every kind of plot, opened as files without a server.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { after, before, test } from "node:test";
import { pathToFileURL } from "node:url";
import { WIDE, close, launch, open, until } from "../browser.mjs";
import { binary } from "../server.mjs";

/** Pages to check with axe, which takes seconds; the other pages differ only in the number of plots. */
const AUDITED = ["3 kinds", "real", "found", "every plot", "lab"];
/** Synthetic searches for the capacity, by outcome. */
const SEARCHES = ["found", "at-least", "nothing", "unsteady"];
const PHONE = { width: 400, height: 800 };
const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

let browser;
let folder;
/** Pages of synthetic runs with each number of kinds, of a real run, and of synthetic searches. */
const reports = new Map();

/** Makes a program write a page. It also writes one if the machine is too busy for a valid run. */
function write(program, args, name) {
  const { stderr } = spawnSync(program, args, { encoding: "utf8" });
  const file = join(folder, `${name}.html`);
  assert.ok(existsSync(file), stderr);
  reports.set(name, file);
}

before(async () => {
  browser = await launch();
  folder = mkdtempSync(join(tmpdir(), "roost-report-"));
  for (const kinds of [1, 3, 4, 7]) {
    const name = `${kinds} kinds`;
    write(join(dirname(binary), "examples", "report"), [join(folder, `${name}.html`), kinds], name);
  }
  for (const name of SEARCHES) {
    write(join(dirname(binary), "examples", "report"), [join(folder, `${name}.html`), name], name);
  }
  write(join(dirname(binary), "examples", "plots"), [join(folder, "every plot.html")], "every plot");
  const small = ["simulate", "--users", "300", "--load", "heavy", "--duration", "4s"];
  write(binary, [...small, "--html", join(folder, "real.html")], "real");
  const lab = ["lab", "run", "keys", "broadcast", "--threads", "1,2", "--trials", "3", "--out", join(folder, "lab")];
  const few = ["clients=3", "operations=50", "buckets=2", "keys=3", "reads=50,60", "users=100", "followers=10,20,50", "posts=3"];
  const designs = "central,sharded,worker,locked,roost,per-100,per-1,roost-http,erlang-central";
  write(binary, [...lab, ...few.flatMap((one) => ["--set", one]), "--designs", designs, "--html", join(folder, "lab.html")], "lab");
});
after(async () => {
  await browser.close();
  rmSync(folder, { recursive: true, force: true });
});

/** Opens a page as a file. Every request for another file is a fault. */
async function read(name, settings) {
  const url = pathToFileURL(reports.get(name)).href;
  const page = await open(browser, { url, origin: "null" }, { at: "", ...settings });
  page.faults = page.faults.filter((fault) => fault !== `asked ${url}`);
  return page;
}

/** Finds faults of visible plots: empty ones, and parts outside of the plot. */
const badPlots = (page, least = 4) => page.evaluate((least) => {
  const bad = [];
  const seen = [...document.querySelectorAll("svg[role=img]")].filter((svg) => svg.checkVisibility());
  if (seen.length < least) bad.push(`${seen.length} plots`);
  for (const svg of seen) {
    const what = svg.querySelector("title").textContent;
    const box = svg.getBoundingClientRect();
    if (box.width < 200 || box.height < 100) bad.push(`${what} is ${box.width} by ${box.height}`);
    if (!svg.querySelector("desc").textContent) bad.push(`${what} has no description`);
    const lines = [...svg.querySelectorAll("path.line, path.outline")];
    // A box of nearly equal values is flat next to one of widely spread values.
    const isDrawn = (line) => line.matches(".outline") ? line.getTotalLength() > 10 : line.getBBox().width > 50;
    if (!lines.some(isDrawn)) bad.push(`${what} has no line`);
    if (svg.querySelectorAll("rect.strip title, .mark title, .outline title").length === 0) bad.push(`${what} has no tooltip`);
    const color = getComputedStyle(lines[0]).stroke;
    if (color === "none" || color === getComputedStyle(document.body).backgroundColor) bad.push(`${what} has the color ${color}`);
    const texts = [...svg.querySelectorAll("text")].map((text) => [text.textContent, text.getBoundingClientRect()]);
    for (const [text, { left, right, top, bottom }] of texts) {
      if (left < box.left - 4 || right > box.right + 4 || top < box.top - 4 || bottom > box.bottom + 4) bad.push(`${what}: ${text} is out of the plot`);
      for (const [other, next] of texts) {
        const apart = right <= next.left || next.right <= left || bottom - 3 <= next.top || next.bottom - 3 <= top;
        if (text !== other && !apart) bad.push(`${what}: ${text} overlaps ${other}`);
      }
    }
  }
  return bad;
}, least);
/** Minimum number of plots of a page. */
const plots = (report) => (SEARCHES.includes(report) ? 2 : 4);

for (const colorScheme of ["light", "dark"]) {
  for (const [name, viewport] of [["on a screen", WIDE], ["on a phone", PHONE]]) {
    test(`plots are drawn and can be read, ${colorScheme}, ${name}`, async () => {
      for (const report of reports.keys()) {
        const page = await read(report, { colorScheme, viewport, bypassCSP: true });
        assert.deepEqual(await badPlots(page, plots(report)), [], report);
        const wider = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
        assert.ok(wider <= 0, `${report} is ${wider} px wider than the window`);
        if (AUDITED.includes(report)) {
          await page.addScriptTag({ content: axe });
          const { violations } = await page.evaluate(() => globalThis.axe.run({ exclude: ["rect.strip"] }));
          assert.deepEqual(violations.flatMap(({ id, nodes }) => nodes.map(({ html }) => `${id}: ${html}`)), [], report);
        }
        await close(page);
      }
    });
  }
}

test("its policy blocks scripts, and texts stay texts", async () => {
  const page = await read("7 kinds", {});
  assert.match(await page.title(), /<img src=x .* roost simulate$/);
  assert.equal(await page.locator("img, script, iframe, object").count(), 0);
  assert.equal(await page.locator("[onerror], [onload], [onclick]").count(), 0);
  const ran = await page.evaluate(() => {
    const script = document.createElement("script");
    script.textContent = "globalThis.ran = true";
    document.head.append(script);
    return globalThis.ran === true;
  });
  assert.equal(ran, false);
  // The browser reports the policy violation on the console.
  page.faults = page.faults.filter((fault) => !/Content Security Policy/.test(fault));
  await close(page);
});

test("the data files are next to the page and can be opened from it", async () => {
  const page = await read("3 kinds", {});
  const links = await page.locator(".links a").evaluateAll((all) => all.map((link) => link.href));
  assert.deepEqual(links.map((link) => link.split("/").pop()), ["summary.json", "windows.tsv", "posts.hgrm", "home-reads.hgrm", "mention-reads.hgrm"]);
  for (const link of links) assert.ok(readFileSync(new URL(link), "utf8").length > 100, link);
  await close(page);
});

test("a search has a mark of its own form for each verdict, and a band only around a mean", async () => {
  for (const [report, forms, bands] of [["found", ["holds", "fails"], 1], ["at-least", ["holds", "inconclusive"], 0], ["nothing", ["fails"], 0]]) {
    const page = await read(report, {});
    const seen = await page.evaluate(() => [...document.querySelectorAll("svg[role=img]")].filter((svg) => svg.checkVisibility()).map((svg) => ({
      marks: svg.querySelectorAll(".mark").length,
      bands: svg.querySelectorAll(".band").length,
      legend: [...svg.closest("figure").querySelectorAll(":scope > .legend li")].map((item) => item.textContent),
    })));
    const trials = await page.locator(".trials tbody tr").count();
    assert.equal(seen.length, 2);
    for (const { marks, bands: drawn, legend } of seen) {
      assert.equal(marks, trials, report);
      assert.equal(drawn, bands, report);
      assert.deepEqual(legend.slice(bands).sort(), [...forms].sort(), report);
    }
    const links = await page.locator(".links a").evaluateAll((all) => all.map((link) => link.href));
    assert.deepEqual(links.map((link) => link.split("/").pop()), ["capacity.json", "trials.tsv"]);
    for (const link of links) assert.ok(readFileSync(new URL(link), "utf8").length > 100, link);
    await close(page);
  }
});

test("in print every plot exists once, wide and light, and no table is cut", async () => {
  for (const report of ["1 kinds", "3 kinds", "found", "every plot", "lab"]) {
    // The width of A4 between its margins.
    const page = await read(report, { colorScheme: "dark", viewport: { width: 720, height: 1000 } });
    await page.emulateMedia({ media: "print" });
    assert.deepEqual(await badPlots(page, plots(report)), [], report);
    const titles = await page.evaluate(() => [...document.querySelectorAll("svg[role=img]")].filter((svg) => svg.checkVisibility()).map((svg) => svg.querySelector("title").id));
    assert.equal(new Set(titles).size, titles.length);
    assert.ok(!titles.some((id) => id.endsWith("-n-t")), "none in the narrow form");
    assert.equal(await page.evaluate(() => getComputedStyle(document.body).backgroundColor), "rgb(255, 255, 255)");
    const cut = await page.evaluate(() => [...document.querySelectorAll(".scrolls")].filter((box) => box.scrollWidth > box.clientWidth).map((box) => box.ariaLabel));
    assert.deepEqual(cut, [], report);
    await close(page);
  }
});

test("the lab's page answers before it shows figures, and every experiment can be reached from its summary", async () => {
  const page = await read("lab", { viewport: PHONE });
  assert.equal(await page.locator("script").count(), 0);
  const links = page.locator(".facts a[href^='#']");
  assert.deepEqual(await links.evaluateAll((all) => all.map((link) => link.hash)), ["#broadcast", "#keys"]);
  for (const name of ["broadcast", "keys"]) {
    const experiment = page.locator(`[id=${name}]`);
    const order = await experiment.evaluate((all) => [...all.querySelectorAll("section > .lead, section > .verdict, section > h3, section > .row")]
      .map((part) => part.className || part.textContent));
    assert.deepEqual([order[0], order[1].split(" ")[0], order[2]], ["lead", "verdict", "Setup"]);
    assert.deepEqual(order.slice(-2), ["What the original found, and whether it holds here", "How to repeat it"]);
    await links.filter({ hasText: name }).click();
    await until(() => experiment.evaluate((part) => Math.abs(part.getBoundingClientRect().top) < innerHeight), `the page shows ${name}`);
  }
  const text = await page.locator("body").textContent();
  for (const part of ["Speed-up over threads", "ideal", "over followers", "roost lab run keys"]) {
    assert.ok(text.includes(part), part);
  }
  await close(page);
});
