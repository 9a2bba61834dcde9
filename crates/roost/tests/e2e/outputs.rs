//! Tests of outputs that cannot be written (a full disk, a closed pipe, a reader that does not read), for the log of a
//! server and for commands. Tests of signals that must not end a server.

use std::fs::{self, File};
use std::io::Read as _;
use std::net::{SocketAddr, TcpListener};
use std::os::unix::fs::{FileTypeExt as _, symlink};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Instant;

use rustix::process::{Pid, Signal, kill_process};

use crate::support::PATIENCE;
use crate::support::http::Client;
use crate::support::process::{Process, Server, roost, serve};

/// Output that accepts nothing, or only little.
#[derive(Clone, Copy, Debug)]
enum Bad {
    Full,
    Closed,
    /// The reader never reads.
    Stuck,
}

impl Bad {
    const ALL: [Self; 3] = [Self::Full, Self::Closed, Self::Stuck];

    /// Opens the output. Returns it, and the reader of the pipe, which must stay open.
    fn open(self) -> (Stdio, Option<std::io::PipeReader>) {
        match self {
            Self::Full => (File::options().write(true).open("/dev/full").unwrap().into(), None),
            Self::Closed => (std::io::pipe().unwrap().1.into(), None),
            Self::Stuck => {
                let (reader, writer) = std::io::pipe().unwrap();
                (writer.into(), Some(reader))
            }
        }
    }
}

struct Killed(Child);

