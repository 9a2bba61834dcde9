// Creates the screenshots of docs/pages.md (`node screenshots.mjs`), or all screenshots in a folder (`node
// screenshots.mjs FOLDER [NAMES]`). Users and posts are always the same; only times and the figures of the dashboard
// differ.

import { mkdirSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { ARROW, PHONE, SCRIBBLE, SEVEN, WIDE, draw, launch, open } from "./browser.mjs";
import { Server, run } from "./server.mjs";
import { settle } from "./scene.mjs";

const docs = new URL("../docs/", import.meta.url);
const folder = process.argv[2] ?? fileURLToPath(new URL("pages", docs));
const shown = process.argv[2] ? null : readFileSync(new URL("pages.md", docs), "utf8");
const only = process.argv[3]?.split(",");
/** Whether to create a screenshot, by the name of its page or file. */
const wanted = (name) => (!only || only.includes(name)) && (!shown || shown.includes(`pages/${name}-`));
mkdirSync(folder, { recursive: true });
const browser = await launch();
const server = await Server.start();
const me = await settle(server);

/** Screenshots: name, address, actions before it is taken, and options. */
const SHOTS = [
  ["welcome", "/#/who", async (page) => page.locator(".glimpse .post").nth(3).waitFor(), { me: null }],
  ["home", "/#/home", async (page) => {
    await page.locator(".feed .post").nth(4).waitFor();
    const posts = [
      await server.post("yuki", "It came back. Blue, then gone."),
      await server.post("sam", "The Grundig plays short wave now. Somebody is reading numbers."),
    ];
    await page.getByRole("button", { name: "2 new posts" }).waitFor();
    return () => Promise.all(posts.map((post) => server.remove(post)));
  }],
  ["thread", "/#/@ada", async (page) => {
    await page.locator(".feed .post", { hasText: "The kettle works" }).locator("a.when").click();
    await page.locator(".thread .post").nth(4).waitFor();
  }],
  ["notifications", "/#/notifications", async (page) => page.locator(".notices > li").nth(6).waitFor()],
  ["mentions", "/#/mentions", async (page) => page.locator(".feed .post").first().waitFor()],
  ["profile", "/#/@mira", async (page) => page.locator(".feed .post").first().waitFor()],
  ["stories", "/#/stories", async (page) => page.locator(".storycard").nth(3).waitFor()],
  ["story", "/#/stories", async (page) => {
    await page.getByRole("button", { name: /^Mira/ }).click();
    await page.locator("dialog .story").waitFor();
  }],
  ["draw", "/#/draw", async (page) => {
    await draw(page, SEVEN);
    await page.locator(".near .same").nth(8).waitFor();
  }],
  ["buckets", "/#/buckets/app", async (page) => page.locator(".keys tbody tr").nth(3).waitFor()],
  ["reply", "/#/home", async (page) => {
    await page.locator(".feed .post").nth(1).getByRole("button", { name: "Reply" }).click();
    await page.keyboard.type("Which bird? Ask @yu");
    await page.getByRole("option", { name: "Yuki" }).waitFor();
  }],
  ["empty", "/#/home", async (page) => page.locator(".start .person").first().waitFor(), { me: "newcomer" }],
  ["missing", "/#/no/such", async (page) => page.getByRole("heading", { name: "Page not found" }).waitFor()],
  ["tools", "/#/tools", async (page) => page.locator(".toolbox li").nth(3).waitFor()],
  ["unsure", "/#/draw", async (page) => {
    await draw(page, ...SCRIBBLE);
    await page.getByText("Not sure").first().waitFor();
  }],
  ["api", "/docs/", async (page) => page.locator(".opblock").nth(20).waitFor()],
  ["taught", "/#/draw", async (page) => {
    await draw(page, ...ARROW);
    await page.getByLabel("Add it with its label").fill("arrow");
    await page.getByRole("button", { name: "Add sample" }).click();
    await page.locator(".near .same .bitmap[aria-label^=arrow]").first().waitFor();
  }],
  ["for-you", "/#/for-you", async (page) => {
    await react();
    await page.getByRole("button", { name: "New ranking" }).click();
    await page.locator(".feed .post").nth(4).waitFor();
    await page.locator(".reason", { hasText: "Favourited" }).getByRole("button").first().click();
  }],
];

/** Lets users favourite posts, and posts with hashtags by a user whom nobody follows. */
async function react() {
  const found = (handle, text) => server.ask("GET", `/v1/users/@${handle}/posts`).then(({ items }) => items.find((post) => post.text.includes(text)));
  if (!await found("lea", "#birds")) await server.post("lea", "Cranes over the station all morning. Nobody looked at the timetable. #birds");
  if (!await found("ada", "#birds")) await server.post("ada", "Which birds sing before five here? #birds");
  for (const [fan, author, text] of [["mira", "lea", "#birds"], ["yuki", "lea", "#birds"], ["sam", "lea", "#birds"], ["noor", "jonas", "First loaves"], ["ines", "jonas", "First loaves"], ["mira", "sam", "Grundig in a skip"]]) {
    await server.ask("PUT", `/v1/users/@${fan}/favourites/${(await found(author, text)).id}`);
  }
}

const newcomer = await server.register("newcomer", "New Comer");

async function shoot(name, at, act, { me: who = me } = {}, from = server) {
  for (const [size, device] of [["wide", { viewport: WIDE }], ["narrow", { ...PHONE, deviceScaleFactor: 2 }]]) {
    for (const colorScheme of ["light", "dark"]) {
      const file = `${name}-${size}-${colorScheme}.png`;
      if (shown && !shown.includes(`pages/${file}`)) continue;
      const user = who === "newcomer" ? newcomer : who;
      const page = await open(browser, from, { me: user, at, ...device, colorScheme, reducedMotion: "reduce" });
      await page.locator("main h1, main h2, .info h1, .info h2").first().waitFor();
      const undo = await act?.(page);
      await page.evaluate(() => document.fonts.ready);
      await page.screenshot({ path: `${folder}/${file}` });
      await page.context().close();
      if (typeof undo === "function") await undo();
    }
  }
}

for (const [name, at, act, options = {}] of SHOTS) {
  if (wanted(name)) await shoot(name, at, act, options);
}

if (wanted("dashboard")) {
  const busy = await Server.start({ durability: "always" });
  const sim = run(["simulate", "--server", busy.url, "--users", "300", "--load", "heavy", "--duration", "10m"]);
  const seen = async (page) => page.waitForFunction(() => Number(document.querySelector("canvas.plot").dataset.points) > 30, null, { timeout: 90_000 });
  await shoot("dashboard", "/#/dashboard", seen, { me }, busy);
  sim.kill();
}

if (wanted("lock")) {
  const locked = await Server.start({ key: "a-key-for-screenshots" });
  await shoot("lock", "/", (page) => page.getByLabel("Application key").waitFor(), { me: null }, locked);
}

if (wanted("visitor")) {
  const community = await Server.start({ key: "a-key-for-screenshots", settings: ["--registrations", "open"] });
  await shoot("visitor", "/", (page) => page.getByRole("link", { name: "Sign up" }).waitFor(), { me: null }, community);
}

if (wanted("offline")) {
  const gone = await Server.start();
  const ada = await settle(gone);
  await shoot("offline", "/#/home", async (page) => {
    await page.locator(".feed .post").nth(4).waitFor();
    await gone.kill();
    await page.getByText("The server cannot be reached").waitFor();
    await page.getByLabel("Write a post").fill("Written while it was gone");
    await page.getByRole("button", { name: "Post", exact: true }).click();
    await page.getByText("Waiting for the server").waitFor();
    return () => gone.up();
  }, { me: ada }, gone);
}

await browser.close();
process.exit(0);
