//! Where the replicas are: addresses, a file for Prometheus, a name with many addresses, or the pods of a cluster.

use std::collections::{HashMap, HashSet};
use std::io;
use std::net::ToSocketAddrs;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::failure::Failure;
use crate::remote::base;

/// A replica to ask.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Target {
    /// Its name in the result.
    pub(crate) name: String,
    /// Its address, as [`base`] returns it.
    pub(crate) url: String,
}

impl Target {
    fn new(name: Option<&str>, url: &str) -> Result<Target, Failure> {
        let url = base(url)?;
        let name = name.unwrap_or(without_scheme(&url)).to_owned();
        Ok(Target { name, url })
    }
}

/// Returns a target for an address from the command line.
pub(crate) fn of_url(url: &str) -> Result<Target, Failure> {
    Target::new(None, url)
}

fn without_scheme(url: &str) -> &str {
    url.split_once("://").map_or(url, |(_, rest)| rest)
}

/// Returns `targets` in their order, each address once. Those of one name get their address too.
pub(crate) fn distinct(mut targets: Vec<Target>) -> Vec<Target> {
    let mut seen = HashSet::new();
    targets.retain(|target| seen.insert(target.url.clone()));
    let mut names: HashMap<String, u32> = HashMap::new();
    for target in &targets {
        *names.entry(target.name.clone()).or_default() += 1;
    }
    for target in &mut targets {
        if names.get(&target.name).is_some_and(|number| *number > 1) {
            target.name = format!("{} ({})", target.name, target.url);
        }
    }
    targets
}

/// Reads targets from a file as Prometheus reads it with `file_sd_configs`: JSON, a list of groups with `targets` and
/// `labels`. `__scheme__` and `__metrics_path__` say how they are reached; `replica`, `pod` or `instance` name the only target
/// of a group.
pub(crate) fn of_file(path: &Path) -> Result<Vec<Target>, Failure> {
    let shown = path.display();
    let text = std::fs::read_to_string(path)
        .map_err(|error| Failure::io(format!("cannot read {shown}"), error))?;
    let bad = |what: &str| {
        Failure::Usage(format!(
            "{shown}: {what}; it must be a JSON file as Prometheus's file_sd_configs reads it: [{{\"targets\": [\"host:port\"]}}]"
        ))
    };
    let groups: Value = serde_json::from_str(&text).map_err(|error| bad(&error.to_string()))?;
    let mut targets = Vec::new();
    for group in groups.as_array().ok_or_else(|| bad("it is not a list"))? {
        let addresses = group["targets"].as_array();
        let addresses = addresses.ok_or_else(|| bad("a group has no list of targets"))?;
        let label = |name: &str| group["labels"][name].as_str();
        let scheme = label("__scheme__").unwrap_or("http");
        let path = label("__metrics_path__").unwrap_or("");
        let name = ["replica", "pod", "instance"].into_iter().find_map(label);
        for address in addresses {
            let address = address
                .as_str()
                .ok_or_else(|| bad("a target is not a text"))?;
            let name = name.filter(|_| addresses.len() == 1);
            let url = format!("{scheme}://{address}{}", below_prefix(path));
            targets.push(Target::new(name, &url)?);
        }
    }
    Ok(targets)
}

/// Returns the path of a scrape if it is one of ours, which shows the prefix; of another exporter it says nothing.
fn below_prefix(path: &str) -> &str {
    if path.contains("/api/v1/profiler/memray") {
        path
    } else {
        ""
    }
}

/// Looks up all addresses of `name`, which has a port: those of a headless service are its replicas'.
pub(crate) fn of_dns(name: &str) -> Result<Vec<Target>, Failure> {
    if name
        .rsplit_once(':')
        .is_none_or(|(_, port)| port.parse::<u16>().is_err())
    {
        return Err(Failure::Usage(format!(
            "{name}: say the port too, as in {name}:7000"
        )));
    }
    let found = name
        .to_socket_addrs()
        .map_err(|error| Failure::io(format!("cannot look up {name}"), error))?;
    let mut addresses: Vec<_> = found.collect();
    addresses.sort_unstable();
    addresses.dedup();
    addresses
        .iter()
        .map(|address| of_url(&format!("http://{address}")))
        .collect()
}

