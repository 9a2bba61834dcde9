"""The life of an account with Mastodon.py. Its arguments are the URL of a server whose sign-up is open, and a folder.

Ada logs in with a browser, Bob signs up in the app. Prints `done` at the end.
"""

import datetime
import queue
import re
import sys
import threading
from html import unescape

import requests
from mastodon import Mastodon, StreamListener
from mastodon.errors import (
    MastodonAPIError,
    MastodonIllegalArgumentError,
    MastodonNotFoundError,
    MastodonUnauthorizedError,
)

from world import PICTURE

URL = sys.argv[1]
PASSWORD = "correct horse battery"
SCOPES = ["read", "write", "follow"]
# The maximum time to wait, as in the other tests. It is reached only if something hangs.
PATIENCE_SECS = 60


class Events(StreamListener):
    """The events of a stream, as pairs of a name and the content."""

    def __init__(self):
        self.queue = queue.Queue()

    def handle_stream(self, response):
        self.queue.put(("open", None))
        super().handle_stream(response)

    def on_update(self, status):
        self.queue.put(("update", status))

    def on_status_update(self, status):
        self.queue.put(("status.update", status))

    def on_delete(self, status_id):
        self.queue.put(("delete", status_id))

    def on_notification(self, notification):
        self.queue.put(("notification", notification))

    def next(self, name):
        found, value = self.queue.get(timeout=PATIENCE_SECS)
        assert found == name, (found, value)
        return value


def refused(error, call, *args, **options):
    try:
        call(*args, **options)
    except error as refusal:
        # An error for one status is a subclass of the error for all.
        assert type(refusal) is error, refusal
        return str(refusal)
    raise AssertionError(f"{call.__name__} is not refused")


def ids(entities):
    return [entity.id for entity in entities]


def in_form(page):
    """The hidden fields of the first form of a page."""
    form = page.text.split("</form>")[0]
    fields = re.findall(r'<input type="hidden" name="([^"]+)" value="([^"]*)"', form)
    return {name: unescape(value) for name, value in fields}


def code(app, name):
    """Logs a user in. Returns the code that the user would copy from the browser."""
    browser = requests.Session()
    page = browser.get(app.auth_request_url(scopes=SCOPES, allow_http=True))
    fields = in_form(page) | {"username": name, "password": PASSWORD}
    page = browser.post(URL + "/auth/log-in", data=fields)
    assert page.ok and "asks for access" in page.text, page.text
    page = browser.post(URL + "/oauth/authorize", data=in_form(page) | {"decision": "allow"})
    return re.search(r'<code class="secret">([^<]+)</code>', page.text)[1]


def registered():
    app_id, secret = Mastodon.create_app("Life", scopes=SCOPES, api_base_url=URL)
    return app_id, secret, Mastodon(client_id=app_id, client_secret=secret, api_base_url=URL)


def listened(user):
    """Opens a user's stream. Returns its events."""
    events = Events()
    threading.Thread(target=user.stream_user, args=(events,), daemon=True).start()
    events.next("open")
    return events


def users():
    app_id, secret, app = registered()
    sign_up = {"password": PASSWORD, "agreement": True, "scopes": SCOPES}
    app.create_account("ada", email="ada@example.org", **sign_up)
    taken = refused(
        MastodonIllegalArgumentError, app.create_account, "ada", email="a@example.org", **sign_up
    )
    assert "username" in taken, taken
    ada = Mastodon(client_id=app_id, client_secret=secret, api_base_url=URL)
    ada.log_in(code=code(ada, "ada"), scopes=SCOPES, allow_http=True)
    _, _, bob = registered()
    bob.create_account("bob", email="bob@example.org", **sign_up)
    assert ada.me().acct == "ada" and bob.me().acct == "bob"
    assert ada.app_verify_credentials().name == "Life"
    return ada, bob


