// SPDX-License-Identifier: MIT OR Apache-2.0
//! The answers to requests. `docs/serve.md` lists the paths.

use std::io;

use punctual_model::Run;
use punctual_model::run::State;
use punctual_published::Document;
use punctual_report::campaign::campaign_json;
use punctual_report::compare::{Comparable, compare, comparison_json};
use punctual_report::gate::{Compared, Gate, TOLERANCE, gate_json, gated_page, page_runs};
use punctual_report::lists::{self, Rows};
use punctual_report::scope::arrivals::attach;
use punctual_report::{compared_page, runs_json, runs_page, write_runs_json};
use punctual_runner::gate as rules;
use punctual_store::{Campaign, RunAt, Store, StoreError, Summary};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use crate::budget::Refused;
use crate::campaigns::{Campaigns, Figures};
use crate::pages;
use crate::query::Query;

/// A request.
#[derive(Clone, Debug, Default)]
pub struct Request {
    /// The path, as it came.
    pub path: String,
    /// The part behind the question mark.
    pub query: String,
}

impl Request {
    /// Returns true if a program asks, not a browser.
    fn is_of_program(&self) -> bool {
        self.path.starts_with("/api/")
    }
}

/// Writes a body.
pub type Writer = Box<dyn FnOnce(&mut dyn io::Write) -> io::Result<()> + Send>;

/// The body of an answer.
pub enum Content {
    /// The whole text.
    Text(String),
    /// Text that is made while it is sent, because it may be very long.
    Written(Writer),
}

/// An answer.
pub struct Answer {
    /// The status.
    pub status: u16,
    /// The type of the body.
    pub kind: &'static str,
    /// The body.
    pub content: Content,
    /// The number of seconds after which a browser must ask again.
    pub refresh_s: Option<u32>,
}

impl Answer {
    fn page(body: String) -> Self {
        Self {
            status: 200,
            kind: "text/html; charset=utf-8",
            content: Content::Text(body),
            refresh_s: None,
        }
    }

    fn json(value: &Value) -> Self {
        Self {
            status: 200,
            kind: "application/json",
            content: Content::Text(format!("{value:#}\n")),
            refresh_s: None,
        }
    }

    /// Runs with all their samples, which are written one by one.
    fn raw(runs: Vec<Run>) -> Self {
        Self {
            status: 200,
            kind: "application/json",
            content: Content::Written(Box::new(move |out| write_runs_json(&runs, true, out))),
            refresh_s: None,
        }
    }

    /// A tag, the same for the same body; `None` for a body that is not made yet.
    pub fn tag(&self) -> Option<String> {
        let Content::Text(text) = &self.content else {
            return None;
        };
        let digest = Sha256::digest(text);
        let hex = digest[..16].iter().map(|byte| format!("{byte:02x}"));
        Some(format!("\"{}\"", hex.collect::<String>()))
    }
}

/// The reason why there is no answer.
enum Failure {
    /// There is no such page, run or baseline.
    Unknown(String),
    /// The request cannot be answered in this form.
    Wrong(String),
    /// The store cannot be read.
    Store(StoreError),
}

/// A run with what is known of its arrivals.
pub fn load(store: &Store, id: &str) -> Result<Run, StoreError> {
    let mut run = store.load(id)?;
    let stories = store.stories(id)?;
    attach(&mut run, stories.iter().map(|story| story.json.as_str()));
    Ok(run)
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Unknown { .. }
            | StoreError::UnknownBaseline { .. }
            | StoreError::UnknownCampaign { .. } => Self::Unknown(error.to_string()),
            error => Self::Store(error),
        }
    }
}

impl From<String> for Failure {
    fn from(what: String) -> Self {
        Self::Wrong(what)
    }
}

fn failure(request: &Request, status: u16, what: &str) -> Answer {
    let answer = if request.is_of_program() {
        Answer::json(&lists::error(what))
    } else {
        Answer::page(pages::failure(status, what))
    };
    Answer { status, ..answer }
}

/// The answer to a request that names another machine.
pub fn wrong_host(request: &Request) -> Answer {
    let what = "expected localhost in the request's Host: only this machine is served here";
    failure(request, 421, what)
}

/// The answer to a request without the token.
pub fn wrong_token(request: &Request) -> Answer {
    failure(
        request,
        401,
        "expected the token that `punctual serve` was started with",
    )
}

/// The answer to a request that would change something.
pub fn wrong_method(request: &Request) -> Answer {
    failure(
        request,
        405,
        "expected GET or HEAD: nothing can be changed here",
    )
}