/// Asks `kubectl` for the running pods that `selector` selects, with the rights of who calls this.
pub(crate) fn of_kubernetes(
    selector: &str,
    namespace: Option<&str>,
    port: Option<u16>,
) -> Result<Vec<Target>, Failure> {
    let mut command = Command::new("kubectl");
    command
        .args(["get", "pods", "--output=json", "--request-timeout=30s"])
        .arg(format!("--selector={selector}"))
        .args(namespace.map(|namespace| format!("--namespace={namespace}")))
        .stdin(Stdio::null());
    let output = command.output().map_err(|error| Failure::NotStarted {
        program: "kubectl".into(),
        error,
    })?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        return Err(Failure::Other(format!("kubectl fails: {}", said.trim())));
    }
    let list: Value = serde_json::from_slice(&output.stdout)
        .map_err(|error| Failure::io("cannot read what kubectl says", io::Error::other(error)))?;
    let pods = list["items"].as_array().map_or(&[][..], Vec::as_slice);
    let running = pods
        .iter()
        .filter(|pod| pod["status"]["phase"] == "Running");
    running.map(|pod| of_pod(pod, port)).collect()
}

/// Returns where a pod is reached: at `port`, or at the port that Prometheus scrapes, or else at its first port.
fn of_pod(pod: &Value, port: Option<u16>) -> Result<Target, Failure> {
    let name = pod["metadata"]["name"].as_str().unwrap_or("?");
    let annotation = |of: &str| pod["metadata"]["annotations"][of].as_str();
    let scraped = annotation("prometheus.io/port").and_then(|port| port.parse().ok());
    let containers = pod["spec"]["containers"].as_array();
    let mut ports = containers
        .into_iter()
        .flatten()
        .filter_map(|container| container["ports"].as_array())
        .flatten();
    let first = || ports.find_map(|port| u16::try_from(port["containerPort"].as_u64()?).ok());
    let port = port.or(scraped).or_else(first);
    let (Some(address), Some(port)) = (pod["status"]["podIP"].as_str(), port) else {
        return Err(Failure::Other(format!(
            "pod {name} has no address or no port: say --port"
        )));
    };
    let address = if address.contains(':') {
        format!("[{address}]")
    } else {
        address.to_owned()
    };
    let path = below_prefix(annotation("prometheus.io/path").unwrap_or(""));
    let scheme = annotation("prometheus.io/scheme").unwrap_or("http");
    Target::new(Some(name), &format!("{scheme}://{address}:{port}{path}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_pod_is_reached_where_prometheus_reaches_it() {
        let mut pod = json!({
            "metadata": { "name": "shop-1", "annotations": { "prometheus.io/port": "7000", "prometheus.io/path": "/pub/job/a/1/api/v1/profiler/memray/metrics" } },
            "spec": { "containers": [{ "ports": [{ "containerPort": 80 }] }] },
            "status": { "podIP": "10.0.0.1" },
        });
        let url = |pod: &Value, port| of_pod(pod, port).map(|target| target.url).ok();
        let below = "/pub/job/a/1";
        assert_eq!(
            url(&pod, None),
            Some(format!("http://10.0.0.1:7000{below}"))
        );
        assert_eq!(
            url(&pod, Some(9)),
            Some(format!("http://10.0.0.1:9{below}"))
        );
        pod["metadata"]["annotations"]["prometheus.io/scheme"] = json!("https");
        assert_eq!(
            url(&pod, Some(9)),
            Some(format!("https://10.0.0.1:9{below}"))
        );
        pod["metadata"]["annotations"] = json!({ "prometheus.io/path": "/metrics" });
        pod["status"]["podIP"] = json!("fd00::1");
        assert_eq!(url(&pod, None).as_deref(), Some("http://[fd00::1]:80"));
        pod["spec"] = json!({});
        assert_eq!(url(&pod, None), None);
    }

    #[test]
    fn a_name_needs_a_port() {
        for name in ["shop", "shop:", "shop:http"] {
            assert!(matches!(of_dns(name), Err(Failure::Usage(_))), "{name}");
        }
        let found = of_dns("127.0.0.1:7000").unwrap();
        assert_eq!(found, [of_url("http://127.0.0.1:7000").unwrap()]);
        assert_eq!(found[0].name, "127.0.0.1:7000");
    }

    #[test]
    fn an_address_is_asked_once_and_equal_names_are_told_apart() {
        let urls = [
            "h:1",
            "http://h:1/",
            "https://h:1",
            "h:1/api/v1/profiler/memray/metrics",
        ];
        let found = urls.map(|url| of_url(url).unwrap());
        let named = ["h:2", "h:3"].map(|url| Target::new(Some("shop"), url).unwrap());
        let found = distinct([&found[..], &named[..]].concat());
        let shown: Vec<_> = found.iter().map(|one| (&*one.name, &*one.url)).collect();
        let expected = [
            ("h:1 (http://h:1)", "http://h:1"),
            ("h:1 (https://h:1)", "https://h:1"),
            ("shop (http://h:2)", "http://h:2"),
            ("shop (http://h:3)", "http://h:3"),
        ];
        assert_eq!(shown, expected);
    }
}
