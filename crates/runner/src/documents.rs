// SPDX-License-Identifier: MIT OR Apache-2.0
//! Published documents: those that come with Punctual, and the user's own.

use punctual_published::Document;

use crate::{Error, data_files, mistakes};

/// All documents that suites repeat, and the user's own in `~/.config/punctual/published`, which
/// replace those about the same suite.
pub fn all() -> Result<Vec<Document>, Error> {
    let mut documents = punctual_published::documents()?;
    for (path, text) in data_files::own("published")? {
        let own = punctual_published::parse(&path, &text)
            .map_err(|error| mistakes::in_published(&path, &text, &error))?;
        documents.retain(|one| one.suite != own.suite);
        documents.push(own);
    }
    Ok(documents)
}
