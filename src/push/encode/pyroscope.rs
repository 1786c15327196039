//! `push.v1.PusherService/Push` of Pyroscope, Alloy and Grafana Cloud
//! (<https://github.com/grafana/pyroscope/blob/main/api/push/v1/push.proto>).

use prost::Message;

use super::labels::labels;
use crate::push::client::Request;
use crate::push::profile::PushedProfile;

#[derive(Clone, PartialEq, Message)]
struct PushRequest {
    #[prost(message, repeated, tag = "1")]
    series: Vec<Series>,
}

#[derive(Clone, PartialEq, Message)]
struct Series {
    #[prost(message, repeated, tag = "1")]
    labels: Vec<Label>,
    #[prost(message, repeated, tag = "2")]
    samples: Vec<Sample>,
}

#[derive(Clone, PartialEq, Message)]
struct Label {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(string, tag = "2")]
    value: String,
}

#[derive(Clone, PartialEq, Message)]
struct Sample {
    #[prost(bytes = "vec", tag = "1")]
    raw_profile: Vec<u8>,
    #[prost(string, tag = "2")]
    id: String,
}

pub(super) fn request(profile: &PushedProfile) -> Request {
    let head = &profile.head;
    let mut labels = labels(head, "service_name");
    // `alloc_*` are differences already, and two processes of one name are two series.
    labels.push(("__delta__".into(), "false".into()));
    labels.push((
        "__session_id__".into(),
        format!("{:016x}", head.identity.life),
    ));
    labels.push(("pyroscope_spy".into(), "heapray".into()));
    let labels = labels.into_iter();
    let series = Series {
        labels: labels.map(|(name, value)| Label { name, value }).collect(),
        samples: vec![Sample {
            raw_profile: profile.pprof.clone(),
            id: head.uuid(),
        }],
    };
    let message = PushRequest {
        series: vec![series],
    };
    Request {
        path: "/push.v1.PusherService/Push",
        content_type: "application/proto",
        gzipped: false,
        body: message.encode_to_vec(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::push::profile::tests::profile;

    #[test]
    fn a_push_has_the_profile_and_the_labels_that_the_server_needs() {
        let profile = profile();
        let request = request(&profile);
        let message = PushRequest::decode(&request.body[..]).unwrap();
        let series = &message.series[0];
        let has = |name: &str, value: &str| {
            let mut labels = series.labels.iter();
            labels.any(|label| label.name == name && label.value == value)
        };
        for (name, value) in [
            ("__name__", "memory"),
            ("service_name", "shop"),
            ("service_version", "1.2"),
            ("__delta__", "false"),
            ("__session_id__", "00000000000000ab"),
        ] {
            assert!(has(name, value), "{name}");
        }
        assert_eq!(series.samples[0].raw_profile, profile.pprof);
        assert_eq!(series.samples[0].id, profile.head.uuid());
    }
}