def server(ada):
    assert ada.instance_v1().uri == URL.removeprefix("http://") == ada.instance_v2().domain
    assert ada.instance_health() and ada.stream_healthy()
    assert ada.instance_nodeinfo().software.name == "roost"
    assert ada.preferences()["posting:default:visibility"] == "public"
    assert ada.custom_emojis() == [] and ada.filters_v2() == [] and ada.announcements() == []


def profile(ada, bob):
    me = ada.account_update_credentials(display_name="Ada L.", note="I post.")
    assert (me.display_name, me.source.note) == ("Ada L.", "I post.")
    assert "I post." in bob.account(me.id).note


def finds(bob, ada_id):
    assert ids(bob.account_search("ad")) == [ada_id] == ids(bob.search_v2("@ada").accounts)
    assert bob.account_lookup("ada").id == ada_id
    refused(MastodonNotFoundError, bob.account_lookup, "nobody")
    assert ada_id in ids(bob.directory())


def follows(ada, bob, ada_id, bob_id):
    assert bob.account_follow(ada_id).following
    [relation] = ada.account_relationships([bob_id])
    assert relation.followed_by and not relation.following
    assert ids(ada.account_followers(ada_id)) == [bob_id] == ids(ada.account_followers(ada.me()))
    assert ids(bob.account_following(bob_id)) == [ada_id]
    assert bob.account_familiar_followers([ada_id])[0].accounts == []


def posts(ada, bob, ada_id, events):
    post = ada.status_post(
        "hello @bob #hi", spoiler_text="warning", language="en", idempotency_key="first"
    )
    again = ada.status_post(
        "hello @bob #hi", spoiler_text="warning", language="en", idempotency_key="first"
    )
    assert again.id == post.id, "a retry publishes nothing"
    assert post.sensitive and [tag.name for tag in post.tags] == ["hi"]
    assert [mention.acct for mention in post.mentions] == ["bob"]
    heard = {events.queue.get(timeout=PATIENCE_SECS)[0] for _ in range(2)}
    assert heard == {"update", "notification"}, heard
    edited = ada.status_update(post.id, "hello @bob, edited", spoiler_text="")
    assert edited.edited_at and "edited" in edited.content
    assert "edited" in events.next("status.update").content
    assert bob.status_source(post.id).text == "hello @bob, edited"
    first, second = bob.status_history(post.id)
    assert (first.spoiler_text, second.spoiler_text) == ("warning", "")
    assert "edited" not in first.content and "edited" in second.content
    assert ids(bob.timeline_home()) == [post.id] == ids(bob.timeline_public())
    assert ids(bob.timeline_local()) == [post.id] == ids(bob.account_statuses(ada_id))
    assert ids(bob.statuses([post.id])) == [post.id]
    return post.id


def replies_and_reactions(ada, bob, ada_id, bob_id, post):
    reply = bob.status_reply(bob.status(post), "a reply")
    assert reply.in_reply_to_id == post and reply.in_reply_to_account_id == ada_id
    assert ids(ada.status_context(post).descendants) == [reply.id]
    assert ids(ada.status_context(reply.id).ancestors) == [post]
    assert bob.status_favourite(post).favourites_count == 1
    assert ids(ada.status_favourited_by(post)) == [bob_id] and ids(bob.favourites()) == [post]
    assert bob.status_bookmark(post).bookmarked and ids(bob.bookmarks()) == [post]
    assert ada.status_pin(post).pinned and ids(bob.account_statuses(ada_id, pinned=True)) == [post]
    boost = bob.status_reblog(post)
    assert boost.reblog.id == post and boost.reblog.reblogs_count == 1 and boost.reblogged
    assert ids(ada.status_reblogged_by(post)) == [bob_id]
    assert boost.id in ids(ada.account_statuses(bob_id))
    assert boost.id not in ids(ada.account_statuses(bob_id, exclude_reblogs=True))
    found = ada.notifications()
    kinds = [notice.type for notice in found]
    assert kinds == ["reblog", "favourite", "mention", "follow"], found
    assert found[0].status.id == post
    assert ids(ada.notifications(types=["mention"])) == [found[2].id]
    assert ada.notifications(found[2].id).status.id == reply.id
    ada.notifications_dismiss(found[2].id)
    assert ids(ada.notifications()) == [found[0].id, found[1].id, found[3].id]
    ada.notifications_clear()
    assert ada.notifications() == [] and ada.notifications_unread_count().count == 0
    assert not bob.status_unreblog(post).reblogged
    refused(MastodonNotFoundError, bob.status, boost.id)
    assert not bob.status_unfavourite(post).favourited and bob.favourites() == []
    assert not bob.status_unbookmark(post).bookmarked and bob.bookmarks() == []
    assert not ada.status_unpin(post).pinned
    bob.status_delete(reply.id)
    assert ada.status_context(post).descendants == []


