//! Tests of the commands in the documents: every block of every document is pasted into a shell, as a reader does, and
//! its output is compared. Each document has a folder and an address of its own.
//!
//! Commands that would change the machine (systemd, apt, docker, sudo) are replaced by shell functions that do nothing.
//! Paths of the machine, such as `/etc`, are replaced by paths below the folder.

use std::fmt::Write as _;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::Command;

use rcgen::{CertificateParams, KeyPair};

use crate::support::skipped;

/// Block of a document.
struct Block {
    how: How,
    /// Replacements in the text of the block.
    replace: &'static [(&'static str, &'static str)],
    /// Text pasted before the block.
    before: &'static str,
    /// Text pasted after the block.
    after: &'static str,
    /// Texts that the output of the block and of `after` must contain, in this order.
    says: &'static [&'static str],
}

enum How {
    /// The block is run.
    Run,
    /// The block is slow or for other machines, so it is not run. Its `roost` commands get `--help` as the last
    /// argument: this parses the other arguments.
    Parse,
    /// The block is stored in this file.
    File(&'static str),
    /// The block is only text, not commands.
    Shown,
}

const RUN: Block = Block { how: How::Run, replace: &[], before: "", after: "", says: &[] };
const PARSE: Block = Block { how: How::Parse, ..RUN };
const SHOWN: Block = Block { how: How::Shown, ..RUN };

const fn says(says: &'static [&'static str]) -> Block {
    Block { says, ..RUN }
}

/// Documents that have blocks, with what is done with each block, in order.
const DOCUMENTS: &[(&str, &[Block])] = &[
    ("README.md", README),
    ("docs/accounts.md", ACCOUNTS),
    ("docs/api.md", API),
    ("docs/changes.md", CHANGES),
    // The tests of the examples run these.
    ("docs/clients.md", &[SHOWN, SHOWN]),
    ("docs/cluster.md", &[SHOWN, PARSE, PARSE, PARSE, PARSE, PARSE]),
    ("docs/feeds.md", FEEDS),
    ("docs/import.md", IMPORT),
    ("docs/install.md", INSTALL),
    ("docs/lab.md", &[PARSE, PARSE, SHOWN, PARSE]),
    ("docs/operations.md", OPERATIONS),
    ("docs/pages.md", PAGES),
    ("docs/proxy.md", PROXY),
    ("docs/redis.md", REDIS),
    ("docs/reports.md", &[PARSE]),
    ("docs/security.md", SECURITY),
    ("docs/simulation.md", &[PARSE, PARSE, PARSE, PARSE]),
    ("docs/testing.md", TESTING),
    ("docs/webhooks.md", WEBHOOKS),
];

const README: &[Block] = &[
    says(&[]),
    says(&["roost serves http://"]),
    says(&[
        r#""handle":"ada""#,
        r#""handle":"bob""#,
        r#""text":"hello @ada""#,
        r#"{"items":[{"#,
        r#""text":"hello @ada""#,
    ]),
    says(&["roost serves https://"]),
    PARSE,
];

