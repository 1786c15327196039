//! Parca's `parca.debuginfo.v1alpha1.DebuginfoService` as gRPC-Web, which Parca speaks over HTTP/1.1 at the address of its page.
//!
//! A body is a sequence of frames: a byte that is 0, the length as four bytes, the message. The last frame of an answer begins
//! with 0x80 and has the status (<https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-WEB.md>).

use std::io::{self, Cursor, Read};

use prost::Message;
use ureq::http::HeaderMap;
use ureq::{AsSendBody, SendBody};

use super::{DebugFile, Server, Store, Upload, bytes, is_another_server, unwanted};
use crate::context::Context;
use crate::failure::Failure;
use crate::http::check;

const SERVICE: &str = "parca.debuginfo.v1alpha1.DebuginfoService";
const CONTENT_TYPE: &str = "application/grpc-web+proto";
/// Bytes of a file in one message. A server takes messages of 4 MiB.
const CHUNK: u64 = 1 << 20;
/// Flag of the frame that has the status.
const TRAILERS: u8 = 0x80;

/// Polar Signals' store.
#[derive(Debug)]
pub(crate) struct Parca(pub(crate) Server);

impl Store for Parca {
    fn name(&self) -> &'static str {
        "Parca"
    }

    fn address(&self) -> &str {
        &self.0.base
    }

    fn upload(&self, file: &DebugFile, force: bool, context: &Context) -> Result<Upload, Failure> {
        if file.elf.is_unreadable_in_go {
            return Err(Failure::Other(format!(
                "{}: Parca cannot read this debug file, because it has the section .debug_gdb_scripts without its bytes: make it with \
                 `objcopy --only-keep-debug --remove-section=.debug_gdb_scripts`, or send the program itself",
                file.path.display()
            )));
        }
        let build_id = &file.elf.build_id;
        let proposal = ShouldInitiateUpload {
            build_id: build_id.clone(),
            hash: file.elf.hash.clone(),
            force,
            build_id_type: GNU,
        };
        let answer: ShouldInitiateUploadAnswer = self.ask("ShouldInitiateUpload", &proposal)?;
        if !answer.should_initiate_upload {
            return unwanted(&self.0.base, answer.reason);
        }
        let start = InitiateUpload {
            build_id: build_id.clone(),
            size: file.length.cast_signed(),
            hash: proposal.hash,
            force,
            build_id_type: GNU,
        };
        let answer: InitiateUploadAnswer = self.ask("InitiateUpload", &start)?;
        let to = answer.instructions.unwrap_or_default();
        let info = UploadInfo {
            build_id: build_id.clone(),
            upload_id: to.upload_id,
        };
        let mut content = file.open(context)?;
        match to.strategy {
            BY_MESSAGES => {
                let mut frames = Frames::new(&info, &mut content);
                let body = SendBody::from_reader(&mut frames);
                let _: Nothing = self.call("Upload", body)?;
            }
            TO_SIGNED_URL => {
                // An object storage: what proves our right is in the address, and headers are for the store only.
                let request = self.0.agent.put(&to.signed_url);
                let request = request.header("Content-Length", file.length);
                let sent = request.send(SendBody::from_reader(&mut content));
                check(without_query(&to.signed_url), sent)?;
            }
            _ => {
                let text = format!("{}: it allows no upload", self.0.base);
                return Err(Failure::Other(text));
            }
        }
        let _: Nothing = self.ask("MarkUploadFinished", &info)?;
        Ok(Upload::Done)
    }
}

impl Parca {
    fn ask<A: Message + Default>(
        &self,
        method: &str,
        question: &impl Message,
    ) -> Result<A, Failure> {
        self.call(method, frame(question))
    }

    /// Calls a method with frames. Returns its only message.
    fn call<A: Message + Default>(
        &self,
        method: &str,
        frames: impl AsSendBody,
    ) -> Result<A, Failure> {
        let url = self.0.url(&format!("{SERVICE}/{method}"));
        let request = self.0.post(&url, CONTENT_TYPE).header("X-Grpc-Web", "1");
        let answer = check(&url, request.send(frames))?;
        let headers = answer.headers();
        let content_type = headers
            .get("content-type")
            .and_then(|text| text.to_str().ok());
        if !content_type.is_some_and(|text| text.starts_with("application/grpc")) {
            return Err(is_another_server(&url, self.name()));
        }
        let mut status = Status::of_headers(headers);
        let body = bytes(&url, answer)?;
        let mut message = None;
        let mut rest = &body[..];
        while let Some((flag, content)) = next_frame(&mut rest) {
            if flag & TRAILERS == 0 {
                message = A::decode(content).ok();
            } else {
                status = Status::of_trailers(content);
            }
        }
        match status {
            Some(Status { code, .. }) if code == "0" => {}
            Some(status) => {
                let text = format!(
                    "{url}: refused with gRPC status {}: {}",
                    status.code, status.message
                );
                return Err(Failure::Other(text));
            }
            None => return Err(is_another_server(&url, self.name())),
        }
        message.ok_or_else(|| is_another_server(&url, self.name()))
    }
}

