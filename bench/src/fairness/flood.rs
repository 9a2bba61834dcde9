//! Processes that use processor time while another client is measured: one floods a server, the other only spins.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use clap::Args;
use sim::client::Requests;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use super::floods::{Flood, command};
use crate::rig::KEY;

/// Period in which a spinning thread spins and sleeps once.
const SPIN_PERIOD: Duration = Duration::from_millis(1);
/// Pause before a broken connection is opened again.
const RECONNECT: Duration = Duration::from_millis(5);

/// Floods a server until it is killed.
#[derive(Args)]
pub(crate) struct Flooder {
    /// Flood to send
    #[arg(value_enum)]
    flood: Flood,
    /// Address of the server
    #[arg(long)]
    address: SocketAddr,
    /// Number of connections
    #[arg(long)]
    connections: usize,
}

impl Flooder {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        runtime.block_on(async {
            let bytes: Arc<[u8]> = self.flood.bytes(&self.address.to_string()).into();
            let mut tasks = tokio::task::JoinSet::new();
            for _ in 0..self.connections {
                let (flood, address, bytes) = (self.flood, self.address, Arc::clone(&bytes));
                tasks.spawn(async move {
                    loop {
                        // A server may refuse a flood and close the connection. Open it again.
                        let _broken = connection(flood, address, &bytes).await;
                        tokio::time::sleep(RECONNECT).await;
                    }
                });
            }
            tasks.join_all().await;
        });
        Ok(())
    }
}

/// Writes without waiting for responses, and drops the responses.
async fn connection(flood: Flood, address: SocketAddr, bytes: &[u8]) -> std::io::Result<()> {
    let mut stream = TcpStream::connect(address).await?;
    let mut thrown = vec![0; 256 << 10];
    if flood.reconnects() {
        for _ in 0..1_000 {
            stream.write_all(bytes).await?;
            let _begun = stream.read(&mut thrown).await?;
            stream = TcpStream::connect(address).await?;
        }
        return Ok(());
    }
    if !flood.is_http() {
        let mut login = Vec::new();
        command(&mut login, &[b"AUTH", KEY.as_bytes()]);
        stream.write_all(&login).await?;
    }
    let (mut reader, mut writer) = stream.into_split();
    let write = async {
        loop {
            writer.write_all(bytes).await?;
        }
    };
    let read = async {
        while reader.read(&mut thrown).await? > 0 {}
        Ok(())
    };
    tokio::select! {
        ended = write => ended,
        ended = read => ended,
    }
}

/// Spins on two threads until it is killed.
#[derive(Args)]
pub(crate) struct Spinner {
    /// Share of the time that each thread spins, from 0 to 1
    #[arg(long)]
    share: f64,
}

impl Spinner {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let spin = SPIN_PERIOD.mul_f64(self.share.clamp(0.0, 1.0));
        let threads = [(); 2].map(|()| {
            std::thread::spawn(move || -> std::convert::Infallible {
                loop {
                    let start = Instant::now();
                    while start.elapsed() < spin {
                        std::hint::spin_loop();
                    }
                    if spin < SPIN_PERIOD {
                        std::thread::sleep(SPIN_PERIOD - spin);
                    }
                }
            })
        });
        for thread in threads {
            drop(thread.join());
        }
        Ok(())
    }
}

/// Request for the home timeline of the stranger.
pub(super) fn home(address: SocketAddr) -> Vec<u8> {
    let mut bytes = Vec::new();
    Requests::new(&address.to_string(), Some(KEY)).get("/v1/users/0/timeline", &mut bytes);
    bytes
}
