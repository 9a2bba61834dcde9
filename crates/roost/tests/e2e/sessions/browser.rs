//! Browser in which a user logs in, and which sends the requests of the pages.

use std::net::SocketAddr;

use serde_json::Value;

use crate::support::http::{Answer, Client, number};

/// Browser with a session.
#[derive(Clone, Debug)]
pub(crate) struct Browser {
    address: SocketAddr,
    /// Cookie of the session, in the form of a header.
    pub(crate) cookie: String,
    /// Token of the forms.
    pub(crate) token: String,
    pub(crate) user: u64,
}

/// Cookie set by a response.
fn cookie(answer: &Answer) -> String {
    let set = answer.header("set-cookie").unwrap_or_else(|| panic!("no cookie: {}", answer.text()));
    for part in ["HttpOnly", "SameSite=Lax", "Path=/"] {
        assert!(set.contains(part), "{set}");
    }
    set.split(';').next().unwrap().to_owned()
}

/// Token of the forms of a page.
fn token(page: &str) -> String {
    let (_, rest) = page.split_once("name=\"form_token\" value=\"").unwrap();
    rest.split('"').next().unwrap().to_owned()
}

impl Browser {
    pub(crate) fn log_in(address: SocketAddr, name: &str, password: &str) -> Self {
        Self::log_in_with(address, name, password, None)
    }

    /// Logs in, with a browser that may already have a cookie.
    pub(crate) fn log_in_with(
        address: SocketAddr,
        name: &str,
        password: &str,
        planted: Option<&str>,
    ) -> Self {
        let mut client = Client::new(address, None);
        let had = planted.iter().map(|planted| ("Cookie", *planted)).collect::<Vec<_>>();
        let page = client.send("GET", "/auth/log-in?pages=1", &had, b"").unwrap().expect(200);
        // A browser that has a session gets no other cookie for forms.
        let set = page.header("set-cookie").map(|_| cookie(&page));
        let cookies: Vec<_> = planted.into_iter().chain(set.as_deref()).collect();
        let fields = [
            ("form_token", &*token(&page.text())),
            ("pages", "1"),
            ("username", name),
            ("password", password),
        ];
        let answer = form(&mut client, "/auth/log-in", &cookies.join("; "), &fields);
        assert_eq!((answer.status, answer.header("location")), (303, Some("/")));
        let cookie = cookie(&answer);
        let headers = [("Cookie", &*cookie), ("Sec-Fetch-Site", "same-origin")];
        let described = client.send("GET", "/auth/session", &headers, b"").unwrap().json();
        let token = described["form_token"].as_str().unwrap().to_owned();
        let user = number(&described["user"]["id"]);
        Self { address, cookie, token, user }
    }

    pub(crate) fn headers(&self) -> Vec<(&'static str, String)> {
        vec![("Cookie", self.cookie.clone()), ("Roost-Session", self.token.clone())]
    }

    /// Sends a request of a page.
    pub(crate) fn send(&mut self, method: &str, path: &str, body: Option<&Value>) -> Answer {
        let mut headers = self.headers();
        if body.is_some() {
            headers.push(("Content-Type", "application/json".to_owned()));
        }
        let headers: Vec<_> = headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
        let body = body.map(Value::to_string).unwrap_or_default();
        let mut client = Client::new(self.address, None);
        client.send(method, path, &headers, body.as_bytes()).unwrap()
    }

    pub(crate) fn get(&mut self, path: &str) -> Value {
        self.send("GET", path, None).expect(200).json()
    }

    pub(crate) fn log_out(&mut self) {
        let mut client = Client::new(self.address, None);
        let answer =
            form(&mut client, "/auth/log-out", &self.cookie, &[("form_token", &self.token)]);
        assert_eq!(answer.status, 303, "{}", answer.text());
    }

    /// On the settings page, revokes everything except this session.
    pub(crate) fn revoke_others(&mut self) {
        let mut client = Client::new(self.address, None);
        let headers = [("Cookie", &*self.cookie)];
        let page = client.send("GET", "/settings", &headers, b"").unwrap().expect(200).text();
        for part in page.split("name=\"grant\" value=\"").skip(1) {
            let fields = [("form_token", &*self.token), ("grant", part.split('"').next().unwrap())];
            let answer = form(&mut client, "/settings/revoke", &self.cookie, &fields);
            assert_eq!(answer.status, 303, "{}", answer.text());
        }
    }
}

fn form(client: &mut Client, path: &str, cookies: &str, fields: &[(&str, &str)]) -> Answer {
    let encoded = |text: &str| -> String {
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
        let encode = |byte: u8| match plain(byte) {
            true => char::from(byte).to_string(),
            false => format!("%{byte:02X}"),
        };
        text.bytes().map(encode).collect()
    };
    let pairs: Vec<_> =
        fields.iter().map(|(name, value)| format!("{name}={}", encoded(value))).collect();
    let headers = [("Cookie", cookies), ("Content-Type", "application/x-www-form-urlencoded")];
    client.send("POST", path, &headers, pairs.join("&").as_bytes()).unwrap()
}