const FEEDS: &[Block] = &[
    SHOWN,
    Block {
        before: r#"
            roost serve --open
            for user in ada bob; do
                curl $URL/v1/users -H 'Content-Type: application/json' -d "{\"handle\": \"$user\"}"
            done
            POST=$(curl $URL/v1/users/@bob/posts -H 'Content-Type: application/json' -d '{"text": "hello"}' |
                grep -o '"id":"[0-9]*"' | head -1 | cut -d'"' -f4)
        "#,
        after: "curl $URL/v1/users/@ada/less; curl $URL/v1/users/@ada/not_interested",
        ..says(&["roost serves http", r#""text":"hello""#, r#""handle":"bob""#])
    },
    RUN,
    says(&[r#""items":[]"#]),
    Block {
        how: How::File("feeds.toml"),
        after: r#"
            roost serve --open --feeds feeds.toml
            curl $URL/v1/users/@ada/feeds/gardeners
        "#,
        ..says(&["roost serves http", "\"items\":[]"])
    },
    PARSE,
];

const ACCOUNTS: &[Block] = &[
    Block {
        after: "roost account list",
        ..says(&["roost serves https://", "ann ", "ann@example.org"])
    },
    Block { how: How::File("about.toml"), ..RUN },
    // The server shows the text of the file, and bob has signed up.
    Block {
        before: r#"
            printf GIF89a > lyon.png
            roost serve --registrations approval --about about.toml
            field() { grep -o "\"$1\":\"[^\"]*\"" | head -1 | cut -d'"' -f4; }
            curl $URL/api/v2/instance
            APP=$(curl $URL/api/v1/apps -d client_name=x -d redirect_uris=urn:ietf:wg:oauth:2.0:oob -d scopes=write)
            ID=$(echo "$APP" | field client_id) SECRET=$(echo "$APP" | field client_secret)
            TOKEN=$(curl $URL/oauth/token -d grant_type=client_credentials -d client_id=$ID -d client_secret=$SECRET \
                -d scope=write | field access_token)
            curl $URL/api/v1/accounts -H "Authorization: Bearer $TOKEN" -d username=bob -d email=bob@example.org \
                -d password=a-secret-of-bob -d agreement=true -d locale=en > said.bob || true
            grep -o 'waits for approval' said.bob
        "#,
        replace: &[("test-tokens 500", "test-tokens 2")],
        after: "roost account list",
        ..says(&["Cats of Lyon", "waits for approval", "HANDLE", "pending", "HANDLE", "ann "])
    },
];

const API: &[Block] = &[
    says(&["roost serves http://"]),
    says(&[
        r#""handle":"ada""#,
        r#""handle":"bob""#,
        r#""text":"hello @ada""#,
        r#"{"items":[{"#,
        r#""text":"hello @ada""#,
        r#"{"items":[{"#,
        r#""text":"hello @ada""#,
        r#""favourited":true"#,
        r#""favourite""#,
    ]),
    says(&["back soon", r#"{"items":[{"#, "back soon", r#"{"items":[{"#, r#""handle":"ada""#]),
    says(&[r#""handle":"leaving""#]),
    says(&["200 OK", "not yet posted"]),
    says(&[r#""handle":"bob""#, r#""muting":true"#]),
    SHOWN,
    says(&["201 Created", "once", "201 Created", "idempotent-replayed: true", "once"]),
    Block {
        after: "curl $URL/v1/buckets/drafts/keys/ada; curl $URL/v1/buckets/drafts/keys/new",
        ..says(&["only if unchanged", "only if there is none"])
    },
    says(&[r#""ok":true"#, r#""ok":true"#, r#""ok":true"#, r#""ok":true"#]),
    says(&[r#""label":"7""#, r#""set":"mine""#, r#""label":"7""#]),
];

const CHANGES: &[Block] = &[
    Block {
        before: "roost serve; stop; KEY=$(roost key create feed --scope read,admin)",
        ..says(&["roost serves http://"])
    },
    says(&[r#"{"items":[]"#]),
    SHOWN,
];

const WEBHOOKS: &[Block] = &[
    Block {
        replace: &[(
            "https://search.example/roost",
            "http://127.0.0.1:$REDIS_PORT --allow-private > secret",
        )],
        after: "export SECRET=$(cat secret); echo $SECRET",
        ..says(&["roost serves http", "whsec_"])
    },
    SHOWN,
    // The receiver verifies the signature.
    Block {
        how: How::File("receiver.py"),
        after: "
            PORT=$REDIS_PORT timeout 60 python3 receiver.py > /dev/null &
            RECEIVER=$!
            for try in $(seq 200); do roost webhook test search 2> /dev/null && break; done
            SECRET=; kill $RECEIVER
            roost webhook list
        ",
        ..says(&["the receiver answered 204", "idle"])
    },
];

const IMPORT: &[Block] = &[
    Block {
        before: "
            roost serve; stop
            ADMIN=$(roost key create admin --scope read,write,admin)
            roost serve
            curl $URL/v1/users -H \"Authorization: Bearer $ADMIN\" -H 'Content-Type: application/json' -d '{\"handle\":\"ann\"}'
            ROOST_SERVER_KEY=$ADMIN roost backup --out roost.backup
        ",
        after: "zstd -dc facts.ndjson.zst | grep '\"user\"'; roost serve --data new-data",
        ..says(&["exported", "exported", "exported", "imported", "imported", r#""handle":"ann""#])
    },
    Block {
        how: How::File("example.ndjson"),
        after: "roost import example.ndjson --data example; roost export --data example",
        ..says(&["imported", r#""Hello @bob!""#, r#""Gone tomorrow""#, r#""color""#, r#"{"end""#])
    },
];

const INSTALL: &[Block] = &[
    says(&[]),
    Block { before: "roost serve", ..says(&["roost_"]) },
    says(&["roost serves http://"]),
    says(&[]),
    // In a container, the directory is another one.
    says(&[]),
    Block {
        before: "roost serve; stop; KEY=$(roost key create check --scope read); roost serve",
        ..says(&[r#""ok":true"#, r#"{"items":[]"#])
    },
    Block { after: "roost key list", ..says(&["roost_", "prometheus", "read"]) },
];

const OPERATIONS: &[Block] = &[
    Block {
        before: "
            mkdir backups mnt
            roost serve; stop
            ADMIN=$(roost key create admin --scope read,write,admin)
            roost serve
        ",
        ..says(&["roost_", "wrote", "groups of the log"])
    },
    says(&["wrote"]),
    Block {
        before: "export ROOST_SERVER_KEY=$ADMIN",
        after: "zstd -dc roost.backup.zst > roost.backup; roost verify roost.backup",
        ..says(&["no damage"])
    },
    Block {
        after: "curl $URL/v1/users -H \"Authorization: Bearer $ADMIN\" -H 'Content-Type: application/json' -d '{\"handle\":\"ann\"}'",
        ..says(&["roost serves http://", r#""handle":"ann""#])
    },
    says(&["archive"]),
    says(&["no damage", "no damage", "no damage"]),
    says(&["restored", "roost serves http://"]),
    Block {
        after: "
            roost serve --data new-data
            curl $URL/v1/users/@ann -H \"Authorization: Bearer $ADMIN\"
        ",
        ..says(&["restored", "roost serves http://", r#""handle":"ann""#])
    },
    SHOWN,
    Block {
        replace: &[(" DATA ", " roost-data "), ("DIR", "repaired")],
        ..says(&["nothing is lost", "roost serves http://"])
    },
    Block {
        replace: &[
            ("BACKUP", "backups/roost.backup"),
            ("ADIR", "mnt/roost-archive"),
            ("NEW", "new-data"),
        ],
        ..says(&["restored", "roost serves http://"])
    },
    Block {
        replace: &[("ADIR", "mnt/roost-archive"), ("DIR", "roost-data")],
        ..says(&["archive"])
    },
];

const PAGES: &[Block] = &[
    Block { before: "mkdir e2e", after: "cd \"$FOLDER\"", ..RUN },
    Block { after: "curl $URL/ | grep -c main.js", ..says(&["roost serves http://", "1"]) },
    says(&["roost serves https://"]),
];

const PROXY: &[Block] = &[
    Block {
        before: "mkdir -p etc/roost; cp fullchain.pem privkey.pem etc/roost",
        ..says(&["roost serves https://"])
    },
    Block {
        before: "mkdir -p etc/letsencrypt/renewal-hooks/deploy",
        after: "RENEWED_LINEAGE=/another etc/letsencrypt/renewal-hooks/deploy/roost; echo unchanged",
        ..says(&["unchanged"])
    },
    SHOWN,
    // Other tests run nginx, if it is installed.
    SHOWN,
    SHOWN,
    says(&["roost serves http://"]),
];

const REDIS: &[Block] = &[
    Block {
        before: "
            roost serve --redis-listen \"127.0.0.1:$REDIS_PORT\"
            KEY=$(cat roost-data/first-key)
        ",
        replace: &[("-p 6380", "-p \"$REDIS_PORT\"")],
        ..says(&["OK"])
    },
    says(&[]),
];

const SECURITY: &[Block] = &[Block {
    before: "roost serve",
    after: "roost key list",
    ..says(&["roost_", "default", "app", "read,write", "app", "read,write"])
}];

const TESTING: &[Block] =
    &[SHOWN, SHOWN, SHOWN, SHOWN, SHOWN, SHOWN, SHOWN, SHOWN, SHOWN, SHOWN, SHOWN];

/// Shell functions that replace commands in documents. A server runs until the next one is started. It is stopped while
/// a command needs its directory.
const SHELL: &str = r#"
set -eu
exec 2>&1
FOLDER=$PWD SERVER= URL=http://$ADDRESS TMPDIR=$PWD
export TMPDIR
curl() { case $1 in -f*) command curl "$@";; *) command curl --fail-with-body -sS "$@";; esac; echo; }
stop() { [ -z "$SERVER" ] || { kill -TERM "$SERVER"; wait "$SERVER"; SERVER=; }; }
trap '[ -z "$SERVER" ] || kill -KILL "$SERVER"' EXIT
serve() {
    stop
    rm -f said && mkfifo said
    "$PROGRAM" "$@" > said 2> said.err &
    SERVER=$!
    exec 3< said
    while read -r line <&3 || { cat said.err; exit 1; }; do
        echo "$line"
        case $line in "roost serves http"*) break;; esac
    done
}
roost() {
    if [ -n "${PARSE-}" ]; then
        "$PROGRAM" "$@" --help > help || { cat help; exit 1; }
        return
    fi
    case "$* " in
    serve*" --listen "*) serve "$@"; return;;
    serve*) serve "$@" --listen "$ADDRESS"; return;;
    import*|restore*) rm -rf new-data;;
    esac
    case "$* " in
    "verify --data"*|repair*|backup*" --data "*|export*" --data "*)
        stop
        "$PROGRAM" "$@"
        serve serve --listen "$ADDRESS"
        return;;
    *" --server "*|"export --backup"*) ;;
    backup*|export*) set -- "$@" --server "$URL";;
    esac
    "$PROGRAM" "$@"
}
cargo() { case "$1" in run) shift 3; PARSE=1 roost "$@";; esac; }
sudo() { [ "$1" != -u ] || shift 2; "$@"; }
ssh() { sh -c "$2"; }
apt() { :; }; docker() { :; }; install() { :; }; journalctl() { :; }; nats() { :; }; node() { :; }; npm() { :; }
systemctl() { :; }; stub() { :; }
"#;

/// Paths and names in documents, with their replacements in the test.
const REPLACED: &[(&str, &str)] = &[
    ("target/release/roost", "roost"),
    ("target/dist/roost", "roost"),
    ("target/debug/roost", "roost"),
    ("systemd-sysusers", "stub"),
    ("127.0.0.1:8998", "$ADDRESS"),
    ("0.0.0.0:8998", "$ADDRESS"),
    ("0.0.0.0:443", "$ADDRESS"),
    ("/var/lib/roost", "roost-data"),
    ("/mnt/backups", "mnt"),
    ("/backups", "backups"),
    ("/srv/roost", "srv"),
    ("/etc/", "etc/"),
    ("crates/web", "$WEB"),
    ("roost_…", "$ADMIN"),
];

/// The blocks of a document: those between fences, and those indented by at least four spaces.
pub(crate) fn blocks(text: &str) -> Vec<String> {
    let mut blocks = Vec::new();
    let (mut block, mut fence, mut first, mut empty_lines) = (String::new(), None, 0, 1);
    for line in text.lines().chain(["end"]) {
        let indent = line.len() - line.trim_start().len();
        let is_fence = line.trim_start().starts_with("```");
        if let Some(indent) = fence {
            if is_fence {
                blocks.push(std::mem::take(&mut block));
                (fence, empty_lines) = (None, 0);
            } else {
                writeln!(block, "{}", line.get(indent..).unwrap_or_default()).unwrap();
            }
        } else if line.trim().is_empty() {
            empty_lines += 1;
        } else if indent >= 4 && !is_fence && (empty_lines > 0 || !block.is_empty()) {
            // Empty lines within a block belong to the block.
            let between = if block.is_empty() { 0 } else { empty_lines };
            first = if block.is_empty() { indent } else { first };
            let line = line.get(first.min(indent)..).unwrap_or_default();
            writeln!(block, "{}{line}", "\n".repeat(between)).unwrap();
            empty_lines = 0;
        } else {
            if !block.is_empty() {
                blocks.push(std::mem::take(&mut block));
            }
            (fence, empty_lines) = (is_fence.then_some(indent), 0);
        }
    }
    blocks
}

pub(crate) fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

pub(crate) fn text(document: &str) -> String {
    std::fs::read_to_string(repository().join(document)).unwrap()
}

/// Shell input for a document. It prints the number of each block before it runs the block.
fn script(document: &str, pasted: &[Block], folder: &Path, address: &str) -> String {
    let found = blocks(&text(document));
    assert_eq!(found.len(), pasted.len(), "{document} has other blocks: {found:#?}");
    let mut script = SHELL.to_owned();
    for (number, (text, block)) in found.iter().zip(pasted).enumerate() {
        let replaced = block.replace.iter().chain(REPLACED);
        let text = replaced.fold(text.clone(), |text, (from, to)| text.replace(from, to));
        // Replace the variable here, because the shell does not replace it within quotes.
        let text = text.replace("$ADDRESS", address);
        writeln!(script, "echo '--- {number}'\n{}", block.before).unwrap();
        match block.how {
            How::Run => writeln!(script, "{text}").unwrap(),
            How::Parse => {
                let commands = text.lines().filter(|line| !line.trim().starts_with("... "));
                let commands: Vec<&str> = commands.collect();
                writeln!(script, "(PARSE=1; curl() {{ :; }}\n{}\n)", commands.join("\n")).unwrap();
            }
            How::File(name) => std::fs::write(folder.join(name), text).unwrap(),
            How::Shown => {}
        }
        writeln!(script, "{}", block.after).unwrap();
    }
    script + "echo '--- end'\nstop\n"
}

/// Pastes the blocks of a document. An error contains the whole output.
fn check(document: &str, pasted: &[Block], ports: [u16; 2]) -> Result<(), String> {
    let folder = tempfile::tempdir().unwrap();
    let params = CertificateParams::new(["localhost".to_owned()]).unwrap();
    let key = KeyPair::generate().unwrap();
    let cert = params.self_signed(&key).unwrap().pem();
    for (name, text) in [("fullchain.pem", cert), ("privkey.pem", key.serialize_pem())] {
        std::fs::write(folder.path().join(name), text).unwrap();
    }
    let address = format!("127.0.0.1:{}", ports[0]);
    let mut shell = Command::new("sh");
    shell.args(["-c", &script(document, pasted, folder.path(), &address)]);
    shell.current_dir(folder.path()).env("ADDRESS", &address);
    shell.env("REDIS_PORT", ports[1].to_string()).env("PROGRAM", env!("CARGO_BIN_EXE_roost"));
    shell.env("WEB", repository().join("crates/web"));
    let ended = shell.output().unwrap();
    let out = String::from_utf8_lossy(&ended.stdout);
    let about = format!("{document}:\n{out}");
    if !ended.status.success() {
        return Err(format!("the last block failed: {about}"));
    }
    let mut rest = out.as_ref();
    for (number, block) in pasted.iter().enumerate() {
        let (_, after) = rest.split_once(&format!("--- {number}\n")).unwrap();
        let (mut output, _) = after.split_once("--- ").unwrap();
        for part in block.says {
            let Some((_, after)) = output.split_once(part) else {
                return Err(format!("block {number} does not say {part}: {about}"));
            };
            output = after;
        }
        rest = after;
    }
    if out.contains(r#""error""#) { Err(format!("an error: {about}")) } else { Ok(()) }
}

#[test]
fn every_block_of_every_document_works_when_it_is_pasted() {
    for program in ["curl", "zstd", "redis-cli", "python3"] {
        if Command::new(program).arg("--version").output().is_err() {
            return skipped(&format!("{program} is not installed"));
        }
    }
    let free = || TcpListener::bind("127.0.0.1:0").unwrap();
    let free: Vec<_> = DOCUMENTS.iter().map(|_| [free(), free()]).collect();
    let ports = free.iter().map(|both| both.each_ref().map(|one| one.local_addr().unwrap().port()));
    let ports: Vec<_> = ports.collect();
    drop(free);
    let checked =
        DOCUMENTS.iter().zip(ports).map(|((name, blocks), ports)| check(name, blocks, ports));
    let failed: Vec<String> = checked.filter_map(Result::err).collect();
    assert!(failed.is_empty(), "{}", failed.join("\n\n"));
}

#[test]
fn no_document_is_forgotten() {
    let named: Vec<&str> = DOCUMENTS.iter().map(|(name, _)| *name).collect();
    for entry in std::fs::read_dir(repository().join("docs")).unwrap() {
        let name = format!("docs/{}", entry.unwrap().file_name().to_str().unwrap());
        if name.ends_with(".md") && !named.contains(&name.as_str()) {
            assert_eq!(blocks(&text(&name)), Vec::<String>::new(), "{name}");
        }
    }
}
