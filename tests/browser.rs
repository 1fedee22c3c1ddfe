// SPDX-License-Identifier: MIT OR Apache-2.0
//! The pages of `punctual serve` in a real browser: headless Chromium, by `WebDriver`. They fit
//! their windows, narrow and wide, light and dark; the browser reports no error, nothing foreign is
//! executed, and a keyboard suffices.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, Stdio};

use punctual_tests::served::{Reply, Served, add_campaigns, fill};
use punctual_tests::{Scratch, until};
use rustix::process::{Pid, Signal, kill_process_group};
use serde_json::{Value, json};

/// A key that is no letter, as `WebDriver` names it.
const TAB: &str = "\u{e004}";
const SPACE: &str = "\u{e00d}";
const ENTER: &str = "\u{e007}";

/// A browser, and the port of its driver.
struct Browser {
    process: Child,
    port: u16,
    session: String,
}

impl Browser {
    /// Starts a browser. `None` if there is none; the test is then skipped.
    fn new(scratch: &Scratch) -> Option<Self> {
        if !punctual_skip::program("chromedriver") || !punctual_skip::program("chromium") {
            return None;
        }
        let mut command = Command::new("chromedriver");
        command
            .arg("--port=0")
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        // The browser's own processes go with it.
        command.env("HOME", scratch.path("")).process_group(0);
        let mut process = command.spawn().unwrap();
        let said = BufReader::new(process.stdout.take().unwrap());
        let mut lines = said.lines().map_while(Result::ok);
        let line = lines
            .find(|line| line.contains("successfully on port"))
            .expect("it says where it is");
        let port = line.rsplit("port ").next().unwrap();
        let port = port.trim_end_matches('.').parse().expect("a port");
        let mut browser = Self {
            process,
            port,
            session: String::new(),
        };
        let profile = format!("--user-data-dir={}", scratch.path("profile").display());
        let arguments = json!([
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-dev-shm-usage",
            profile
        ]);
        let wanted = json!({ "capabilities": { "alwaysMatch": {
            "browserName": "chrome",
            "goog:chromeOptions": { "args": arguments },
            "goog:loggingPrefs": { "browser": "ALL" },
            "timeouts": { "pageLoad": 600_000, "script": 600_000 },
        } } });
        let begun = browser.ask("POST", "/session", &wanted);
        let id = begun["sessionId"]
            .as_str()
            .unwrap_or_else(|| panic!("{begun}"));
        browser.session = format!("/session/{id}");
        Some(browser)
    }

    fn ask(&self, method: &str, path: &str, body: &Value) -> Value {
        let body = if method == "GET" {
            String::new()
        } else {
            body.to_string()
        };
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        let head = format!(
            "{method} {}{path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n\
             Content-Length: {}\r\nConnection: close\r\n\r\n",
            self.session,
            body.len()
        );
        stream.write_all(head.as_bytes()).unwrap();
        stream.write_all(body.as_bytes()).unwrap();
        // It keeps the connection, whatever it is asked.
        let mut reader = BufReader::new(stream);
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            assert_ne!(reader.read_line(&mut head).unwrap(), 0, "{path}: {head}");
        }
        let length = Reply::parse(head.as_bytes())
            .header("content-length")
            .parse();
        let mut body = vec![0; length.expect("a length")];
        reader.read_exact(&mut body).unwrap();
        let reply = Reply::parse(&[head.as_bytes(), &body].concat());
        let value: Value = serde_json::from_str(&reply.body).unwrap_or_default();
        assert_eq!(reply.status, 200, "{path}: {}", reply.body);
        value["value"].clone()
    }

    fn post(&self, path: &str, body: &Value) -> Value {
        self.ask("POST", path, body)
    }

    fn go(&self, site: &Served, target: &str) {
        let url = format!("http://{}{target}", site.address);
        self.post("/url", &json!({ "url": url }));
    }

    fn command(&self, name: &str, parameters: &Value) {
        let body = json!({ "cmd": name, "params": parameters });
        self.post("/goog/cdp/execute", &body);
    }

    /// Sets the window's width, and dark or light mode.
    fn look(&self, width: u32, is_dark: bool) {
        let size = json!({
            "width": width, "height": 900, "deviceScaleFactor": 1, "mobile": false,
        });
        self.command("Emulation.setDeviceMetricsOverride", &size);
        let scheme = if is_dark { "dark" } else { "light" };
        let media = json!({ "features": [{ "name": "prefers-color-scheme", "value": scheme }] });
        self.command("Emulation.setEmulatedMedia", &media);
    }

    fn value(&self, script: &str) -> Value {
        let script = format!("return {script}");
        self.post("/execute/sync", &json!({ "script": script, "args": [] }))
    }

    fn press(&self, key: &str) {
        let pressed = json!([
            { "type": "keyDown", "value": key },
            { "type": "keyUp", "value": key },
        ]);
        let source = json!({ "type": "key", "id": "keyboard", "actions": pressed });
        self.post("/actions", &json!({ "actions": [source] }));
    }

    /// Presses the tabulator until the wanted element has the focus.
    fn tab_to(&self, is_wanted: &str) {
        for _ in 0..60 {
            self.press(TAB);
            if self.value(&format!("(e => {is_wanted})(document.activeElement)")) == true {
                let outline = self.value("getComputedStyle(document.activeElement).outlineStyle");
                assert_ne!(
                    outline, "none",
                    "{is_wanted}: where the focus is can be seen"
                );
                return;
            }
        }
        panic!("the tabulator does not lead to {is_wanted}");
    }

    /// The errors that the browser has logged since the last call.
    fn complaints(&self) -> Vec<Value> {
        let log = self.post("/se/log", &json!({ "type": "browser" }));
        let lines = log.as_array().cloned().unwrap_or_default().into_iter();
        // That a page is not there is what a 404 says.
        let is_other = |line: &Value| !line.to_string().contains("favicon");
        lines.filter(is_other).collect()
    }

    /// Stores a picture if `PUNCTUAL_PICTURES` names a directory.
    fn keep_picture(&self, name: &str) {
        let Some(directory) = std::env::var_os("PUNCTUAL_PICTURES") else {
            return;
        };
        let whole =
            json!({ "cmd": "Page.captureScreenshot", "params": { "captureBeyondViewport": true } });
        let picture = self.post("/goog/cdp/execute", &whole);
        let mut decoded = Command::new("base64");
        let file = std::path::Path::new(&directory).join(format!("{name}.png"));
        decoded
            .arg("-d")
            .stdin(Stdio::piped())
            .stdout(fs::File::create(file).unwrap());
        let mut child = decoded.spawn().unwrap();
        let text = picture["data"].as_str().unwrap();
        child
            .stdin
            .take()
            .unwrap()
            .write_all(text.as_bytes())
            .unwrap();
        child.wait().unwrap();
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        _ = kill_process_group(Pid::from_child(&self.process), Signal::KILL);
        _ = self.process.wait();
    }
}

