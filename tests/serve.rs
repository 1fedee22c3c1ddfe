// SPDX-License-Identifier: MIT OR Apache-2.0
//! `punctual serve`: its pages, its access control, and its robustness. `browser.rs` tests how the
//! pages look.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Command, Stdio};

use punctual_model::run::State;
use punctual_store::End;
use punctual_tests::served::{Served, add_campaigns, fill};
use punctual_tests::{Scratch, assert_has, schema, until};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

#[test]
fn runs_are_listed_filtered_shown_compared_and_judged() {
    let scratch = Scratch::new();
    let store = fill(&scratch);
    let site = Served::new(&scratch, &[], None);
    let list = site.get("/");
    assert_eq!(list.status, 200, "{}", list.body);
    assert_has(
        &list.body,
        &["href=\"/runs/r8\"", "href=\"/runs/r1\"", "Judge against"],
    );
    let rt = site.get("/?subject=rt&state=finished&suite=");
    assert_has(&rt.body, &["/runs/r2\"", "value=\"rt\""]);
    assert!(!rt.body.contains("/runs/r1\""));
    let page = site.get("/?limit=3");
    assert_has(
        &page.body,
        &["/runs/r6\"", "limit=3&amp;before=r6", "Earlier"],
    );
    assert_has(
        &site.get("/?limit=3&before=r6").body,
        &["/runs/r5\"", "Newest"],
    );
    assert_has(
        &site.get("/?kernel=nothing").body,
        &["There is no such run"],
    );

    let one = site.get("/runs/r1");
    assert_has(
        &one.body,
        &[
            "timer",
            "Why samples were late",
            "late because of",
            "stable",
        ],
    );
    assert_has(&site.get("/show?run=r1&run=r2").body, &["none", "rt"]);
    let compared = site.get("/compare?run=r1&run=r3&run=r5&run=r2&run=r4&run=r6");
    assert_eq!(compared.status, 200, "{}", compared.body);
    assert_has(&compared.body, &["Against none"]);
    let judged = site.get("/gate?run=r2&run=r4&run=r6&baseline=stable");
    assert_eq!(judged.status, 200, "{}", judged.body);
    assert_has(&judged.body, &["Verdicts", "stable"]);
    assert_has(
        &site.get("/baselines").body,
        &["stable", "show?run=r1&amp;run=r3"],
    );

    // The same as the commands print.
    let command = |arguments: &[&str]| -> Value {
        let ended = scratch.run(arguments);
        assert_eq!(ended.status, Some(0), "{}", ended.stderr);
        serde_json::from_str(&ended.stdout).unwrap()
    };
    assert_eq!(
        site.json("/api/runs")["runs"],
        command(&["runs", "--json"])["runs"]
    );
    assert_eq!(site.json("/api/runs?limit=3")["next"], "r6");
    assert_eq!(
        site.json("/api/runs/r1"),
        command(&["show", "r1", "--json"])
    );
    let raw = site.json("/api/show?run=r1&run=r2&raw=true");
    assert_eq!(raw, command(&["show", "r1", "r2", "--json", "--raw"]));
    let compared = site.json("/api/compare?run=r1&run=r2");
    assert_eq!(compared, command(&["compare", "r1", "r2", "--json"]));
    assert_eq!(
        site.json("/api/baselines"),
        command(&["baseline", "list", "--json"])
    );
    assert_eq!(
        site.json("/api/gate?run=r2&baseline=stable")["schema"],
        "punctual.gate/1"
    );
    assert_eq!(
        site.json("/api/runs/r1/stories")["stories"][0]["story"]["late"],
        true
    );

    // What is asked for again and has not changed is not sent again.
    let tag = format!("If-None-Match: \"x\", W/{}\r\n", one.header("etag"));
    let again = site.request("GET", "/runs/r1", &tag);
    assert_eq!((again.status, again.body.as_str()), (304, ""));
    store.set_baseline("new", &["r1".into()]).unwrap();
    assert_eq!(site.request("GET", "/runs/r1", &tag).status, 200);
    let head = site.request("HEAD", "/runs/r2", "");
    assert_eq!((head.status, head.body.as_str()), (200, ""));
}

