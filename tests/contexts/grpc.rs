//! Tests that memory is counted by the methods of a service that tonic serves.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Mutex;
use std::task::{self, Poll};

use axum::http;
use heapray::by_route;
use prost::Message;
use tokio::net::TcpListener;
use tokio_stream::wrappers::TcpListenerStream;
use tonic::client::Grpc;
use tonic::codegen::http::uri::PathAndQuery;
use tonic::server::{NamedService, UnaryService};
use tonic::service::Routes;
use tonic::transport::{Channel, Server};
use tonic::{Code, Request, Response, Status};
use tonic_prost::ProstCodec;
use tower::Service;

use crate::support::{record, turn};
use crate::{block, live, of, runtime};

#[derive(Clone, PartialEq, Message)]
struct Text {
    #[prost(string, tag = "1")]
    text: String,
}

static KEPT: Mutex<Vec<Vec<u8>>> = Mutex::new(Vec::new());

/// What `tonic-build` makes of a service `shop.Basket` with the methods `Add` and `Stock`.
#[derive(Debug, Clone)]
struct Basket;

impl NamedService for Basket {
    const NAME: &'static str = "shop.Basket";
}

#[derive(Debug)]
struct Keep;

impl UnaryService<Text> for Keep {
    type Response = Text;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Text>, Status>> + Send>>;

    fn call(&mut self, request: Request<Text>) -> Self::Future {
        Box::pin(async move {
            tokio::task::yield_now().await;
            KEPT.lock().unwrap().push(block(0));
            Ok(Response::new(request.into_inner()))
        })
    }
}

impl Service<http::Request<tonic::body::Body>> for Basket {
    type Response = http::Response<tonic::body::Body>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut task::Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<tonic::body::Body>) -> Self::Future {
        let is_known = matches!(
            request.uri().path(),
            "/shop.Basket/Add" | "/shop.Basket/Stock"
        );
        Box::pin(async move {
            if !is_known {
                return Ok(Status::unimplemented("").into_http());
            }
            let codec = ProstCodec::<Text, Text>::default();
            Ok(tonic::server::Grpc::new(codec).unary(Keep, request).await)
        })
    }
}

/// Calls a method. Returns the status of the answer.
async fn call(channel: &Channel, method: &'static str) -> Code {
    let mut client = Grpc::new(channel.clone());
    client.ready().await.unwrap();
    let text = "x".to_owned();
    let codec = ProstCodec::<Text, Text>::default();
    let path = PathAndQuery::from_static(method);
    let answer = client.unary(Request::new(Text { text }), path, codec);
    answer
        .await
        .map_or_else(|status| status.code(), |_| Code::Ok)
}

#[derive(Debug, Clone, Copy)]
enum Layered {
    /// The layer is around tonic's server.
    Server,
    /// The layer is in the router that tonic makes for axum, or for an app with other routes.
    Router,
}

#[test]
fn calls_are_counted_under_their_methods() {
    let _turn = turn();
    for layered in [Layered::Server, Layered::Router] {
        let snapshot = record("contexts-grpc", || {
            runtime().block_on(async {
                let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
                let address = format!("http://{}", listener.local_addr().unwrap());
                let incoming = TcpListenerStream::new(listener);
                let server = tokio::spawn(async move {
                    match layered {
                        Layered::Server => {
                            let mut server = Server::builder().layer(by_route());
                            server
                                .add_service(Basket)
                                .serve_with_incoming(incoming)
                                .await
                        }
                        Layered::Router => {
                            let routes = Routes::new(Basket).into_axum_router();
                            let routes = Routes::from(routes.route_layer(by_route()));
                            let server = Server::builder().add_routes(routes);
                            server.serve_with_incoming(incoming).await
                        }
                    }
                });
                let channel = Channel::from_shared(address).unwrap();
                let channel = channel.connect().await.unwrap();
                for _ in 0..2 {
                    assert_eq!(call(&channel, "/shop.Basket/Add").await, Code::Ok);
                }
                assert_eq!(call(&channel, "/shop.Basket/Stock").await, Code::Ok);
                let unknown = call(&channel, "/shop.Basket/Made").await;
                assert_eq!(unknown, Code::Unimplemented);
                server.abort();
            });
        });
        let by_route = live(&snapshot, "route").into_iter().collect::<Vec<_>>();
        let expected = [("shop.Basket/Add", of(2)), ("shop.Basket/Stock", of(1))];
        let expected = expected.map(|(name, tally)| (name.to_owned(), tally));
        assert_eq!(by_route, expected, "{layered:?}");
        KEPT.lock().unwrap().clear();
    }
}
