// SPDX-License-Identifier: MIT OR Apache-2.0
//! Checks that JSON has the form that a file of `docs/schema/` describes.

use std::fs;
use std::path::Path;

use serde_json::Value;

/// Checks the form of JSON: `list` is the newest version of `docs/schema/list-N.json`.
///
/// # Panics
/// If there is no such schema, or it is not valid.
pub fn check(form: &str, value: &Value) -> Result<(), String> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/schema");
    let path = (1..10)
        .rev()
        .map(|version| directory.join(format!("{form}-{version}.json")))
        .find(|path| path.exists());
    let path = path.unwrap_or_else(|| panic!("no schema of {form}"));
    let text = fs::read_to_string(path).expect("a schema");
    let schema = serde_json::from_str(&text).expect("JSON");
    let mut compiler = boon::Compiler::new();
    compiler.add_resource(form, schema).expect("a schema");
    let mut schemas = boon::Schemas::new();
    let index = compiler.compile(form, &mut schemas).expect("a schema");
    let checked = schemas.validate(value, index);
    checked.map_err(|error| format!("{error:#}"))
}
