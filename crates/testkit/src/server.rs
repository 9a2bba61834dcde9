//! Server that runs in the process of the test, on a free port.

use std::io;
use std::net::SocketAddr;

use tokio::net::TcpListener;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

/// Server with its runtime. Dropping it shuts it down, unless a test has failed.
#[derive(Debug)]
pub struct Serving {
    /// Address of the server.
    pub address: SocketAddr,
    runtime: Runtime,
    running: Option<(oneshot::Sender<()>, JoinHandle<io::Result<()>>)>,
}

impl Serving {
    /// Starts the server that `serve` returns. A message to the receiver that `serve` gets must end the server.
    pub fn start<F>(
        threads: usize,
        serve: impl FnOnce(TcpListener, oneshot::Receiver<()>) -> F,
    ) -> Self
    where
        F: Future<Output = io::Result<()>> + Send + 'static,
    {
        let runtime = Builder::new_multi_thread().worker_threads(threads).enable_all().build();
        let runtime = runtime.unwrap();
        let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
        let address = listener.local_addr().unwrap();
        let (stop, stopped) = oneshot::channel();
        let running = runtime.spawn(serve(listener, stopped));
        Self { address, runtime, running: Some((stop, running)) }
    }

    /// Runs a future on the server's runtime.
    pub fn block_on<T>(&self, future: impl Future<Output = T>) -> T {
        self.runtime.block_on(future)
    }

    /// Shuts down and waits until the server has ended.
    pub fn stop(&mut self) {
        if let Some((stop, running)) = self.running.take() {
            stop.send(()).unwrap();
            self.runtime.block_on(running).unwrap().unwrap();
        }
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            self.stop();
        }
    }
}
