//! `/health`, `/live` and `/ready`, in the shape of a Racetrack job's.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::time::Duration;

use axum::Json;
use serde_json::{Value, json};

/// `GET /health`.
pub(crate) async fn health() -> Json<Value> {
    let variable = |name: &str| std::env::var(name).ok();
    Json(json!({
        "service": "job",
        "job_name": variable("JOB_NAME").unwrap_or_else(|| "memory-leak".into()),
        "live": true,
        "ready": true,
        "status": "pass",
        "error": null,
        "job_version": variable("JOB_VERSION"),
        "git_version": variable("GIT_VERSION"),
        "deployed_by_racetrack_version": variable("DEPLOYED_BY_RACETRACK_VERSION"),
        "deployment_timestamp": variable("JOB_DEPLOYMENT_TIMESTAMP"),
        "job_type_version": variable("JOB_TYPE_VERSION"),
    }))
}

/// `GET /live`.
pub(crate) async fn live() -> Json<Value> {
    let deployed = std::env::var("JOB_DEPLOYMENT_TIMESTAMP").ok();
    Json(json!({ "live": true, "deployment_timestamp": deployed }))
}

/// `GET /ready`.
pub(crate) async fn ready() -> Json<Value> {
    Json(json!({ "ready": true }))
}

/// Asks a running job whether it is live. The container's health check runs this, so that the image needs no curl.
pub(crate) fn check(port: u16) -> Result<(), Box<dyn std::error::Error>> {
    let timeout = Some(Duration::from_secs(3));
    let mut job = TcpStream::connect((Ipv4Addr::LOCALHOST, port))?;
    job.set_read_timeout(timeout)?;
    job.set_write_timeout(timeout)?;
    job.write_all(b"GET /live HTTP/1.0\r\nhost: localhost\r\n\r\n")?;
    let mut answer = String::new();
    job.take(4096).read_to_string(&mut answer)?;
    if answer.split(' ').nth(1) == Some("200") {
        Ok(())
    } else {
        Err(format!("the job on port {port} is not live").into())
    }
}
