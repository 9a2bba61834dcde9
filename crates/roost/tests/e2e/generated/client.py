"""Uses the client that was generated from the description of the API, against the server at argv[1]."""

import datetime
import sys

from roost_client import Client
from roost_client.api.buckets import create_bucket, list_buckets
from roost_client.api.posts import create_post, delete_post, get_post
from roost_client.api.recognizer import get_recognizer, recognize
from roost_client.api.stories import create_story, view_story
from roost_client.api.timelines import list_home_posts
from roost_client.api.users import befriend_user, follow_user, get_user
from roost_client.models import Drawings, ErrorBody, NewPost, NewStory, PageOfPostView, PostView, Profile

client = Client(base_url=sys.argv[1])

assert follow_user.sync("1", "@one", client=client).following
text = NewPost(text="hello")
first = create_post.sync_detailed("0", client=client, body=text, idempotency_key="k")
again = create_post.sync_detailed("@one", client=client, body=text, idempotency_key="k")
assert first.status_code == 201 and isinstance(first.parsed, PostView), first
assert again.headers["idempotent-replayed"] == "true" and again.content == first.content
assert isinstance(first.parsed.created_at, datetime.datetime) and first.parsed.created_at.tzinfo

page = list_home_posts.sync("@two", client=client, limit=10)
assert isinstance(page, PageOfPostView) and [post.text for post in page.items] == ["hello"], page
assert page.next_ is None and page.prev is None
profile = get_user.sync("0", client=client)
assert isinstance(profile, Profile) and (profile.post_count, profile.follower_count) == (1, 1)

assert delete_post.sync_detailed("0", first.parsed.id, client=client).status_code == 204
gone = get_post.sync_detailed(first.parsed.id, client=client)
assert isinstance(gone.parsed, ErrorBody) and gone.parsed.error == "post_not_found", gone
assert gone.parsed.request_id == gone.headers["x-request-id"]
wrong = list_home_posts.sync("@two", client=client, limit=101)
assert isinstance(wrong, ErrorBody) and wrong.field == "limit", wrong

assert befriend_user.sync_detailed("0", "1", client=client).status_code == 204
story = create_story.sync("0", client=client, body=NewStory(text="bye", ttl_s=60))
assert (story.expires_at - story.created_at).total_seconds() == 60
assert view_story.sync_detailed("1", story.id, client=client).status_code == 204

assert create_bucket.sync_detailed("drafts", client=client).status_code == 204
assert [bucket.name for bucket in list_buckets.sync(client=client).items] == ["drafts"]

assert get_recognizer.sync(client=client).k == 15
seven = recognize.sync(client=client, body=Drawings(sample="0" * 256))
assert seven.label and seven.votes[0].vote_count > 0, seven
both = recognize.sync(client=client, body=Drawings(samples=["0" * 256, "f" * 256]))
assert len(both.recognitions) == 2, both

print("done")
