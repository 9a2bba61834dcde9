//! The control: a server with the plain HTTP library, used as in its documentation.

use std::net::SocketAddr;

use axum::Router;
use axum::body::Bytes;
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::routing::get;
use clap::Args;

/// Serves constant bytes as the response to every GET, and to every POST once its body is read.
#[derive(Args)]
pub(crate) struct Control {
    /// Bytes of the response to GET
    #[arg(long)]
    get_bytes: usize,
    /// Bytes of the response to POST
    #[arg(long)]
    post_bytes: usize,
}

impl Control {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let json = || [(CONTENT_TYPE, "application/json")];
        let got = Bytes::from(vec![b'x'; self.get_bytes]);
        let posted = Bytes::from(vec![b'x'; self.post_bytes]);
        let read = move || std::future::ready((json(), got.clone()));
        let write = move |body: Bytes| {
            drop(body);
            std::future::ready((StatusCode::CREATED, json(), posted.clone()))
        };
        // Serve all paths, so that roost's own clients can use the control.
        let router = Router::new().fallback_service(get(read).post(write));
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
        runtime.block_on(async {
            let any = SocketAddr::from(([127, 0, 0, 1], 0));
            let listener = tokio::net::TcpListener::bind(any).await?;
            println!("control serves http://{}", listener.local_addr()?);
            axum::serve(listener, router).await?;
            anyhow::Ok(())
        })
    }
}
