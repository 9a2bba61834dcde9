// Users, posts and stories for the screenshots.

const USERS = [
  ["mira", "Mira Aalto", "Botanist. Mostly mosses."],
  ["jonas", "Jonas Weber", "Bakes bread at four in the morning and writes about it."],
  ["noor", "Noor Haddad", "Maps, night trains, long walks"],
  ["tomasz", "Tomasz Lis", ""],
  ["ines", "Inês Carvalho", "Wheel-thrown, wood-fired"],
  ["yuki", "Yuki Tanaka", "Birds of the coast"],
  ["sam", "Sam Okafor", "I fix radios."],
  ["lea", "Léa Martin", "Cellist"],
  ["ada", "Ada Lind", "New here."],
];

const POSTS = [
  ["sam", "Found a 1962 Grundig in a skip. Two valves gone, the rest sings."],
  ["mira", "Sphagnum holds twenty times its own weight in water. I think about that more than I should."],
  ["noor", "The night train to Trieste runs again from March: https://example.org/trains/trieste (bring a pillow)."],
  ["yuki", "Counted 41 dunlin on the mudflats before the tide turned them inland."],
  ["jonas", "@ada you asked about the rye: 90 % hydration, sixteen hours, no hurry."],
  ["tomasz", "My neighbor's parrot imitates my ringtone. I have answered the parrot. Twice."],
  ["ines", "Kiln opened. Three cracked, nine survived, one surprised me."],
  ["mira", "@ada Thank you for the seeds! They are already up."],
  ["ada", "Moved in. The kettle works, the rest can wait."],
  ["yuki", "A kingfisher, at last. It did not stay for the photograph."],
  ["jonas", "First loaves out. The street smells like a promise, and @noor is already at the door."],
];

/** Replies to the newest post of ada: author, text, other fields. */
const THREAD = [
  ["mira", "@ada The kettle first, always. Where do the seeds go?"],
  ["yuki", "@ada Which floor? Asking for a telescope."],
  ["ada", "@yuki The fourth, and the roof is open.", { visibility: "followers" }],
  ["jonas", "@ada Bread is on its way.", { warning: "food" }],
];

const STORIES = [
  ["mira", "The moss terrarium fogged up overnight, and it looks like a small planet with weather of its own.", 1800],
  ["mira", "And now the fog is gone.", 3600],
  ["jonas", "Oven is at 260. Four minutes to go.", 240],
  ["yuki", "Standing very still. Something blue over there.", 120],
  ["ines", "Glaze test 14: rain on slate", 7200],
  ["ada", "Boxes everywhere. Found the kettle first, so all is well.", 3600],
];

/** Keys of a bucket, with their values and TTLs in seconds. */
const KEYS = [
  ["session:ada", "9d1f0c6e", 5400],
  ["session:jonas", "47be2210", 75],
  ["settings:language", "fi"],
  ["settings:theme", "dark"],
  ["photo:17", "\u0000\u0001".repeat(24_000)],
  ["rate:203.0.113.7", "12", 600],
];

/** Adds everything to a server. Returns the user whose pages are shown. */
export async function settle(server) {
  for (const user of USERS) await server.register(...user);
  for (const [other] of USERS.slice(0, 7)) {
    await server.follow("ada", other);
    await server.follow(other, "ada");
    await server.follow(other, "mira").catch(() => null);
    if (other !== "tomasz") await server.befriend("ada", other);
  }
  for (const post of POSTS) await server.post(...post);
  const heard = await server.post("lea", "Rehearsal in the old swimming hall tonight. Come early, bring a scarf.");
  await server.ask("PUT", `/v1/users/@mira/boosts/${heard.id}`);
  const about = (await server.ask("GET", "/v1/users/@ada/posts")).items[0];
  let above = about;
  for (const [author, text, further] of THREAD) {
    const reply = await server.ask("POST", `/v1/users/@${author}/posts`, { text, in_reply_to_id: above.id, ...further });
    if (author === "yuki") above = reply;
  }
  for (const fan of ["mira", "jonas", "yuki"]) await server.ask("PUT", `/v1/users/@${fan}/favourites/${about.id}`);
  for (const story of STORIES) await server.postStory(...story);
  for (const bucket of ["app", "drafts"]) await server.ask("PUT", `/v1/buckets/${bucket}`);
  for (const [key, value, ttl] of KEYS) await server.keep("app", key, value, ttl);
  const [{ id }] = (await server.ask("GET", "/v1/users/@yuki/stories?limit=1")).items;
  await server.ask("PUT", `/v1/users/@ada/viewed_stories/${id}`);
  return server.ask("GET", "/v1/users/@ada");
}
