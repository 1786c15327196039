//! A gRPC service of tonic (HTTP/2) and a JSON service of axum and hyper (HTTP/1). Both get requests from their own clients
//! on loopback.

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::Request;
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::net::{TcpListener, TcpStream};
use tonic::transport::Endpoint;
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_client::HealthClient;

const CLIENTS: u64 = 8;
const CALLS: u64 = 250;

type Failure = Box<dyn std::error::Error + Send + Sync>;

#[tokio::main(worker_threads = 4)]
async fn main() -> Result<(), Failure> {
    let (reporter, health) = tonic_health::server::health_reporter();
    for name in 0..CLIENTS {
        reporter
            .set_service_status(
                format!("service{name}"),
                tonic_health::ServingStatus::Serving,
            )
            .await;
    }
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let grpc = format!("http://{}", listener.local_addr()?);
    let incoming = tonic::transport::server::TcpIncoming::from(listener);
    tokio::spawn(
        tonic::transport::Server::builder()
            .add_service(health)
            .serve_with_incoming(incoming),
    );
    let app = axum::Router::new().route("/sum", axum::routing::post(sum));
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let http = listener.local_addr()?;
    tokio::spawn(async move { axum::serve(listener, app).await });

    let clients: Vec<_> = (0..CLIENTS)
        .map(|number| {
            let grpc = grpc.clone();
            tokio::spawn(async move {
                let channel = Endpoint::new(grpc)?.connect().await?;
                let mut client = HealthClient::new(channel);
                for _ in 0..CALLS {
                    let service = format!("service{number}");
                    let answer = client.check(HealthCheckRequest { service }).await?;
                    assert_eq!(answer.into_inner().status, 1);
                }
                ask(http).await
            })
        })
        .collect();
    for client in clients {
        client.await??;
    }
    println!("{} calls of each service answered", CLIENTS * CALLS);
    Ok(())
}

async fn sum(axum::Json(numbers): axum::Json<Vec<u64>>) -> axum::Json<Value> {
    axum::Json(json!({ "sum": numbers.iter().sum::<u64>(), "numbers": numbers }))
}

async fn ask(address: std::net::SocketAddr) -> Result<(), Failure> {
    let stream = TokioIo::new(TcpStream::connect(address).await?);
    let (mut sender, connection) = hyper::client::conn::http1::handshake(stream).await?;
    tokio::spawn(connection);
    for call in 0..CALLS {
        let request = Request::post("/sum")
            .header("host", "localhost")
            .header("content-type", "application/json")
            .body(Full::<Bytes>::from(serde_json::to_vec(&[call, 1, 2])?))?;
        let answer = sender.send_request(request).await?;
        let body = answer.into_body().collect().await?.to_bytes();
        let answer: Value = serde_json::from_slice(&body)?;
        assert_eq!(answer["sum"], call + 3);
    }
    Ok(())
}