#[test]
fn what_programs_are_given_has_the_form_of_its_schema() {
    let scratch = Scratch::new();
    let store = fill(&scratch);
    let site = Served::new(&scratch, &[], None);
    add_campaigns(&store);
    for (path, form) in [
        ("/api/runs", "list"),
        ("/api/runs?limit=3", "list"),
        ("/api/baselines", "list"),
        ("/api/campaigns", "list"),
        ("/api/runs/r1", "run"),
        ("/api/runs/r1/stories", "stories"),
        ("/api/compare?run=r1&run=r2", "compare"),
        ("/api/gate?run=r2&baseline=stable", "gate"),
        ("/api/campaigns/c1", "campaign"),
        ("/api/campaigns/c2", "campaign"),
    ] {
        schema::check(form, &site.json(path)).unwrap_or_else(|why| panic!("{path}: {why}"));
    }
    let error = site.get("/api/runs/r99");
    assert_eq!(error.status, 404);
    schema::check("error", &serde_json::from_str(&error.body).unwrap()).unwrap();
    assert!(schema::check("list", &site.json("/api/runs/r1")).is_err());
}

#[test]
fn a_campaign_is_seen_while_it_goes_on() {
    let scratch = Scratch::new();
    let store = fill(&scratch);
    add_campaigns(&store);
    let site = Served::new(&scratch, &[], None);
    let all = site.get("/campaigns");
    assert_has(&all.body, &["href=\"/campaigns/c1\"", "done", "under way"]);

    let ended = site.get("/campaigns/c1");
    assert_eq!(ended.header("refresh"), "", "nothing will change");
    assert_has(
        &ended.body,
        &[
            "Ranking",
            "Heat map",
            "What it said at its end",
            "6 of 6 runs",
            "/runs/r1\"",
        ],
    );
    let json = site.json("/api/campaigns/c1");
    assert_eq!((&json["asked"], &json["finished"]), (&6.into(), &6.into()));
    assert_eq!(json["settings"][0]["ranking"][0]["subject"], 1, "{json:#}");

    let now = site.get("/campaigns/c2");
    assert_eq!(now.header("refresh"), "10");
    assert_has(
        &now.body,
        &[
            "Under way",
            "href=\"/runs/r9\"",
            " 1 of 3 runs; under way",
            "1 at a time",
        ],
    );
    let still = site.get("/campaigns/c2?refresh=no");
    assert_eq!(still.header("refresh"), "");
    let finished = |id: &str| site.json(&format!("/api/campaigns/{id}"))["finished"].clone();
    assert_eq!(finished("c2"), 1);

    // A run that ends is in the next answer; one that is removed is not.
    let run = store.load("r9").unwrap();
    let digest = punctual_model::digest::digest(&run.recordings, &run.steps, &run.unsupported);
    let end = End {
        state: State::Finished,
        error: None,
        finished: "2026-01-09T00:02:00Z",
        console: "",
        digest: Some(&digest),
    };
    store.end("r9", &end).unwrap();
    assert_eq!(finished("c2"), 2);
    assert_has(&site.get("/campaigns/c2").body, &[" 2 of 3 runs"]);
    store.remove("r9").unwrap();
    assert_eq!(finished("c2"), 1);

    for unknown in ["c3", "r1", "%3Cb%3E", ""] {
        let target = format!("/api/campaigns/{unknown}");
        let expected = if unknown.is_empty() { 200 } else { 404 };
        assert_eq!(site.get(&target).status, expected, "{target}");
    }
}

