// SPDX-License-Identifier: MIT OR Apache-2.0
//! Whether JSON has the form that a file of `docs/schema/` describes, for tests.

/// Whether JSON is of a schema's form: `gate-1.json`, and its text.
pub fn check(name: &str, schema: &str, value: &serde_json::Value) -> Result<(), String> {
    let schema = serde_json::from_str(schema).unwrap();
    let mut compiler = boon::Compiler::new();
    compiler.add_resource(name, schema).unwrap();
    let mut schemas = boon::Schemas::new();
    let index = compiler.compile(name, &mut schemas).unwrap();
    let checked = schemas.validate(value, index);
    checked.map_err(|error| format!("{error:#}"))
}
