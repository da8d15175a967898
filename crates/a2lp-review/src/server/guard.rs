//! Who may ask: requests to this host, from this page, with its token.

use super::http::{Request, Response, Status};
use std::net::SocketAddr;

/// 128 random bits in hexadecimal digits.
pub(super) fn random_token() -> std::io::Result<String> {
    Ok(crate::draw::Seed::random()?.to_string())
}

/// What a request must bring along.
pub(super) struct Guard {
    token: String,
    /// Names under which the server is asked for.
    hosts: Vec<String>,
}

impl Guard {
    /// For a server at this address; `host` is the name that the user gave, if any.
    pub(super) fn new(token: String, address: SocketAddr, host: Option<&str>) -> Self {
        let port = address.port();
        let mut hosts: Vec<String> =
            ["127.0.0.1", "localhost", "[::1]"].iter().map(|name| format!("{name}:{port}")).collect();
        // The address itself, unless it stands for all addresses of the machine.
        if !address.ip().is_unspecified() {
            hosts.push(address.to_string());
        }
        hosts.extend(host.map(|name| format!("{}:{port}", name.to_ascii_lowercase())));
        Guard { token, hosts }
    }

    pub(super) fn token(&self) -> &str {
        &self.token
    }

    /// Refuses requests that name another host, as pages of other sites do after a change of their address, and requests that pages of
    /// other sites make.
    pub(super) fn check_origin(&self, request: &Request) -> Result<(), Response> {
        let refuse = |message: &str| Err(Response::error(Status::Forbidden, message));
        let is_own = |host: &str| self.hosts.iter().any(|own| own.eq_ignore_ascii_case(host));
        match request.header("host") {
            None => return Err(Response::error(Status::BadRequest, "a request names its host, once")),
            Some(host) if !is_own(host) => return refuse("the request is for another host"),
            Some(_) => {}
        }
        if request.has_header("origin") {
            let host = request.header("origin").and_then(|origin| origin.strip_prefix("http://"));
            if !host.is_some_and(is_own) {
                return refuse("the request comes from another site");
            }
        }
        match request.header("sec-fetch-site") {
            None | Some("same-origin" | "none") => Ok(()),
            // The page itself may be shown in a frame, for example of a notebook. It has no data without the token.
            Some(_) if request.header("sec-fetch-mode") == Some("navigate") => Ok(()),
            Some(_) => refuse("the request comes from another site"),
        }
    }

    /// Refuses requests without the token of the page.
    pub(super) fn check_token(&self, request: &Request) -> Result<(), Response> {
        let given = request.header("x-a2lp-token").unwrap_or_default().as_bytes();
        let own = self.token.as_bytes();
        // As long for every wrong token.
        let differs = own
            .iter()
            .enumerate()
            .fold(given.len() != own.len(), |differs, (at, byte)| differs | (given.get(at) != Some(byte)));
        match differs {
            true => Err(Response::error(
                Status::Forbidden,
                "the token of the page is missing or wrong; open the address that `a2lp review` printed",
            )),
            false => Ok(()),
        }
    }

    /// Headers of every response.
    pub(super) fn protect(&self, response: &mut Response, in_frame: bool) {
        let ancestors = if in_frame { "http://localhost:* http://127.0.0.1:*" } else { "'none'" };
        let policy = format!(
            "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob:; connect-src 'self'; \
             base-uri 'none'; form-action 'none'; frame-ancestors {ancestors}"
        );
        response.headers.push(("Content-Security-Policy", policy));
        for (name, value) in [
            ("X-Content-Type-Options", "nosniff"),
            ("Referrer-Policy", "no-referrer"),
            ("Cross-Origin-Resource-Policy", "same-origin"),
            ("Cross-Origin-Opener-Policy", "same-origin"),
            ("Cache-Control", "no-store"),
        ] {
            response.headers.push((name, value.into()));
        }
    }
}
