//! Names gRPC requests by the method that they call.
//!
//! What methods a service has is not known beforehand, and clients can make up any number of them. So a method is learned
//! when the service answers a call of it, unless the answer is that there is no such method, or that the client may not call
//! it. Until then it has its name, too, as long as few others wait for an answer.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use axum::http::{HeaderMap, Method, Request, header};

use crate::capture::thread::Busy;
use crate::contexts::{Context, ROUTE, context};

/// Most methods.
const MOST: usize = 1024;
/// Most methods that no answer has confirmed.
const MOST_UNCONFIRMED: usize = 64;
/// Most bytes of a method with its service.
const LONGEST: usize = 128;
/// The name of methods for which there is no room.
const UNKNOWN: &str = "(unknown method)";
/// The values of `grpc-status` that do not tell that there is a method: permission denied, unimplemented, unauthenticated.
/// <https://grpc.io/docs/guides/status-codes/>
const NOT_TOLD: [&str; 3] = ["7", "12", "16"];

/// The methods that were called, such as `shop.Basket/AddItem`.
#[derive(Debug, Default)]
pub(super) struct GrpcMethods {
    called: RwLock<Called>,
}

#[derive(Debug, Default)]
struct Called {
    methods: HashMap<Box<str>, CalledMethod>,
    unconfirmed: usize,
}

#[derive(Debug, Clone, Copy)]
struct CalledMethod {
    /// The context of its requests that are in no other context, once there was one.
    context: Option<Context>,
    is_confirmed: bool,
}

impl GrpcMethods {
    /// Returns the context of a call of `method`, and what waits for the answer to it, unless the method is known.
    pub(super) fn call(self: &Arc<Self>, method: &str) -> (Context, Option<FirstCall>) {
        let _busy = Busy::enter();
        let is_outermost = Context::current() == Context::NONE;
        let found = self.read().methods.get(method).copied();
        let first_call = || FirstCall {
            methods: Arc::clone(self),
            method: method.into(),
        };
        let is_confirmed = found.is_some_and(|found| found.is_confirmed);
        let first_call = (!is_confirmed).then(first_call);
        let known = found.and_then(|found| found.context);
        if let Some(known) = known.filter(|_| is_outermost) {
            return (known, first_call);
        }
        let is_named = found.is_some() || self.write().add(method, false);
        let named = context([(ROUTE, if is_named { method } else { UNKNOWN })]);
        if is_named
            && is_outermost
            && named.keep()
            && let Some(called) = self.write().methods.get_mut(method)
        {
            called.context = Some(named);
        }
        (named, first_call)
    }

    fn read(&self) -> RwLockReadGuard<'_, Called> {
        self.called.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Called> {
        self.called.write().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Called {
    /// Adds a method, or confirms it. Returns whether there is room for it.
    fn add(&mut self, method: &str, is_confirmed: bool) -> bool {
        if let Some(known) = self.methods.get_mut(method) {
            if is_confirmed && !known.is_confirmed {
                known.is_confirmed = true;
                self.unconfirmed -= 1;
            }
            return true;
        }
        let is_full = self.methods.len() >= MOST;
        if is_full || !is_confirmed && self.unconfirmed >= MOST_UNCONFIRMED {
            return false;
        }
        self.unconfirmed += usize::from(!is_confirmed);
        let added = CalledMethod {
            context: None,
            is_confirmed,
        };
        self.methods.insert(method.into(), added);
        true
    }
}

/// Call of a method that no answer has confirmed yet.
#[derive(Debug)]
pub struct FirstCall {
    methods: Arc<GrpcMethods>,
    method: Box<str>,
}

impl FirstCall {
    /// Learns the method, if the headers of the answer tell that there is one.
    pub(super) fn answered(&self, headers: &HeaderMap) {
        let _busy = Busy::enter();
        // A call that succeeds has its status in the trailers.
        let status = headers.get("grpc-status");
        let is_told = status.is_none_or(|status| !NOT_TOLD.iter().any(|code| status == code));
        if is_told && is_grpc(headers) {
            self.methods.write().add(&self.method, true);
        }
    }
}

impl Drop for FirstCall {
    fn drop(&mut self) {
        // It was made while nothing was recorded, and so its end is not recorded either.
        let _busy = Busy::enter();
        self.method = Box::default();
    }
}

/// Returns the method that a request calls, without the `/` before it: `package.Service/Method`. `None` if the request is not
/// one of gRPC. `route`: the path of the router that answers, if there is one.
///
/// <https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-HTTP2.md>
pub(super) fn path<'r, B>(request: &'r Request<B>, route: Option<&str>) -> Option<&'r str> {
    if request.method() != Method::POST || !is_grpc(request.headers()) {
        return None;
    }
    let path = request.uri().path();
    // Tonic's routers have a route for each service: `/package.Service/{*rest}`.
    let is_service = |route: &str| {
        let service = route.strip_suffix("{*rest}");
        service.is_some_and(|service| service.len() > 1 && path.starts_with(service))
    };
    if !route.is_none_or(is_service) {
        return None;
    }
    let name = path.strip_prefix('/')?;
    let (service, method) = name.split_once('/')?;
    let is_name = |part: &str| {
        let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
        !part.is_empty() && part.bytes().all(allowed)
    };
    (name.len() <= LONGEST && is_name(service) && is_name(method)).then_some(name)
}

