// SPDX-License-Identifier: MIT OR Apache-2.0
//! Access control.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use sha2::{Digest as _, Sha256};

/// The clients that may ask.
#[derive(Clone)]
pub enum Access {
    /// Any client that can reach the address, which is this machine's own. Only requests that name
    /// this machine are answered, so that no foreign page can make a browser ask in its name.
    Local,
    /// Any client that knows the token: as a bearer token, or as the password of any user.
    Token(String),
}

/// The reason why a request is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// It names another machine, or none.
    Host,
    /// It has no token, or another one.
    Token,
}

impl Access {
    /// Checks a request's `Host` and `Authorization`.
    pub fn check(&self, host: Option<&str>, authorization: Option<&str>) -> Result<(), Refused> {
        match self {
            Self::Local if host.is_some_and(is_this) => Ok(()),
            Self::Local => Err(Refused::Host),
            Self::Token(token) => match authorization.and_then(given) {
                Some(given) if is_equal(&given, token) => Ok(()),
                _ => Err(Refused::Token),
            },
        }
    }
}

fn is_this(host: &str) -> bool {
    let name = match host.strip_prefix('[') {
        Some(address) => address.split(']').next(),
        None => host.split(':').next(),
    };
    let name = name.unwrap_or_default();
    name.eq_ignore_ascii_case("localhost")
        || name
            .parse()
            .is_ok_and(|ip: std::net::IpAddr| ip.is_loopback())
}

/// The token in a header.
fn given(authorization: &str) -> Option<String> {
    let (scheme, rest) = authorization.split_once(' ')?;
    if scheme.eq_ignore_ascii_case("bearer") {
        return Some(rest.trim().to_owned());
    }
    if !scheme.eq_ignore_ascii_case("basic") {
        return None;
    }
    let bytes = BASE64_STANDARD.decode(rest.trim()).ok()?;
    let text = String::from_utf8(bytes).ok()?;
    Some(text.split_once(':')?.1.to_owned())
}

/// Compares digests, so that the time it takes tells nothing of the token.
fn is_equal(given: &str, token: &str) -> bool {
    Sha256::digest(given) == Sha256::digest(token)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn on_this_machine_only_its_own_names_are_answered() {
        let check = |host| Access::Local.check(host, None);
        for host in [
            "localhost",
            "LOCALHOST:8128",
            "127.0.0.1:80",
            "127.1.2.3",
            "[::1]:8128",
        ] {
            assert_eq!(check(Some(host)), Ok(()), "{host}");
        }
        for host in [
            "evil.example",
            "localhost.evil.example",
            "10.0.0.1",
            "",
            "[::2]:1",
        ] {
            assert_eq!(check(Some(host)), Err(Refused::Host), "{host}");
        }
        assert_eq!(check(None), Err(Refused::Host));
    }

    #[test]
    fn beyond_it_the_token_decides() {
        let access = Access::Token("open sesame".into());
        let check = |text: &str| access.check(Some("any"), Some(text));
        assert_eq!(check("Bearer open sesame"), Ok(()));
        let basic = |text: &str| format!("Basic {}", BASE64_STANDARD.encode(text));
        assert_eq!(check(&basic("ann:open sesame")), Ok(()));
        for wrong in [
            "Bearer",
            "Bearer ",
            "Bearer open",
            "open sesame",
            "Digest open sesame",
            "Basic !!",
            &basic("open sesame"),
            &basic(":open sesame "),
        ] {
            assert_eq!(check(wrong), Err(Refused::Token), "{wrong}");
        }
        assert_eq!(access.check(Some("localhost"), None), Err(Refused::Token));
    }
}
