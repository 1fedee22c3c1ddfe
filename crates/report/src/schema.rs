// SPDX-License-Identifier: MIT OR Apache-2.0
//! Forms of JSON, for tests.
//! They check that a document has the form that a file of `docs/schema/` describes, and that the
//! file is what a type says of itself.

use std::fs;
use std::path::Path;

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::{Value, json};

/// Checks that JSON is of a schema's form: `gate-1.json`, and its text.
pub fn check(name: &str, schema: &str, value: &Value) -> Result<(), String> {
    let schema = serde_json::from_str(schema).unwrap();
    let mut compiler = boon::Compiler::new();
    compiler.add_resource(name, schema).unwrap();
    let mut schemas = boon::Schemas::new();
    let index = compiler.compile(name, &mut schemas).unwrap();
    let checked = schemas.validate(value, index);
    checked.map_err(|error| format!("{error:#}"))
}

/// With this variable set, [`assert_is_of`] writes the file that it would compare.
const WRITE: &str = "PUNCTUAL_WRITE_SCHEMAS";
const ADDRESS: &str = "https://github.com/punctual-rt/punctual/blob/main/docs/schema";

/// Panics unless a file of `docs/schema/` is the schema that the type's fields and comments make.
#[track_caller]
pub fn assert_is_of<T: JsonSchema>(name: &str, title: &str) {
    let settings = SchemaSettings::draft2020_12().for_serialize();
    let mut schema = settings.into_generator().into_root_schema_for::<T>();
    schema.insert("$id".to_owned(), json!(format!("{ADDRESS}/{name}")));
    schema.insert("title".to_owned(), json!(title));
    let schema = format!("{:#}\n", schema.as_value());
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/schema");
    let file = docs.join(name);
    if std::env::var_os(WRITE).is_some() {
        fs::write(&file, &schema).unwrap();
    }
    assert!(
        fs::read_to_string(&file).unwrap_or_default() == schema,
        "docs/schema/{name} is not what the type says: \
         `{WRITE}=1 cargo test -p punctual-report schema` writes it"
    );
}