/// Returns whether the content is gRPC's: `application/grpc`, `application/grpc+proto`, `application/grpc-web` and so on.
fn is_grpc(headers: &HeaderMap) -> bool {
    let kind = headers.get(header::CONTENT_TYPE);
    kind.is_some_and(|kind| kind.as_bytes().starts_with(b"application/grpc"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::HeaderValue;

    fn headers(status: Option<&'static str>) -> HeaderMap {
        let mut headers = HeaderMap::new();
        let kind = HeaderValue::from_static("application/grpc");
        headers.insert(header::CONTENT_TYPE, kind);
        if let Some(status) = status {
            headers.insert("grpc-status", HeaderValue::from_static(status));
        }
        headers
    }

    #[test]
    fn methods_that_clients_make_up_take_no_place_from_those_that_there_are() {
        let methods = Arc::new(GrpcMethods::default());
        let call = |method: &str, status| {
            let (context, first) = methods.call(method);
            if let Some(first) = first {
                first.answered(&headers(status));
            }
            let labels = context.labels().into_iter();
            labels.map(|(_, value)| value).collect::<String>()
        };
        assert_eq!(call("a.A/Early", None), "a.A/Early");
        for number in 0..2 * MOST {
            let status = NOT_TOLD[number % 3];
            call(&format!("a.A/Not{number}"), Some(status));
        }
        assert_eq!(call("a.A/Early", None), "a.A/Early");
        // The first call has to be answered before it has a name.
        assert_eq!(call("a.A/Late", Some("5")), UNKNOWN);
        assert_eq!(call("a.A/Late", None), "a.A/Late");
        let called = methods.read();
        assert_eq!(called.methods.len(), MOST_UNCONFIRMED + 2);
        assert_eq!(called.unconfirmed, MOST_UNCONFIRMED);
    }

    #[test]
    fn a_service_that_answers_everything_has_a_limited_number_of_methods() {
        let methods = Arc::new(GrpcMethods::default());
        for number in 0..=MOST {
            let method = format!("a.A/M{number}");
            let (_, first) = methods.call(&method);
            first.unwrap().answered(&headers(None));
        }
        assert_eq!(methods.read().methods.len(), MOST);
    }

    #[test]
    fn only_calls_of_grpc_have_a_method() {
        let method = |path: &str, kind: &str, route| {
            let request = Request::post(path).header(header::CONTENT_TYPE, kind);
            super::path(&request.body(()).unwrap(), route).map(str::to_owned)
        };
        let grpc = "application/grpc+proto";
        let found = Some("a.A/Get".to_owned());
        assert_eq!(method("/a.A/Get", grpc, None), found);
        assert_eq!(method("/a.A/Get", grpc, Some("/a.A/{*rest}")), found);
        assert_eq!(method("/a.A/Get", grpc, Some("/{*rest}")), None);
        assert_eq!(method("/a.A/Get", grpc, Some("/a.A/{id}")), None);
        assert_eq!(method("/a.A/Get", "application/json", None), None);
        for path in ["/", "/a.A", "/a.A/", "/a.A/b/c", "/a.A/%20", "//a"] {
            assert_eq!(method(path, grpc, None), None, "{path}");
        }
        let long = format!("/a.A/{}", "x".repeat(LONGEST));
        assert_eq!(method(&long, grpc, None), None);
    }
}
