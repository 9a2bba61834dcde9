// Types that were generated from the description of the API, as a client would use them. It is compiled,
// not run.

import type { components, operations, paths } from "./schema.js";

type Body<Id extends keyof operations> = operations[Id] extends { requestBody: { content: { "application/json": infer Body } } } ? Body : never;
type Answer<Id extends keyof operations, Status extends number> = operations[Id] extends { responses: { [S in Status]: { content: { "application/json": infer Body } } } } ? Body : never;

const post: Body<"create_post"> = { text: "hello" };
const story: Body<"create_story"> = { text: "bye", ttl_s: 60 };
const drawing: Body<"recognize"> = { sample: "0".repeat(256) };
// @ts-expect-error a post has a text
const empty: Body<"create_post"> = {};

export async function ask(base: string): Promise<string> {
  const path: keyof paths = "/v1/users/{user}/posts";
  const answer = await fetch(base + path.replace("{user}", "0"), { method: "POST", body: JSON.stringify(post) });
  if (!answer.ok) {
    const error = (await answer.json()) as components["schemas"]["ErrorBody"];
    return `${error.error}: ${error.message} (${error.field ?? "-"}, ${error.request_id})`;
  }
  const created = (await answer.json()) as Answer<"create_post", 201>;
  const page = (await (await fetch(base + "/v1/users/0/timeline")).json()) as Answer<"list_home_posts", 200>;
  const next: string | null | undefined = page.next;
  const profile = (await (await fetch(base + "/v1/users/0")).json()) as Answer<"get_user", 200>;
  const found = (await (await fetch(base + "/v1/recognitions")).json()) as Answer<"recognize", 200>;
  const labels = "recognitions" in found ? found.recognitions.map(({ label }) => label) : [found.label];
  // @ts-expect-error there is no such count
  profile.posts;
  return [created.id, created.created_at, next, profile.post_count, page.items[0]?.author.handle, ...labels, story.ttl_s, drawing.sample, empty].join();
}
