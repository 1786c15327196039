//! OpenTelemetry's profiles over HTTP: `POST /v1development/profiles`. Experimental: the format is alpha, and this is its
//! release 1.11.0.
//!
//! A message has one profile for each sample type. Those of what was allocated have the interval as their time and duration;
//! those of what is live are of one moment.

use std::collections::HashMap;
use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;
use prost::Message;

use super::otlp_messages as otlp;
use super::pprof;
use crate::push::client::Request;
use crate::push::profile::{Head, PushedProfile};

/// Sample types that are sent. Those of the high-water mark are ours alone.
const TYPES: [&str; 4] = [
    "alloc_objects",
    "alloc_space",
    "inuse_objects",
    "inuse_space",
];

pub(super) fn request(profile: &PushedProfile) -> Result<Request, String> {
    let read = pprof::Profile::read(&profile.pprof)?;
    let message = message(&profile.head, &read).encode_to_vec();
    let mut gzip = GzEncoder::new(Vec::new(), Compression::new(4));
    let gzipped = gzip.write_all(&message).and_then(|()| gzip.finish());
    Ok(Request {
        path: "/v1development/profiles",
        content_type: "application/x-protobuf",
        gzipped: true,
        body: gzipped.map_err(|error| error.to_string())?,
    })
}

/// Returns what the server says if it has rejected profiles and answered with a success.
pub(super) fn refusal(answer: &[u8]) -> Option<String> {
    let partial = otlp::ExportResponse::decode(answer).ok()?.partial_success?;
    (partial.rejected_profiles > 0).then_some(partial.error_message)
}

/// The tables that all profiles of a message share.
struct Tables<'p> {
    of: &'p pprof::Profile,
    texts: Vec<String>,
    numbers: HashMap<String, i32>,
    dictionary: otlp::Dictionary,
}