fn frame(message: &impl Message) -> Vec<u8> {
    let message = message.encode_to_vec();
    // Every message is much smaller than 4 GiB.
    let length = message.len() as u32;
    [&[0][..], &length.to_be_bytes(), &message].concat()
}

/// Takes the next frame: its flag and its content. `None` at the end, also within a frame.
fn next_frame<'a>(rest: &mut &'a [u8]) -> Option<(u8, &'a [u8])> {
    let (&[flag, a, b, c, d], after) = rest.split_first_chunk()?;
    let length = u32::from_be_bytes([a, b, c, d]) as usize;
    let (content, after) = after.split_at_checked(length)?;
    *rest = after;
    Some((flag, content))
}

/// Frames of an upload: what is sent, and the file in chunks.
struct Frames<R> {
    file: R,
    next: Cursor<Vec<u8>>,
}

impl<R: Read> Frames<R> {
    fn new(info: &UploadInfo, file: R) -> Frames<R> {
        let first = UploadPart {
            info: Some(info.clone()),
            ..UploadPart::default()
        };
        Frames {
            file,
            next: Cursor::new(frame(&first)),
        }
    }
}

impl<R: Read> Read for Frames<R> {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        let read = self.next.read(to)?;
        if read > 0 || to.is_empty() {
            return Ok(read);
        }
        let mut chunk = Vec::new();
        if self.file.by_ref().take(CHUNK).read_to_end(&mut chunk)? == 0 {
            return Ok(0);
        }
        let part = UploadPart {
            chunk: Some(chunk),
            ..UploadPart::default()
        };
        self.next = Cursor::new(frame(&part));
        self.next.read(to)
    }
}

/// How a call ended.
struct Status {
    code: String,
    message: String,
}

impl Status {
    /// Returns the status of an answer without a message, which may be in its headers.
    fn of_headers(headers: &HeaderMap) -> Option<Status> {
        let text = |name: &str| Some(headers.get(name)?.to_str().ok()?.to_owned());
        Some(Status {
            code: text("grpc-status")?,
            message: text("grpc-message").unwrap_or_default(),
        })
    }

    fn of_trailers(content: &[u8]) -> Option<Status> {
        let text = String::from_utf8_lossy(content);
        let value = |name: &str| {
            let mut lines = text.lines().filter_map(|line| line.split_once(':'));
            let (_, value) = lines.find(|(found, _)| found.trim().eq_ignore_ascii_case(name))?;
            Some(value.trim().to_owned())
        };
        Some(Status {
            code: value("grpc-status")?,
            message: value("grpc-message").unwrap_or_default(),
        })
    }
}

/// Returns an address without what proves a right to it.
fn without_query(url: &str) -> &str {
    url.split_once('?').map_or(url, |(address, _)| address)
}

// Messages of proto/parca/debuginfo/v1alpha1/debuginfo.proto, with the fields that are used.

/// `BUILD_ID_TYPE_GNU`
const GNU: i32 = 1;
/// `UPLOAD_STRATEGY_GRPC`
const BY_MESSAGES: i32 = 1;
/// `UPLOAD_STRATEGY_SIGNED_URL`
const TO_SIGNED_URL: i32 = 2;

#[derive(Clone, PartialEq, Message)]
struct ShouldInitiateUpload {
    #[prost(string, tag = "1")]
    build_id: String,
    #[prost(string, tag = "2")]
    hash: String,
    #[prost(bool, tag = "3")]
    force: bool,
    #[prost(int32, tag = "5")]
    build_id_type: i32,
}

#[derive(Clone, PartialEq, Message)]
struct ShouldInitiateUploadAnswer {
    #[prost(bool, tag = "1")]
    should_initiate_upload: bool,
    #[prost(string, tag = "2")]
    reason: String,
}

#[derive(Clone, PartialEq, Message)]
struct InitiateUpload {
    #[prost(string, tag = "1")]
    build_id: String,
    #[prost(int64, tag = "2")]
    size: i64,
    #[prost(string, tag = "3")]
    hash: String,
    #[prost(bool, tag = "4")]
    force: bool,
    #[prost(int32, tag = "6")]
    build_id_type: i32,
}

#[derive(Clone, PartialEq, Message)]
struct InitiateUploadAnswer {
    #[prost(message, optional, tag = "1")]
    instructions: Option<UploadInstructions>,
}

#[derive(Clone, PartialEq, Message)]
struct UploadInstructions {
    #[prost(string, tag = "2")]
    upload_id: String,
    #[prost(int32, tag = "3")]
    strategy: i32,
    #[prost(string, tag = "4")]
    signed_url: String,
}

/// `UploadInfo`, and `MarkUploadFinishedRequest`, which has the same fields.
#[derive(Clone, PartialEq, Message)]
struct UploadInfo {
    #[prost(string, tag = "1")]
    build_id: String,
    #[prost(string, tag = "2")]
    upload_id: String,
}

/// `UploadRequest`: either of the two.
#[derive(Clone, PartialEq, Message)]
struct UploadPart {
    #[prost(message, optional, tag = "1")]
    info: Option<UploadInfo>,
    #[prost(bytes = "vec", optional, tag = "2")]
    chunk: Option<Vec<u8>>,
}

/// An answer of which nothing is read.
#[derive(Clone, PartialEq, Message)]
struct Nothing {}