/// The answer if the store cannot be read.
pub fn failed(request: &Request, error: &StoreError) -> Answer {
    let status = match error {
        StoreError::Lost { .. }
        | StoreError::Unreachable { .. }
        | StoreError::Busy { .. }
        | StoreError::NoStore(_)
        | StoreError::Replaced { .. }
        | StoreError::Written { .. } => 503,
        _ => 500,
    };
    failure(request, status, &error.to_string())
}

/// The answer if one would take too much memory, or there is none for it just now.
pub fn no_room(request: &Request, why: Refused, most: u64) -> Answer {
    match why {
        Refused::TooLarge => {
            let most = most >> 20;
            let what = format!(
                "expected runs whose answer takes {most} MiB of memory at most, found more: ask \
                 for fewer of them, or use `punctual show` where the store is"
            );
            failure(request, 413, &what)
        }
        Refused::Busy => {
            let what = "others are reading long answers, and there is no memory for another one: \
                        ask again in a moment";
            failure(request, 503, what)
        }
    }
}

/// The memory per byte of the store while a page is made: a sample takes some 4 bytes or more in
/// the store, and 64 when it is drawn.
const OF_PAGE: u64 = 16;

/// The memory per byte if all samples are written unchanged.
const OF_RAW: u64 = 8;

/// The memory per byte for a gate, which sets each run beside others.
const OF_GATE: u64 = 24;

/// The number of bytes that the runs named in a request take while it is answered. Its answer
/// reports any fault in the request.
pub fn cost(store: &Store, request: &Request) -> u64 {
    let query = Query::parse(&request.query);
    let parts: Vec<&str> = request.path.trim_matches('/').split('/').collect();
    let named = || query.runs().unwrap_or_default();
    let is_raw = is_raw(&query);
    let (runs, factor) = match parts[..] {
        ["runs", id] | ["api", "runs", id, "stories"] => (vec![id.to_owned()], OF_PAGE),
        ["api", "runs", id] => (vec![id.to_owned()], if is_raw { OF_RAW } else { OF_PAGE }),
        ["api", "show"] => (named(), if is_raw { OF_RAW } else { OF_PAGE }),
        ["show" | "compare"] | ["api", "compare"] => (named(), OF_PAGE),
        ["gate"] | ["api", "gate"] => {
            let baseline = query.value("baseline").map(|name| store.baseline(name));
            let there = baseline.and_then(Result::ok).unwrap_or_default();
            ([named(), there].concat(), OF_GATE)
        }
        ["campaigns", id] | ["api", "campaigns", id] => {
            return heaviest(store, id).saturating_mul(OF_PAGE);
        }
        _ => return 0,
    };
    let weights = runs.iter().filter_map(|id| store.weight(id).ok());
    weights.sum::<u64>().saturating_mul(factor)
}

/// The size of the largest run of a campaign, in bytes; its runs are read one after the other.
fn heaviest(store: &Store, campaign: &str) -> u64 {
    let runs = store.campaign(campaign).map(|campaign| campaign.runs);
    let runs = runs.unwrap_or_default().into_iter();
    let weights = runs.filter_map(|one| store.weight(&one.run).ok());
    weights.max().unwrap_or(0)
}

fn is_raw(query: &Query) -> bool {
    query.value("raw").is_some_and(|value| value != "false")
}

/// The answer after a defect.
pub fn broken(request: &Request) -> Answer {
    let what = "this page cannot be drawn: that is a defect of Punctual, please report it";
    failure(request, 500, what)
}

/// The answer to a request.
pub fn answer(
    store: &Store,
    campaigns: &Campaigns,
    documents: &[Document],
    request: &Request,
) -> Answer {
    let query = Query::parse(&request.query);
    let site = Routes {
        store,
        campaigns,
        documents,
        query: &query,
    };
    match site.find(&request.path) {
        Ok(answer) => answer,
        Err(Failure::Unknown(what)) => failure(request, 404, &what),
        Err(Failure::Wrong(what)) => failure(request, 400, &what),
        Err(Failure::Store(error)) => failed(request, &error),
    }
}

struct Routes<'a> {
    store: &'a Store,
    campaigns: &'a Campaigns,
    documents: &'a [Document],
    query: &'a Query,
}

