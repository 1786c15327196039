//! Pyroscope's `debuginfo.v1alpha1.DebuginfoService`: JSON before and after, and the file as it is in between.

use serde_json::{Value, json};
use ureq::SendBody;

use super::{DebugFile, Server, Store, Upload, bytes, is_another_server, unwanted};
use crate::context::Context;
use crate::failure::Failure;
use crate::http::check;

const SERVICE: &str = "debuginfo.v1alpha1.DebuginfoService";

/// Grafana's store. It looks names up if it runs with `-symbolizer.enabled`.
#[derive(Debug)]
pub(crate) struct Pyroscope(pub(crate) Server);

impl Store for Pyroscope {
    fn name(&self) -> &'static str {
        "Pyroscope"
    }

    fn address(&self) -> &str {
        &self.0.base
    }

    fn upload(&self, file: &DebugFile, force: bool, context: &Context) -> Result<Upload, Failure> {
        let build_id = &file.elf.build_id;
        let named = json!({ "gnuBuildId": build_id });
        if force {
            // It has no other way to take a second file, or one whose upload was broken off.
            self.call("DeleteDebuginfo", &named)?;
        }
        let name = file.path.file_name().unwrap_or_default();
        let about = json!({
            "gnuBuildId": build_id,
            "name": name.to_string_lossy(),
            "type": "TYPE_EXECUTABLE_FULL",
        });
        let answer = self.call("ShouldInitiateUpload", &json!({ "file": about }))?;
        let reason = || answer["reason"].as_str().unwrap_or_default().to_owned();
        if answer["shouldInitiateUpload"].as_bool() != Some(true) {
            return unwanted(&self.0.base, reason());
        }
        let url = self.0.url(&format!("{SERVICE}/Upload/{build_id}"));
        let mut content = file.open(context)?;
        let request = self.0.post(&url, "application/octet-stream");
        let request = request.header("Content-Length", file.length);
        check(&url, request.send(SendBody::from_reader(&mut content)))?;
        self.call("UploadFinished", &named)?;
        Ok(Upload::Done)
    }
}

impl Pyroscope {
    fn call(&self, method: &str, question: &Value) -> Result<Value, Failure> {
        let url = self.0.url(&format!("{SERVICE}/{method}"));
        let request = self.0.post(&url, "application/json");
        let answer = check(&url, request.send(question.to_string()))?;
        let answer = bytes(&url, answer)?;
        let value = serde_json::from_slice(&answer)
            .ok()
            .filter(Value::is_object);
        value.ok_or_else(|| is_another_server(&url, self.name()))
    }
}