#[test]
fn nothing_foreign_becomes_markup_and_nothing_is_executed() {
    let scratch = Scratch::new();
    add_campaigns(&fill(&scratch));
    let site = Served::new(&scratch, &[], None);
    let word =
        "%3Cscript%3Ealert(1)%3C/script%3E%22%27%3E%3Cimg%20src=x%20onerror=alert(2)%3E%26amp;";
    for target in [
        "/".to_owned(),
        "/runs/r1".into(),
        "/runs/r7".into(),
        "/runs/r8".into(),
        "/baselines".into(),
        "/campaigns".into(),
        "/campaigns/c1".into(),
        "/campaigns/c2".into(),
        format!("/campaigns/{word}"),
        "/compare?run=r7&run=r1".into(),
        "/gate?run=r7&baseline=stable".into(),
        "/show?run=r7&run=r8".into(),
        format!("/?kernel={word}&suite={word}&x={word}"),
        format!("/?before={word}"),
        format!("/?until={word}"),
        format!("/?state={word}"),
        format!("/?limit={word}"),
        format!("/runs/{word}"),
        format!("/{word}"),
        format!("/gate?run=r1&baseline={word}"),
        format!("/compare?run={word}&run=r1"),
    ] {
        let reply = site.get(&target);
        assert!(
            (200..500).contains(&reply.status),
            "{target}: {}",
            reply.status
        );
        assert!(
            reply.header("content-type").starts_with("text/html"),
            "{target}"
        );
        let body = reply.body.to_lowercase();
        assert!(
            !body.contains("<script") && !body.contains("<img"),
            "{target}: {body}"
        );
        let policy = reply.header("content-security-policy");
        assert_has(
            policy,
            &[
                "default-src 'none'",
                "style-src 'sha256-",
                "frame-ancestors 'none'",
            ],
        );
        assert!(!policy.contains("unsafe"), "{policy}");
        assert_eq!(reply.header("x-content-type-options"), "nosniff");
    }
    let api = site.get(&format!("/api/runs/{word}"));
    assert_eq!(
        (api.status, api.header("content-type")),
        (404, "application/json")
    );
}

#[test]
fn what_is_not_there_or_wrong_is_refused_and_the_site_stays() {
    let scratch = Scratch::new();
    drop(fill(&scratch));
    scratch.file("secret", "the secret");
    let site = Served::new(&scratch, &[], None);
    for target in [
        "/../secret",
        "/runs/../../secret",
        "/runs/..%2f..%2fsecret",
        "/%2e%2e/%2e%2e/etc/passwd",
        "//etc/passwd",
        "/runs/r1/../../../etc/passwd",
        "/runs/r99",
        "/runs/r01",
        "/runs/1;DROP TABLE runs".split(' ').next().unwrap(),
        "/runs/%00",
        "/api",
        "/style.css",
        "/show?run=r99",
        "/gate?run=r1&baseline=none",
    ] {
        let reply = site.get(target);
        assert_eq!(reply.status, 404, "{target}: {}", reply.body);
        assert!(!reply.body.contains("root:") && !reply.body.contains("the secret"));
    }
    for target in [
        "/compare?run=r1",
        "/compare",
        "/show",
        "/gate?run=r1",
        "/gate?run=r8&baseline=stable",
        "/?state=happy",
        "/?limit=1000000",
        "/show?run=r1%27%20OR%20%271%27=%271",
    ] {
        assert_eq!(site.get(target).status, 400, "{target}");
    }
    let injected = site.get("/?kernel=%27%20OR%20%271%27=%271");
    assert_has(&injected.body, &["There is no such run"]);
    for method in ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"] {
        let reply = site.request(method, "/runs/r1", "Content-Length: 0\r\n");
        assert_eq!(
            (reply.status, reply.header("allow")),
            (405, "get, head"),
            "{method}"
        );
    }

    let many: Vec<String> = (1..2_000).map(|n| format!("run={n}")).collect();
    assert_eq!(site.get(&format!("/show?{}", many.join("&"))).status, 400);
    let huge = format!("/?kernel={}", "x".repeat(1 << 20));
    assert!(matches!(site.get(&huge).status, 0 | 400 | 414 | 431));
    let headers = "X: y\r\n".repeat(20_000);
    assert!(matches!(
        site.request("GET", "/", &headers).status,
        0 | 400 | 431
    ));
    for nonsense in [
        &b"\x16\x03\x01\x02"[..],
        b"GET\r\n\r\n",
        b"\0\0\0\0\r\n\r\n",
        b"",
    ] {
        let mut stream = site.connect();
        stream.write_all(nonsense).unwrap();
        drop(stream);
    }
    assert_eq!(site.get("/").status, 200);
}

#[test]
fn whoever_is_slow_keeps_nobody_waiting() {
    let scratch = Scratch::new();
    drop(fill(&scratch));
    let site = Served::new(&scratch, &[], None);
    let slow: Vec<TcpStream> = (0..60)
        .map(|_| {
            let mut stream = site.connect();
            stream.write_all(b"GET / HTTP/1.1\r\nHost: local").unwrap();
            stream
        })
        .collect();
    assert_eq!(site.get("/runs/r1").status, 200);
    // And they do not stay for ever.
    for mut stream in slow {
        let mut rest = Vec::new();
        _ = stream.read_to_end(&mut rest);
        assert!(!String::from_utf8_lossy(&rest).contains("200 OK"));
    }
    assert_eq!(site.get("/").status, 200);
}