impl Routes<'_> {
    fn find(&self, path: &str) -> Result<Answer, Failure> {
        let parts: Vec<&str> = path.trim_matches('/').split('/').collect();
        match parts[..] {
            [""] => self.list(),
            ["runs", id] => self.run(id),
            ["show"] => self.show(),
            ["compare"] => self.compare(),
            ["baselines"] => self.baselines(),
            ["gate"] => self.gate(),
            ["campaigns"] => self.campaigns(),
            ["campaigns", id] => self.campaign(id),
            ["api", "runs"] => self.list_json(),
            ["api", "runs", id] => self.run_json(id),
            ["api", "runs", id, "stories"] => self.stories_json(id),
            ["api", "show"] => self.show_json(),
            ["api", "compare"] => self.compare_json(),
            ["api", "baselines"] => self.baselines_json(),
            ["api", "gate"] => self.gate_json(),
            ["api", "campaigns"] => self.campaigns_json(),
            ["api", "campaigns", id] => self.campaign_json(id),
            _ => Err(Failure::Unknown("there is no page of this name".into())),
        }
    }

    /// The wanted runs, and the id of the last one if there are more.
    fn wanted(&self) -> Result<(Vec<Summary>, Option<String>), Failure> {
        let (filter, limit) = (self.query.filter()?, self.query.limit()?);
        let before = self.query.before()?;
        let mut runs = self.store.page(&filter, before.as_deref(), limit + 1)?;
        let has_more = runs.len() > limit;
        runs.truncate(limit);
        let last = runs.last().map(|run| run.id.clone());
        Ok((runs, last.filter(|_| has_more)))
    }

    fn list(&self) -> Result<Answer, Failure> {
        let (runs, next) = self.wanted()?;
        let baselines = self.store.baselines()?;
        let ids: Vec<&str> = runs.iter().map(|run| run.id.as_str()).collect();
        let longest = self.store.longest(&ids)?;
        let page = pages::list(&runs, &longest, next.as_deref(), &baselines, self.query);
        Ok(Answer::page(page.html()))
    }

    fn list_json(&self) -> Result<Answer, Failure> {
        let (runs, next) = self.wanted()?;
        Ok(Answer::json(&Rows::runs(&runs).page(next.as_deref())))
    }

    fn run(&self, id: &str) -> Result<Answer, Failure> {
        let run = load(self.store, id)?;
        let stories = self.store.stories(id)?;
        let baselines = self.store.baselines()?;
        let page = runs_page(std::slice::from_ref(&run), self.documents);
        Ok(Answer::page(
            pages::run(page, &run, &stories, &baselines).html(),
        ))
    }

    fn run_json(&self, id: &str) -> Result<Answer, Failure> {
        let run = load(self.store, id)?;
        Ok(self.runs_json(vec![run]))
    }

    fn stories_json(&self, id: &str) -> Result<Answer, Failure> {
        let stories = self.store.stories(id)?.into_iter();
        let story = |json: String| serde_json::from_str(&json).unwrap_or(Value::Null);
        let stories: Vec<Value> = stories
            .map(|one| json!({ "made": one.made, "told": one.told, "story": story(one.json) }))
            .collect();
        Ok(Answer::json(
            &json!({ "schema": "punctual.stories/1", "stories": stories }),
        ))
    }

    fn runs_json(&self, runs: Vec<Run>) -> Answer {
        if is_raw(self.query) {
            return Answer::raw(runs);
        }
        Answer::json(&runs_json(&runs, false))
    }

    /// The named runs; an error if there are fewer than `least`.
    fn named(&self, least: usize) -> Result<Vec<Run>, Failure> {
        let ids = self.query.runs()?;
        if ids.len() < least {
            let runs = if least == 1 { "one run" } else { "two runs" };
            return Err(Failure::Wrong(format!("choose {runs} at least")));
        }
        let runs = ids.iter().map(|id| load(self.store, id));
        Ok(runs.collect::<Result<_, _>>()?)
    }

    fn show(&self) -> Result<Answer, Failure> {
        let runs = self.named(1)?;
        Ok(Answer::page(
            pages::of_site(runs_page(&runs, self.documents)).html(),
        ))
    }

    fn show_json(&self) -> Result<Answer, Failure> {
        Ok(self.runs_json(self.named(1)?))
    }

    fn comparable(&self) -> Result<Comparable, Failure> {
        let refused = |refusal: punctual_report::compare::Refusal| refusal.to_string();
        Ok(Comparable::new(self.named(2)?).map_err(refused)?)
    }

    fn compare(&self) -> Result<Answer, Failure> {
        let runs = self.comparable()?;
        let page = compared_page(runs.runs(), self.documents, &compare(&runs));
        Ok(Answer::page(pages::of_site(page).html()))
    }

    fn compare_json(&self) -> Result<Answer, Failure> {
        Ok(Answer::json(&comparison_json(&compare(
            &self.comparable()?,
        ))))
    }

    fn baselines(&self) -> Result<Answer, Failure> {
        let mut all = Vec::new();
        for (name, ids) in self.store.baselines()? {
            let mut runs = Vec::new();
            for id in ids {
                runs.extend(self.store.summary(&id)?);
            }
            all.push((name, runs));
        }
        Ok(Answer::page(pages::baselines(&all).html()))
    }

    fn baselines_json(&self) -> Result<Answer, Failure> {
        let all = self.store.baselines()?;
        Ok(Answer::json(&Rows::baselines(&all).json()))
    }

    /// The verdict on the named runs against a baseline, and all these runs.
    fn judged(&self) -> Result<(Gate, Vec<Run>), Failure> {
        let mut here = self.named(1)?;
        let unnamed = || Failure::Wrong("choose a baseline".into());
        let baseline = self.query.value("baseline").ok_or_else(unnamed)?;
        let ids = self.store.baseline(baseline)?;
        if let Some(own) = here.iter().find(|run| ids.contains(&run.id)) {
            return Err(Failure::Wrong(format!(
                "{} is of baseline {baseline}, which it always equals: choose a later run",
                own.id
            )));
        }
        let there = ids.iter().map(|id| load(self.store, id));
        let mut there: Vec<Run> = there.collect::<Result<_, _>>()?;
        for run in here.iter_mut().chain(&mut there) {
            run.forget_parts();
        }
        let wrong = |error: punctual_runner::Error| Failure::Wrong(error.to_string());
        rules::finished(&here).map_err(wrong)?;
        let sides = rules::sides(&rules::subjects(&here), &there, &here, baseline);
        let sides = sides.map_err(wrong)?;
        let compared: Vec<Compared<'_>> = sides
            .iter()
            .map(|side| Compared {
                there: &side.there,
                here: &side.here,
                implied: side.implied(),
            })
            .collect();
        let gate = Gate::of(&here[0].suite, baseline, &compared, 1.0, TOLERANCE);
        let gate = gate.map_err(|refusal| refusal.to_string())?;
        Ok((gate, page_runs(there, here)))
    }

    fn gate(&self) -> Result<Answer, Failure> {
        let (gate, runs) = self.judged()?;
        let page = gated_page(&gate, &runs, self.documents);
        Ok(Answer::page(pages::of_site(page).html()))
    }

    fn gate_json(&self) -> Result<Answer, Failure> {
        Ok(Answer::json(&gate_json(&self.judged()?.0)))
    }

    fn campaigns(&self) -> Result<Answer, Failure> {
        let all = self.store.campaigns()?;
        Ok(Answer::page(pages::campaigns(&all).html()))
    }

    fn campaigns_json(&self) -> Result<Answer, Failure> {
        let all = self.store.campaigns()?;
        Ok(Answer::json(&Rows::campaigns(&all).json()))
    }

    /// A campaign so far; if it is under way, a browser asks again.
    fn campaign(&self, id: &str) -> Result<Answer, Failure> {
        let is_still = self.query.value("refresh") == Some("no");
        self.campaigns.now(self.store, id, |campaign, figures| {
            let (runs, unlisted) = self.listed(campaign)?;
            let page = pages::campaign(campaign, figures, &runs, unlisted, is_still);
            let again = campaign.summary.is_under_way && !is_still;
            Ok(Answer {
                refresh_s: again.then_some(pages::REFRESH_S),
                ..Answer::page(page.html())
            })
        })?
    }

    /// The runs of a campaign to list, those that go on first, and the number of the others.
    fn listed(&self, campaign: &Campaign) -> Result<(Vec<Summary>, usize), Failure> {
        let is_going = |one: &&RunAt| one.state == State::Running;
        let (going, ended): (Vec<_>, Vec<_>) = campaign.runs.iter().partition(is_going);
        let unlisted = ended.len().saturating_sub(pages::MOST_LISTED);
        let mut runs = Vec::new();
        for one in going.iter().chain(&ended[unlisted..]) {
            runs.extend(self.store.summary(&one.run)?);
        }
        Ok((runs, unlisted))
    }

    fn campaign_json(&self, id: &str) -> Result<Answer, Failure> {
        let json = |_: &Campaign, figures: &Figures| Answer::json(&campaign_json(&figures.report));
        Ok(self.campaigns.now(self.store, id, json)?)
    }
}
