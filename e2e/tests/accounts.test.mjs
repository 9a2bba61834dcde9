// Users sign up, log in, authorize an app, and revoke it: with and without scripts, on a desktop and on a phone.

import assert from "node:assert/strict";
import { createHash, randomBytes } from "node:crypto";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { after, before, test } from "node:test";
import { PHONE, WIDE, close, launch, open } from "../browser.mjs";
import { Server } from "../server.mjs";

const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const PASSWORD = "a long password";

let browser;
let server;
before(async () => {
  browser = await launch();
  server = await Server.start({ settings: ["--registrations", "open"] });
});
after(async () => {
  await browser.close();
  await server.stop();
});

/** Sends a form. Returns the status and the JSON of the response. */
async function send(path, fields) {
  const answer = await fetch(server.url + path, { method: "POST", body: new URLSearchParams(fields) });
  return [answer.status, await answer.json()];
}

async function me(token) {
  const headers = { Authorization: `Bearer ${token}` };
  const answer = await fetch(`${server.url}/api/v1/accounts/verify_credentials`, { headers });
  return [answer.status, await answer.json()];
}

/** Registers an app that redirects to a page of this server. Returns it, and the address that asks for access. */
async function app(name) {
  const redirect = `${server.url}/back`;
  const [status, made] = await send("/api/v1/apps", { client_name: name, redirect_uris: redirect, scopes: "read write" });
  assert.equal(status, 200);
  const verifier = randomBytes(32).toString("base64url");
  const challenge = createHash("sha256").update(verifier).digest("base64url");
  const asked = new URLSearchParams({
    response_type: "code", client_id: made.client_id, redirect_uri: redirect, scope: "read", state: "x y",
    code_challenge: challenge, code_challenge_method: "S256",
  });
  const client = { client_id: made.client_id, client_secret: made.client_secret, redirect_uri: redirect };
  return { at: `/oauth/authorize?${asked}`, client, verifier };
}

/** Returns the parameters of the address that the browser was redirected to. The page does not exist, so the browser reports an error. */
async function sentBack(page, button) {
  page.mayBeLost = true;
  await page.getByRole("button", { name: button }).click();
  await page.waitForURL("**/back?*");
  return new URL(page.url()).searchParams;
}

for (const [name, view] of [["a desk", { viewport: WIDE }], ["a phone", PHONE]]) {
  for (const javaScriptEnabled of [true, false]) {
    const scripts = javaScriptEnabled ? "with" : "without";
    test(`an app is allowed, denied and revoked on ${name} ${scripts} scripts`, async () => {
      const handle = `${name.slice(2)}_${scripts}`;
      const { at, client, verifier } = await app("Lark");
      const page = await open(browser, server, { at, ...view, javaScriptEnabled, bypassCSP: javaScriptEnabled });
      /** Checks that a page fits the screen, and that axe finds nothing. */
      const fits = async (heading) => {
        await page.getByRole("heading", { level: 1, name: heading }).waitFor();
        if (!javaScriptEnabled) return;
        const [wide, screen] = await page.evaluate(() => [document.documentElement.scrollWidth, innerWidth]);
        assert.ok(wide <= screen, `${heading}: ${wide} of ${screen}`);
        await page.evaluate(axe);
        const { violations } = await page.evaluate(() => globalThis.axe.run(document));
        assert.deepEqual(violations.map(({ id, nodes }) => [id, nodes.map(({ html }) => html)]), [], heading);
      };

      await fits("Log in");
      await page.getByRole("link", { name: "Sign up" }).click();
      await fits("Sign up");
      await page.getByLabel("Handle").fill(handle);
      await page.getByLabel("E-mail address").fill(`${handle}@example.org`);
      await page.getByLabel("Password").fill(PASSWORD);
      await page.getByRole("checkbox").check();
      await page.getByRole("button", { name: "Sign up" }).click();

      await page.getByText("Lark").waitFor();
      await page.getByText(`@${handle}`).waitFor();
      await fits(await page.getByRole("heading", { level: 1 }).innerText());
      const denied = await sentBack(page, "Deny");
      assert.equal(denied.get("error"), "access_denied");
      assert.equal(denied.get("state"), "x y");

      await page.goto(server.url + at);
      const allowed = await sentBack(page, "Allow");
      assert.equal(allowed.get("state"), "x y");
      const grant = { grant_type: "authorization_code", code: allowed.get("code"), code_verifier: verifier };
      const [status, token] = await send("/oauth/token", { ...client, ...grant });
      assert.equal(status, 200, JSON.stringify(token));
      const [seen, account] = await me(token.access_token);
      assert.deepEqual([seen, account.username], [200, handle]);

      await page.goto(`${server.url}/settings`);
      await fits("Account settings");
      // Only now, because the browser may report the missing redirect page late.
      page.mayBeLost = false;
      await page.getByRole("button", { name: "Revoke Lark" }).click();
      await page.getByRole("heading", { level: 1, name: "Account settings" }).waitFor();
      assert.equal(await page.getByRole("button", { name: "Revoke Lark" }).count(), 0);
      assert.equal((await me(token.access_token))[0], 401);

      await page.getByRole("button", { name: "Log out" }).click();
      await page.goto(`${server.url}/settings`);
      await fits("Log in");
      await page.getByLabel("Handle").fill(handle);
      await page.getByLabel("Password").fill(PASSWORD);
      await page.getByRole("button", { name: "Log in" }).click();
      await fits("Account settings");
      await close(page);
    });
  }
}