def pages(ada, bob):
    posted = [ada.status_post(f"post {number}", visibility="private").id for number in range(5)]
    first = bob.timeline_home(limit=2)
    assert ids(first) == posted[:2:-1]
    second = bob.fetch_next(first)
    assert ids(second) == posted[2:0:-1]
    assert ids(bob.fetch_previous(second)) == ids(first)
    assert ids(bob.fetch_remaining(first))[:5] == posted[::-1]
    return posted


def pictures(ada, bob, ada_id):
    uploads = [
        ada.media_post(PICTURE, "image/gif", description="a dot", focus=(0.5, -0.5)),
        ada.media_post(PICTURE, "image/gif", synchronous=True),
    ]
    assert (uploads[0].type, uploads[0].description) == ("image", "a dot")
    assert ada.media_update(uploads[1], description="another dot").description == "another dot"
    post = ada.status_post("two dots", media_ids=uploads)
    seen = bob.status(post.id).media_attachments
    assert ids(seen) == ids(uploads) and seen[1].description == "another dot"
    assert seen[0].meta.focus.x == 0.5 and seen[0].meta.original.size == "1x1"
    assert requests.get(seen[0].url).headers["Content-Type"] == "image/png"
    assert ids(bob.account_statuses(ada_id, only_media=True)) == [post.id]
    words = ada.generate_media_edit_attributes(uploads[0], description="a red dot")
    edited = ada.status_update(post.id, "", media_attributes=[words])
    assert [media.description for media in edited.media_attachments] == ["a red dot"]
    assert edited.content == ""
    deleted = ada.status_delete(post.id)
    again = ada.status_post("one dot", media_ids=deleted.media_attachments)
    assert again.media_attachments[0].url == seen[0].url
    ada.status_delete(again.id, delete_media=True)
    assert requests.get(seen[0].url).status_code == 404
    default = ada.me().avatar
    me = ada.account_update_credentials(avatar=PICTURE, avatar_mime_type="image/gif")
    assert me.avatar != default and requests.get(me.avatar).ok
    assert ada.account_delete_avatar().avatar == default
    refused(MastodonAPIError, ada.media_post, b"<svg/>", "image/png")


def approves(ada, bob, ada_id, bob_id):
    assert ada.account_note_set(bob_id, "met at the fair").note == "met at the fair"
    assert ada.account_update_credentials(locked=True, bot=False, fields=[("Web", "a.example")]).locked
    assert ada.me().fields[0].value == "a.example"
    bob.account_unfollow(ada_id)
    asked = bob.account_follow(ada_id)
    assert asked.requested and not asked.following
    assert ids(ada.follow_requests()) == [bob_id]
    ada.follow_request_reject(bob_id)
    assert not bob.account_relationships(ada_id)[0].requested
    bob.account_follow(ada_id)
    ada.follow_request_authorize(bob_id)
    assert bob.account_relationships(ada_id)[0].following and ada.follow_requests() == []
    assert not ada.account_update_credentials(locked=False).locked


