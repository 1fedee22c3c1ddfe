// SPDX-License-Identifier: MIT OR Apache-2.0
//! A guest's wire: two network cards that are connected.

use std::fmt::{self, Display, Formatter};

use serde::{Deserialize, Deserializer, Serialize};

/// The sending end, by its interface's name.
pub const NEAR: &str = "wire0";

/// The receiving end, by its interface's name.
pub const FAR: &str = "wire1";

/// The network namespace of the receiving end, by its name in `/run/netns`.
pub const NAMESPACE: &str = "wire";

/// The name of the missing module in a [`Reason`](crate::Reason) if there is no wire.
pub const MODULE: &str = "of the card";

/// A network card: QEMU's device and Linux's module of the same name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Card {
    /// Intel's 82574: PCI Express, interrupts as messages (MSI-X).
    E1000e,
    /// Intel's 82540EM: PCI, an interrupt line.
    E1000,
    /// Intel's 82576: PCI Express, MSI-X, several queues.
    #[cfg(feature = "wire")]
    Igb,
}

impl Card {
    /// All cards, the default first.
    #[cfg(not(feature = "wire"))]
    pub const ALL: [Self; 2] = [Self::E1000e, Self::E1000];
    /// All cards, the default first.
    #[cfg(feature = "wire")]
    pub const ALL: [Self; 3] = [Self::E1000e, Self::E1000, Self::Igb];

    /// Returns its name, which is that of QEMU's device and of Linux's module.
    pub fn name(self) -> &'static str {
        match self {
            Self::E1000e => "e1000e",
            Self::E1000 => "e1000",
            #[cfg(feature = "wire")]
            Self::Igb => "igb",
        }
    }
}

impl Display for Card {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Reads a suite's `network`: `true` for the default card, `false` for none, or a card's name.
///
/// # Errors
/// Fails if the value is neither.
pub fn of_suite<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Card>, D::Error> {
    let written = toml::Value::deserialize(from)?;
    let named = |card: &Card| written.as_str() == Some(card.name());
    match written.as_bool() {
        Some(wanted) => Ok(wanted.then_some(Card::ALL[0])),
        None => Card::ALL.into_iter().find(named).map(Some).ok_or_else(|| {
            let known = Card::ALL.map(|card| format!("\"{card}\"")).join(", ");
            serde::de::Error::custom(format!(
                "network = {written}, but it must be true, false or a card: {known}"
            ))
        }),
    }
}