impl Drop for Killed {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

/// Waits until a server serves at this address.
fn ready(server: &mut Killed, address: SocketAddr) -> Client {
    let start = Instant::now();
    loop {
        assert_eq!(server.0.try_wait().unwrap(), None, "the server has ended");
        assert!(start.elapsed() < PATIENCE, "the server does not serve");
        if std::net::TcpStream::connect(address).is_ok() {
            let mut client = Client::new(address, None);
            if client.send("GET", "/readyz", &[], b"").is_ok_and(|answer| answer.status == 200) {
                return client;
            }
        }
        std::thread::yield_now();
    }
}

#[test]
fn a_server_serves_and_stops_in_order_whatever_becomes_of_its_outputs() {
    for bad in Bad::ALL {
        let data = tempfile::tempdir().unwrap();
        let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let (out, _out_reader) = bad.open();
        let (err, _err_reader) = bad.open();
        let mut command = roost(["serve", "--open", "--listen", &address.to_string(), "--data"]);
        // The log has more lines than fit into a pipe.
        command.arg(data.path()).env("ROOST_LOG", "debug").stdout(out).stderr(err);
        let mut server = Killed(command.spawn().unwrap());
        let mut client = ready(&mut server, address);
        for _ in 0..1_000 {
            assert_eq!(client.get("/v1/users?limit=1").status, 200, "{bad:?}");
        }
        kill_process(Pid::from_child(&server.0), Signal::TERM).unwrap();
        assert_eq!(server.0.wait().unwrap().code(), Some(0), "{bad:?}");
    }
}

#[test]
fn a_log_whose_reader_is_gone_does_not_end_a_server() {
    let data = tempfile::tempdir().unwrap();
    let mut command = serve(data.path(), &["--open"]);
    command.env("ROOST_LOG", "debug").stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut server = Killed(command.spawn().unwrap());
    let (mut out, mut err) = (server.0.stdout.take().unwrap(), server.0.stderr.take().unwrap());
    let mut said = Vec::new();
    while said.last() != Some(&b'\n') {
        let mut byte = [0];
        out.read_exact(&mut byte).unwrap();
        said.push(byte[0]);
    }
    let mut some = [0; 16];
    err.read_exact(&mut some).unwrap();
    drop((out, err));
    let address = String::from_utf8(said).unwrap();
    let address = address.trim().strip_prefix("roost serves http://").unwrap().parse().unwrap();
    let mut client = Client::new(address, None);
    for _ in 0..10 {
        assert_eq!(client.get("/v1/users?limit=1").status, 200);
    }
    kill_process(Pid::from_child(&server.0), Signal::TERM).unwrap();
    assert_eq!(server.0.wait().unwrap().code(), Some(0));
}

#[test]
fn no_signal_but_those_to_stop_ends_a_server_and_hup_reloads_the_level_of_the_log() {
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("roost.toml");
    fs::write(&config, "log-level = \"warn\"\n").unwrap();
    let mut command = serve(&folder.path().join("data"), &["--open", "--config"]);
    let server = Server::start(command.arg(&config));
    for signal in [Signal::USR1, Signal::USR2, Signal::HUP] {
        server.process.signal(signal);
        assert_eq!(server.client().get("/healthz").status, 200, "{signal:?}");
    }
    fs::write(&config, "log-level = \"debug\"\n").unwrap();
    server.process.signal(Signal::HUP);
    let start = Instant::now();
    // After SIGHUP, the server logs each response.
    while start.elapsed() < PATIENCE {
        server.client().get("/v1/users?limit=1").expect(200);
        if server.process.log().contains("/v1/users") {
            break;
        }
    }
    fs::write(&config, "log-level = 3\n").unwrap();
    server.process.signal(Signal::HUP);
    assert!(server.process.logged("the log level is unchanged").is_some());
    let ended = server.stop();
    assert!(ended.err.contains("/v1/users"), "{}", ended.err);
}

#[test]
fn a_key_is_accepted_when_the_command_that_makes_it_ends_and_refused_when_it_is_revoked() {
    let data = tempfile::tempdir().unwrap();
    let server = Server::start(&mut serve(data.path(), &[]));
    for number in 0..20 {
        let name = format!("k{number}");
        let make = |arguments: &[&str]| {
            let mut command = roost(["key"]);
            let ended =
                Process::start(command.args(arguments).arg("--data").arg(data.path())).ended();
            assert!(ended.status.success(), "{ended:#?}");
            ended.out.trim().to_owned()
        };
        let key = make(&["create", &name, "--scope", "admin,read"]);
        let mut client = Client::new(server.address, Some(key));
        assert_eq!(client.get("/v1/users").status, 200);
        make(&["revoke", &name]);
        assert_eq!(client.get("/v1/users").status, 401);
    }
    server.stop();
}

/// Runs a command with this standard output. Returns its exit code and its standard error.
fn with_output(command: &mut Command, out: Stdio) -> (Option<i32>, String) {
    let ended = command.stdout(out).stderr(Stdio::piped()).output().unwrap();
    (ended.status.code(), String::from_utf8(ended.stderr).unwrap())
}

#[test]
fn a_secret_that_nobody_can_read_is_never_in_effect() {
    let data = tempfile::tempdir().unwrap();
    let server = Server::start(&mut serve(data.path(), &[]));
    let first = fs::read_to_string(data.path().join("first-key")).unwrap().trim().to_owned();
    let accounts = || {
        let mut command = roost(["account", "list", "--data"]);
        Process::start(command.arg(data.path())).ended().out
    };
    for bad in [Bad::Full, Bad::Closed] {
        for arguments in [&["account", "create", "ann"][..], &["key", "create", "k"]] {
            let mut command = roost(arguments);
            let (code, err) = with_output(command.arg("--data").arg(data.path()), bad.open().0);
            assert_eq!(code, Some(1), "{arguments:?} {bad:?}: {err}");
            assert!(err.contains("nothing was changed"), "{err}");
        }
    }
    for redirection in [">&-", ">/dev/null"] {
        let script = format!("exec \"$0\" account create ann --data \"$1\" {redirection}");
        let program = roost([""; 0]).get_program().to_owned();
        let mut command = Command::new("sh");
        command.args(["-c", &script]).arg(program).arg(data.path());
        let ended = Process::start(&mut command).ended();
        assert_eq!(ended.status.code(), Some(1), "{redirection}: {ended:#?}");
    }
    assert!(!accounts().contains("ann"), "no account was made");
    let mut client = Client::new(server.address, Some(first));
    assert_eq!(client.get("/v1/users").json()["items"].as_array().unwrap().len(), 0);
    let keys = Process::start(roost(["key", "list", "--data"]).arg(data.path())).ended().out;
    assert_eq!(keys.lines().count(), 2, "{keys}");
    server.stop();
}

#[test]
fn a_reader_that_has_read_enough_ends_no_command_with_an_error() {
    let data = tempfile::tempdir().unwrap();
    Server::start(&mut serve(data.path(), &[])).stop();
    let drawing = data.path().join("drawing.txt");
    fs::write(&drawing, "0".repeat(255) + "f").unwrap();
    let data_path = data.path().to_str().unwrap();
    for arguments in [
        &["account", "list", "--data", data_path][..],
        &["key", "list", "--data", data_path],
        &["verify", "--data", data_path],
        &["recognize", drawing.to_str().unwrap()],
        &["lab", "list"],
        &["population", "--users", "100"],
    ] {
        let (code, err) = with_output(&mut roost(arguments), Bad::Closed.open().0);
        assert_eq!(code, Some(0), "{arguments:?}: {err}");
        assert!(!err.contains("panicked") && !err.contains("error:"), "{arguments:?}: {err}");
        let (code, err) = with_output(&mut roost(arguments), Bad::Full.open().0);
        assert_eq!(code, Some(1), "{arguments:?}: {err}");
        assert!(err.contains("cannot write to"), "{arguments:?}: {err}");
    }
}

#[test]
fn outputs_go_to_pipes_devices_and_through_links() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    Server::start(&mut serve(&data, &["--open"])).stop();
    let at = |name: &str| folder.path().join(name);
    let run = |command: &str, to: &Path| {
        let mut command = roost([command, "--data", data.to_str().unwrap(), "--out"]);
        Process::start(command.arg(to)).ended()
    };
    for command in ["backup", "export"] {
        let link = at(&format!("{command}.link"));
        symlink(format!("{command}.file"), &link).unwrap();
        assert!(run(command, &link).status.success());
        assert!(link.symlink_metadata().unwrap().is_symlink());
        let whole = fs::read(at(&format!("{command}.file"))).unwrap();
        assert!(whole.len() > 100, "{command}");
        let pipe = at(&format!("{command}.pipe"));
        assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        let reader = std::thread::spawn({
            let pipe = pipe.clone();
            move || fs::read(pipe).unwrap()
        });
        assert!(run(command, &pipe).status.success());
        assert_eq!(reader.join().unwrap().len(), whole.len(), "{command}");
        assert!(pipe.symlink_metadata().unwrap().file_type().is_fifo());
        let refused = run(command, Path::new("/dev/full"));
        assert!(!refused.status.success() && refused.err.contains("No space left"), "{refused:#?}");
        let missing = run(command, &at("none/file"));
        assert!(missing.err.contains("none/file"), "{missing:#?}");
    }
}

#[test]
fn an_export_of_a_server_says_what_is_wrong_with_the_server() {
    let data = tempfile::tempdir().unwrap();
    let server = Server::start(&mut serve(data.path(), &[]));
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    for command in ["export", "backup"] {
        let run = |address: SocketAddr| {
            let url = format!("http://{address}");
            let mut command = roost([command, "--server", &url, "--out"]);
            command.arg(data.path().join("out")).env("ROOST_SERVER_KEY", "roost_wrong");
            Process::start(&mut command).ended().err
        };
        for (err, expect) in
            [(run(server.address), "set ROOST_SERVER_KEY"), (run(free), "cannot connect to")]
        {
            assert!(err.contains(expect) && !err.contains("not a backup"), "{command}: {err}");
        }
    }
    server.stop();
}