def lists(bob, ada_id, post):
    friends = bob.list_create("Friends", replies_policy="none")
    assert (friends.title, friends.replies_policy, friends.exclusive) == ("Friends", "none", False)
    bob.list_accounts_add(friends, ada_id)
    assert ids(bob.list_accounts(friends)) == [ada_id]
    assert ids(bob.account_lists(ada_id)) == [friends.id]
    assert ids(bob.timeline_list(friends)) == [post]
    assert bob.list_update(friends, "Best friends").title == bob.list(friends).title == "Best friends"
    bob.list_accounts_delete(friends, ada_id)
    assert bob.timeline_list(friends) == []
    bob.list_delete(friends)
    [for_you] = bob.lists()
    assert (for_you.title, for_you.replies_policy) == ("For You", "followed")
    assert bob.fetch_remaining(bob.timeline_list(for_you, limit=1)) != []


def filters(bob, post):
    spoilers = bob.create_filter_v2("Spoilers", ["home"], "hide", keywords_attributes=[
        {"keyword": "LAST", "whole_word": True}])
    assert [word.keyword for word in spoilers.keywords] == ["LAST"]
    [found] = bob.status(post).filtered
    assert (found.filter.title, found.keyword_matches) == ("Spoilers", ["LAST"])
    bob.add_filter_status_v2(spoilers, post)
    assert bob.status(post).filtered[0].status_matches == [str(post)]
    assert [one.phrase for one in bob.filters()] == ["LAST"]
    bob.delete_filter_v2(spoilers)
    assert bob.filters_v2() == [] and bob.status(post).filtered == []
    word = bob.filter_create("last", ["home"], whole_word=True)
    assert bob.filter_update(word, phrase="first").phrase == bob.filter(word).phrase == "first"
    bob.filter_delete(word)
    assert bob.filters() == []


def polls(ada, bob):
    asked = ada.make_poll(["tea", "coffee"], expires_in=300, multiple=True)
    post = ada.status_post("what?", poll=asked)
    assert [option.title for option in post.poll.options] == ["tea", "coffee"]
    voted = bob.poll_vote(post.poll, [0, 1])
    assert (voted.voters_count, voted.votes_count, voted.own_votes) == (1, 2, [0, 1])
    assert bob.poll(post.poll).voted and bob.status(post.id).poll.options[1].votes_count == 1
    assert "already voted" in refused(MastodonAPIError, bob.poll_vote, post.poll, [0])
    ada.status_delete(post.id)
    refused(MastodonNotFoundError, bob.poll, post.poll)


def schedules(ada):
    now = datetime.datetime.now(datetime.timezone.utc)
    later = ada.status_post("later", scheduled_at=now + datetime.timedelta(hours=1))
    assert later.params.text == "later" and ids(ada.scheduled_statuses()) == [later.id]
    moved = ada.scheduled_status_update(later.id, now + datetime.timedelta(hours=2))
    assert moved.scheduled_at > later.scheduled_at
    assert ada.scheduled_status(later.id).scheduled_at == moved.scheduled_at
    ada.scheduled_status_delete(later.id)
    assert ada.scheduled_statuses() == []


def conversations(ada, bob):
    first = ada.status_post("@bob between us", visibility="direct")
    last = bob.status_reply(first, "agreed", visibility="direct")
    [found] = ada.conversations()
    shown = (int(found.id), found.unread, found.last_status.id)
    assert shown == (int(first.id), True, last.id), (shown, first.id, last.id)
    assert [one.acct for one in found.accounts] == ["bob"]
    assert not ada.conversations_read(found.id).unread
    assert [one.unread for one in ada.conversations() + bob.conversations()] == [False, False]
    for one, status in ((bob, last), (ada, first)):
        one.status_delete(status.id)
    assert ada.conversations() == []