#[test]
fn pages_fit_narrow_and_wide_light_and_dark_and_complain_of_nothing() {
    let scratch = Scratch::new();
    add_campaigns(&fill(&scratch));
    let Some(browser) = Browser::new(&scratch) else {
        return;
    };
    let site = Served::new(&scratch, &[], None);
    let pages = [
        ("list", "/"),
        ("filtered", "/?state=failed&limit=1"),
        ("run", "/runs/r1"),
        ("foreign", "/runs/r8"),
        (
            "compared",
            "/compare?run=r1&run=r3&run=r5&run=r2&run=r4&run=r6",
        ),
        ("judged", "/gate?run=r2&run=r4&run=r6&baseline=stable"),
        ("baselines", "/baselines"),
        ("campaigns", "/campaigns"),
        ("done", "/campaigns/c1"),
        ("under-way", "/campaigns/c2"),
    ];
    for width in [1280, 390] {
        let mut papers = Vec::new();
        for is_dark in [false, true] {
            browser.look(width, is_dark);
            for (name, target) in pages {
                browser.go(&site, target);
                let widest = browser.value("document.documentElement.scrollWidth");
                assert!(
                    widest.as_u64() <= Some(width.into()),
                    "{target} at {width}: {widest}"
                );
                // Its style was taken, and nothing was made of foreign names.
                let most = browser.value("getComputedStyle(document.body).maxWidth");
                assert_eq!(most, "1140px", "{target}");
                let made = browser.value("document.querySelectorAll('script, img, iframe').length");
                assert_eq!(made, 0, "{target}");
                assert_eq!(browser.complaints(), [] as [Value; 0], "{target}");
                let scheme = if is_dark { "dark" } else { "light" };
                browser.keep_picture(&format!("{name}-{width}-{scheme}"));
            }
            papers.push(browser.value("getComputedStyle(document.body).backgroundColor"));
        }
        assert_ne!(papers[0], papers[1], "dark is dark");
    }
    // The browser keeps to the policy: what a page may not do, it cannot.
    browser.go(&site, "/");
    let script = "(() => { const s = document.createElement('script'); s.textContent = \
        'document.title = \"taken\"'; document.body.append(s); return document.title })()";
    assert_eq!(browser.value(script), "Punctual: runs");
    assert!(!browser.complaints().is_empty(), "and says so");
}

#[test]
fn a_keyboard_suffices_to_filter_choose_compare_and_judge() {
    let scratch = Scratch::new();
    drop(fill(&scratch));
    let Some(browser) = Browser::new(&scratch) else {
        return;
    };
    let site = Served::new(&scratch, &[], None);
    browser.look(1280, false);
    let title = |wanted: &str| {
        until(wanted, || {
            let title = browser.value("document.title");
            title.as_str().is_some_and(|title| title.contains(wanted))
        });
    };
    browser.go(&site, "/");
    // The filter is folded until it is used.
    browser.tab_to("e.tagName === 'SUMMARY'");
    browser.press(ENTER);
    browser.tab_to("e.name === 'subject'");
    for letter in ["r", "t"] {
        browser.press(letter);
    }
    browser.press(ENTER);
    until("the list is filtered", || {
        browser.value("document.querySelectorAll('tbody tr').length") == 3
    });
    for run in ["r6", "r4"] {
        browser.tab_to(&format!("e.type === 'checkbox' && e.value === '{run}'"));
        browser.press(SPACE);
    }
    browser.tab_to("e.textContent === 'Compare'");
    browser.press(ENTER);
    title("r6 against r4");
    browser.go(&site, "/?subject=rt");
    browser.tab_to("e.type === 'checkbox'");
    browser.press(SPACE);
    browser.tab_to("e.textContent === 'Judge against baseline'");
    browser.press(ENTER);
    until("the verdict is there", || {
        browser.value("document.body.textContent.includes('Verdicts')") == true
            || browser.value("location.pathname") == "/gate"
    });
    browser.go(&site, "/runs/r1");
    browser.tab_to("e.textContent === 'Baselines'");
    browser.press(ENTER);
    title("baselines");
    assert_eq!(browser.complaints(), [] as [Value; 0]);
}