#[test]
fn only_who_may_reads() {
    let scratch = Scratch::new();
    drop(fill(&scratch));
    let site = Served::new(&scratch, &[], None);
    let ask = |host: &str| {
        site.send(format!("GET / HTTP/1.1\r\n{host}\r\n").as_bytes())
            .status
    };
    assert_eq!(ask("Host: localhost\r\n"), 200);
    for host in [
        "Host: evil.example\r\n",
        "Host: 127.0.0.1.evil.example\r\n",
        "",
    ] {
        assert_eq!(ask(host), 421, "{host}");
    }
    drop(site);

    let token = "a-token-of-some-length";
    let site = Served::new(&scratch, &[], Some(token));
    for wrong in [
        "",
        "Authorization: Bearer a-token\r\n",
        "Authorization: Basic eDp5\r\n",
    ] {
        let reply = site.request("GET", "/runs/r1", wrong);
        assert_eq!(reply.status, 401, "{wrong}");
        assert!(!reply.body.contains("timer"));
        assert_has(reply.header("www-authenticate"), &["basic"]);
        assert_eq!(site.request("GET", "/api/runs", wrong).status, 401);
    }
    let bearer = format!("Authorization: Bearer {token}\r\n");
    assert_eq!(site.request("GET", "/runs/r1", &bearer).status, 200);
    let curl = || {
        let mut curl = Command::new("curl");
        curl.args(["--silent", "--user", &format!("ann:{token}")]);
        curl.arg(format!("http://{}/api/runs", site.address));
        String::from_utf8(curl.output().unwrap().stdout).unwrap()
    };
    if punctual_skip::program("curl") {
        assert_has(&curl(), &["punctual.list/1"]);
    }
    let short = scratch
        .punctual(&["serve"])
        .env("PUNCTUAL_TOKEN", "short")
        .output()
        .unwrap();
    assert_eq!(short.status.code(), Some(2));
}

#[test]
fn beyond_the_loopback_there_is_always_a_token() {
    let scratch = Scratch::new();
    drop(fill(&scratch));
    let mut command = scratch.punctual(&["serve", "--listen", "0.0.0.0:0"]);
    command.env_remove("PUNCTUAL_TOKEN");
    let mut process = command.stderr(Stdio::piped()).spawn().unwrap();
    let said = BufReader::new(process.stderr.take().unwrap());
    let lines: Vec<String> = said.lines().map_while(Result::ok).take(2).collect();
    let token = lines[0]
        .split("token is ")
        .nth(1)
        .unwrap()
        .split(' ')
        .next()
        .unwrap();
    assert_eq!(token.len(), 64);
    let port = lines[1]
        .split("0.0.0.0:")
        .nth(1)
        .unwrap()
        .split('/')
        .next()
        .unwrap();
    let site = Served {
        process,
        address: format!("127.0.0.1:{port}"),
    };
    assert_eq!(site.get("/").status, 401);
    let bearer = format!("Authorization: Bearer {token}\r\n");
    assert_eq!(site.request("GET", "/", &bearer).status, 200);
}

#[test]
fn ctrl_c_ends_it_and_nothing_was_changed() {
    let scratch = Scratch::new();
    let store = fill(&scratch);
    let before = store.list().unwrap();
    let mut site = Served::new(&scratch, &[], None);
    assert_eq!(site.get("/").status, 200);
    // One who is connected and says nothing does not keep it.
    let idle = site.connect();
    kill_process(Pid::from_child(&site.process), Signal::INT).unwrap();
    let mut status = None;
    until("it ends", || {
        status = site.process.try_wait().unwrap();
        status.is_some()
    });
    assert_eq!(status.unwrap().code(), Some(0));
    drop(idle);
    assert_eq!(store.list().unwrap(), before);
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let ended = scratch.run(&["serve", "--listen", &address]);
    assert_eq!(ended.status, Some(1));
    assert_has(&ended.stderr, &["cannot listen", "--listen"]);
    let none = Scratch::new().run(&["serve"]);
    assert_eq!(none.status, Some(2));
}