impl<'p> Tables<'p> {
    fn new(of: &'p pprof::Profile) -> Tables<'p> {
        let mut tables = Tables {
            of,
            texts: vec![String::new()],
            numbers: HashMap::from([(String::new(), 0)]),
            dictionary: otlp::Dictionary {
                link_table: vec![otlp::Link::default()],
                attribute_table: vec![otlp::Attribute::default()],
                stack_table: vec![otlp::Stack::default()],
                ..otlp::Dictionary::default()
            },
        };
        tables.dictionary.mapping_table = tables.mappings();
        tables.dictionary.function_table = tables.functions();
        tables.dictionary.location_table = tables.locations();
        tables
    }

    fn text(&mut self, text: &str) -> i32 {
        if let Some(&number) = self.numbers.get(text) {
            return number;
        }
        let number = index(self.texts.len());
        self.texts.push(text.to_owned());
        self.numbers.insert(text.to_owned(), number);
        number
    }

    fn mappings(&mut self) -> Vec<otlp::Mapping> {
        let mut mappings = vec![otlp::Mapping::default()];
        let of = self.of;
        for mapping in &of.mapping {
            let build_id = of.text(mapping.build_id);
            let attribute_indices = match build_id {
                "" => Vec::new(),
                id => vec![self.attribute("process.executable.build_id.gnu", id)],
            };
            mappings.push(otlp::Mapping {
                memory_start: mapping.memory_start,
                memory_limit: mapping.memory_limit,
                file_offset: mapping.file_offset,
                filename_strindex: self.text(of.text(mapping.filename)),
                attribute_indices,
            });
        }
        mappings
    }

    fn functions(&mut self) -> Vec<otlp::Function> {
        let mut functions = vec![otlp::Function::default()];
        let of = self.of;
        for function in &of.function {
            functions.push(otlp::Function {
                name_strindex: self.text(of.text(function.name)),
                system_name_strindex: self.text(of.text(function.system_name)),
                filename_strindex: self.text(of.text(function.filename)),
            });
        }
        functions
    }

    fn locations(&mut self) -> Vec<otlp::Location> {
        let frame_type = self.attribute("profile.frame.type", "native");
        let locations = self.of.location.iter().map(|location| otlp::Location {
            mapping_index: number(location.mapping_id),
            address: location.address,
            lines: location.line.iter().map(line).collect(),
            attribute_indices: vec![frame_type],
        });
        std::iter::once(otlp::Location::default())
            .chain(locations)
            .collect()
    }

    fn attribute(&mut self, key: &str, value: &str) -> i32 {
        let attribute = otlp::Attribute {
            key_strindex: self.text(key),
            value: Some(text(value)),
        };
        let attributes = &mut self.dictionary.attribute_table;
        let found = attributes.iter().position(|had| *had == attribute);
        index(found.unwrap_or_else(|| {
            attributes.push(attribute);
            attributes.len() - 1
        }))
    }

    /// Enters the stack of each sample. Returns their numbers.
    fn stacks(&mut self) -> Vec<i32> {
        let stacks = &mut self.dictionary.stack_table;
        let enter = |sample: &pprof::Sample| {
            stacks.push(otlp::Stack {
                location_indices: sample.location_id.iter().copied().map(number).collect(),
            });
            index(stacks.len() - 1)
        };
        self.of.sample.iter().map(enter).collect()
    }

    fn into_dictionary(mut self) -> otlp::Dictionary {
        self.dictionary.string_table = self.texts;
        self.dictionary
    }
}

fn line(line: &pprof::Line) -> otlp::Line {
    otlp::Line {
        function_index: number(line.function_id),
        line: line.line,
    }
}

/// Ids of pprof are from 1 on, and so are the numbers of entries that are not empty.
fn number(id: u64) -> i32 {
    i32::try_from(id).unwrap_or(0)
}

fn index(at: usize) -> i32 {
    i32::try_from(at).unwrap_or(i32::MAX)
}

fn text(text: &str) -> otlp::AnyValue {
    otlp::AnyValue {
        value: Some(otlp::Value::Text(text.to_owned())),
    }
}

fn message(head: &Head, profile: &pprof::Profile) -> otlp::ExportRequest {
    let mut tables = Tables::new(profile);
    let stacks = tables.stacks();
    let period_type = Some(otlp::ValueType {
        // Pyroscope calls the profile so.
        type_strindex: tables.text("memory"),
        unit_strindex: tables.text("bytes"),
    });
    let mut profiles = Vec::new();
    for (at, sample_type) in profile.sample_type.iter().enumerate() {
        let name = profile.text(sample_type.r#type);
        if !TYPES.contains(&name) {
            continue;
        }
        let interval = if name.starts_with("alloc_") {
            head.interval_ms
        } else {
            0
        };
        let [begin, duration] = [head.taken_ms.saturating_sub(interval), interval]
            .map(|ms| ms.saturating_mul(1_000_000));
        let samples = profile.sample.iter().zip(&stacks);
        profiles.push(otlp::Profile {
            sample_type: Some(otlp::ValueType {
                type_strindex: tables.text(name),
                unit_strindex: tables.text(profile.text(sample_type.unit)),
            }),
            samples: samples
                .filter_map(|(sample, &stack)| value_of(sample, at, stack))
                .collect(),
            time_unix_nano: begin,
            duration_nano: duration,
            period_type: period_type.clone(),
            period: profile.period,
            // Another number for each of them, and the same ones if it is sent twice.
            profile_id: head.id.wrapping_add(at as u128).to_be_bytes().to_vec(),
        });
    }
    otlp::ExportRequest {
        resource_profiles: vec![otlp::ResourceProfiles {
            resource: Some(resource(head)),
            scope_profiles: vec![otlp::ScopeProfiles {
                scope: Some(otlp::Scope {
                    name: "heapray".into(),
                    version: env!("CARGO_PKG_VERSION").into(),
                }),
                profiles,
            }],
        }],
        dictionary: Some(tables.into_dictionary()),
    }
}

fn value_of(sample: &pprof::Sample, at: usize, stack_index: i32) -> Option<otlp::Sample> {
    let value = sample.value.get(at).copied().unwrap_or(0);
    (value != 0).then(|| otlp::Sample {
        stack_index,
        values: vec![value],
    })
}

fn resource(head: &Head) -> otlp::Resource {
    let identity = &head.identity;
    let own = [
        ("service.name", identity.service.as_str()),
        ("host.name", identity.host.as_str()),
    ];
    let given = identity.labels.iter();
    let given = given.map(|(name, value)| (name.as_str(), value.as_str()));
    let mut attributes: Vec<otlp::KeyValue> = Vec::new();
    for (key, value) in own.into_iter().chain(given) {
        let is_new = attributes.iter().all(|had| had.key != key);
        if is_new && !value.is_empty() {
            attributes.push(otlp::KeyValue {
                key: key.to_owned(),
                value: Some(text(value)),
            });
        }
    }
    attributes.push(otlp::KeyValue {
        key: "process.pid".into(),
        value: Some(otlp::AnyValue {
            value: Some(otlp::Value::Int(identity.pid.into())),
        }),
    });
    attributes.push(otlp::KeyValue {
        key: "service.instance.id".into(),
        value: Some(text(&format!("{:016x}", identity.life))),
    });
    otlp::Resource { attributes }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::push::profile::tests::profile;

    fn pprof() -> pprof::Profile {
        let kind = |r#type, unit| pprof::ValueType { r#type, unit };
        pprof::Profile {
            sample_type: vec![kind(1, 2), kind(3, 2), kind(4, 2)],
            sample: vec![
                pprof::Sample {
                    location_id: vec![2, 1],
                    value: vec![10, 0, 7],
                },
                pprof::Sample {
                    location_id: vec![1],
                    value: vec![0, 5, 7],
                },
            ],
            mapping: vec![pprof::Mapping {
                memory_start: 1,
                memory_limit: 2,
                file_offset: 3,
                filename: 5,
                build_id: 6,
            }],
            location: (1..=2)
                .map(|id| pprof::Location {
                    mapping_id: 1,
                    address: id,
                    line: vec![pprof::Line {
                        function_id: id,
                        line: 10,
                    }],
                })
                .collect(),
            function: (7..=8)
                .map(|name| pprof::Function {
                    name,
                    system_name: name,
                    filename: 5,
                })
                .collect(),
            string_table: [
                "",
                "alloc_space",
                "bytes",
                "inuse_space",
                "peak_space",
                "/bin/shop",
                "c0ffee",
                "main",
                "leak",
            ]
            .map(str::to_owned)
            .into(),
            period: 1,
        }
    }

    #[test]
    fn each_sample_type_is_a_profile_with_its_own_samples() {
        let head = profile().head;
        let message = message(&head, &pprof());
        let dictionary = message.dictionary.unwrap();
        let text = |number: i32| dictionary.string_table[number as usize].as_str();
        let profiles = &message.resource_profiles[0].scope_profiles[0].profiles;
        let found: Vec<_> = profiles
            .iter()
            .map(|profile| {
                let kind = profile.sample_type.clone().unwrap();
                let leaf = |sample: &otlp::Sample| {
                    let stack = &dictionary.stack_table[sample.stack_index as usize];
                    let location = stack.location_indices[0] as usize;
                    let line = &dictionary.location_table[location].lines[0];
                    let function = &dictionary.function_table[line.function_index as usize];
                    (text(function.name_strindex), sample.values[0])
                };
                let samples: Vec<_> = profile.samples.iter().map(leaf).collect();
                (text(kind.type_strindex), profile.duration_nano, samples)
            })
            .collect();
        assert_eq!(
            found,
            [
                ("alloc_space", 15_000_000_000, vec![("leak", 10)]),
                ("inuse_space", 0, vec![("main", 5)]),
            ]
        );
        let mapping = &dictionary.mapping_table[1];
        assert_eq!(text(mapping.filename_strindex), "/bin/shop");
        let attribute = &dictionary.attribute_table[mapping.attribute_indices[0] as usize];
        assert_eq!(
            text(attribute.key_strindex),
            "process.executable.build_id.gnu"
        );
        assert_ne!(profiles[0].profile_id, profiles[1].profile_id);
    }

    #[test]
    fn the_resource_has_the_names_of_the_process() {
        let resource = resource(&profile().head);
        let keys: Vec<_> = resource
            .attributes
            .iter()
            .map(|it| it.key.as_str())
            .collect();
        assert_eq!(
            keys,
            [
                "service.name",
                "host.name",
                "service.version",
                "process.pid",
                "service.instance.id"
            ]
        );
    }

    #[test]
    fn a_success_that_rejects_profiles_is_a_refusal() {
        let answer = |rejected_profiles| otlp::ExportResponse {
            partial_success: Some(otlp::PartialSuccess {
                rejected_profiles,
                error_message: "too old".into(),
            }),
        };
        assert_eq!(
            refusal(&answer(2).encode_to_vec()),
            Some("too old".to_owned())
        );
        assert_eq!(refusal(&answer(0).encode_to_vec()), None);
        assert_eq!(refusal(b""), None);
        assert_eq!(refusal(b"<html>"), None);
    }
}
