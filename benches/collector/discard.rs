//! The floor of receiving: a server that reads bodies and drops them.

use axum::Router;
use axum::body::Body;
use axum::http::{HeaderMap, header};
use http_body_util::BodyExt as _;

/// Serves until the process is ended.
pub fn serve(port: u16) {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let listener = tokio::net::TcpListener::bind(("127.0.0.1", port)).await.expect("the port");
        axum::serve(listener, Router::new().fallback(drop_body)).await.expect("serves");
    });
}

async fn drop_body(mut body: Body) -> HeaderMap {
    while let Some(Ok(_)) = body.frame().await {}
    [(header::CONTENT_TYPE, "application/x-protobuf".parse().expect("a value"))].into_iter().collect()
}
