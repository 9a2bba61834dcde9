//! Named buckets.

use crate::client::TestServer;

#[test]
fn buckets_are_made_chosen_listed_and_deleted() {
    let server = TestServer::open();
    let mut other = server.client();
    server.client().check(&[
        ("BUCKET USE drafts", "-ERR there is no such bucket"),
        ("BUCKET CREATE drafts", "1"),
        ("BUCKET CREATE drafts", "0"),
        ("BUCKET CREATE archive", "1"),
        ("BUCKET CREATE a.b", "-ERR the name of a bucket is 1 to 64..."),
        ("BUCKET LIST", "[\"archive\", \"drafts\"]"),
        ("BUCKET LIST COUNT 1", "[\"archive\"]"),
        ("BUCKET LIST AFTER archive", "[\"drafts\"]"),
        ("BUCKET LIST COUNT 0", "-ERR syntax error"),
        ("SET k 0", "OK"),
        ("BUCKET USE drafts", "OK"),
        ("GET k", "nil"),
        ("SET k 1", "OK"),
        ("SELECT 0", "OK"),
        ("GET k", "\"0\""),
        ("BUCKET USE drafts", "OK"),
        ("GET k", "\"1\""),
        ("BUCKET DELETE drafts", "1"),
        ("BUCKET DELETE drafts", "0"),
        ("GET k", "nil"),
        ("SET k 2", "-ERR there is no such bucket"),
        ("BUCKET DELETE 3", "-ERR buckets 0 to 15 cannot be deleted, only emptied"),
        ("BUCKET USE 0", "OK"),
        ("GET k", "\"0\""),
        ("BUCKET FLY x", "-ERR unknown subcommand 'FLY'. Try BUCKET HELP."),
        ("BUCKET USE", "-ERR wrong number of arguments for 'bucket|use' command"),
        ("MULTI", "OK"),
        ("BUCKET USE archive", "-ERR Command not allowed inside a transaction"),
    ]);
    assert_eq!(other.line("GET k"), "\"0\"");
}