def hides(ada, bob, ada_id, bob_id, post):
    assert bob.account_mute(ada_id, duration=3_600).muting
    assert ids(bob.mutes()) == [ada_id] and bob.timeline_home() == []
    assert not bob.account_unmute(ada_id).muting and bob.mutes() == []
    assert ada.account_remove_from_followers(bob_id).followed_by is False
    bob.account_follow(ada_id)
    assert not bob.account_unfollow(ada_id).following
    assert ada.account_block(bob_id).blocking and ids(ada.blocks()) == [bob_id]
    refused(MastodonNotFoundError, bob.account, ada_id)
    refused(MastodonNotFoundError, bob.status, post)
    refused(MastodonNotFoundError, bob.account_follow, ada_id)
    assert not ada.account_unblock(bob_id).blocking and ada.blocks() == []
    assert bob.status(post).id == post


def hashtags(ada, bob):
    post = ada.status_post("#Novel").id
    assert post not in ids(bob.timeline_home())
    assert bob.tag_follow("novel").following and bob.tag("novel").following
    assert [tag.name for tag in bob.followed_tags()] == ["novel"]
    assert ids(bob.timeline_home())[0] == post
    assert not bob.tag_unfollow("novel").following
    assert post not in ids(bob.timeline_home()) and bob.followed_tags() == []


def chooses(ada, bob, ada_id):
    bob.account_follow(ada_id, reblogs=False, notify=True)
    [relation] = bob.account_relationships([ada_id])
    assert relation.notifying and not relation.showing_reblogs
    post = ada.status_post("to be known").id
    newest = bob.notifications(types=["status"])[0]
    assert (newest.type, newest.status.id) == ("status", post)
    assert bob.account_follow(ada_id, reblogs=True, notify=False).showing_reblogs
    bob.status_reblog(post)
    events = listened(bob)
    ada.status_update(post, "to be known, edited")
    kind = None
    while kind != "update":
        name, value = events.queue.get(timeout=PATIENCE_SECS)
        kind = value.type if name == "notification" else None
    assert bob.notifications(types=["update"])[0].status.id == post
    assert bob.status_mute(post).muted and bob.notifications(types=["update"]) == []
    assert not bob.status_unmute(post).muted


def lacks(ada, post):
    assert "has no" in refused(MastodonAPIError, ada.report, ada.me().id, post)


def deletes(ada, bob, posted, events):
    for post in posted:
        assert ada.status_delete(post).text
        refused(MastodonNotFoundError, bob.status, post)
    heard = set()
    while not heard >= set(map(int, posted)):
        name, value = events.queue.get(timeout=PATIENCE_SECS)
        heard |= {int(value)} if name == "delete" else set()


def ends(ada, bob):
    token = ada.access_token
    ada.revoke_access_token(allow_http=True)
    ada = Mastodon(access_token=token, api_base_url=URL)
    refused(MastodonUnauthorizedError, ada.account_verify_credentials)
    assert bob.account_verify_credentials().acct == "bob"


def main():
    ada, bob = users()
    ada_id, bob_id = ada.me().id, bob.me().id
    server(ada)
    profile(ada, bob)
    finds(bob, ada_id)
    follows(ada, bob, ada_id, bob_id)
    heard_by_bob, heard_by_ada = listened(bob), listened(ada)
    post = posts(ada, bob, ada_id, heard_by_bob)
    replies_and_reactions(ada, bob, ada_id, bob_id, post)
    deletes(ada, bob, [post, *pages(ada, bob)], heard_by_ada)
    pictures(ada, bob, ada_id)
    last = ada.status_post("last").id
    approves(ada, bob, ada_id, bob_id)
    lists(bob, ada_id, last)
    filters(bob, last)
    polls(ada, bob)
    schedules(ada)
    hides(ada, bob, ada_id, bob_id, last)
    hashtags(ada, bob)
    conversations(ada, bob)
    chooses(ada, bob, ada_id)
    lacks(ada, last)
    ends(ada, bob)
    print("done")


main()
