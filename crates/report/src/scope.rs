//! What the scope found, as people and programs see it: text, page, JSON, a viewer's trace.

pub mod chrome;
pub mod compare;
pub mod json;
pub mod page;
pub mod text;
