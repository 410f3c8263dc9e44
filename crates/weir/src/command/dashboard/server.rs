//! The page's HTTP: files, the API, and a stream of changes for each client.

use super::live::{Heard, Live};
use super::older::{Prometheus, LONGEST};
use super::Place;
use crate::result::running::GatewayReport;
use crate::result::traffic::Kind;
use std::io::Write;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tiny_http::{Header, Method, Request, Response, Server};

/// Clients that may read the stream at once.
const CLIENTS: usize = 64;
/// Requests for older history at once.
const ASKING: usize = 4;
/// Time after which a stream without news says that it is there.
const SILENCE: Duration = Duration::from_secs(15);

/// Files of the page, with their types.
const FILES: [(&str, &str, &str); 4] = [
    ("/", "text/html; charset=utf-8", include_str!("page/index.html")),
    ("/app.js", "text/javascript; charset=utf-8", include_str!("page/app.js")),
    ("/style.css", "text/css; charset=utf-8", include_str!("page/style.css")),
    ("/api/v1/openapi.json", JSON, include_str!("page/openapi.json")),
];
const JSON: &str = "application/json";

/// Nothing but the page's own files runs or is shown, and no other page frames it.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; \
                      img-src data:; frame-ancestors 'none'; base-uri 'none'; form-action 'none'";

/// State that the asking thread and all clients share.
#[derive(Default)]
pub struct Shared {
    live: Mutex<(Live, u64)>,
    news: Condvar,
    clients: AtomicUsize,
    prometheus: Option<Prometheus>,
    asking: AtomicUsize,
}

impl Shared {
    /// Returns the state of a page whose older history is this Prometheus's.
    pub fn new(prometheus: Option<Prometheus>) -> Shared {
        Shared { prometheus, ..Shared::default() }
    }

    fn live(&self) -> MutexGuard<'_, (Live, u64)> {
        self.live.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns whether a stream is read.
    pub fn has_clients(&self) -> bool {
        self.clients.load(SeqCst) > 0
    }

    /// Takes an answer of the gateway, and wakes all streams.
    pub fn heard(&self, answer: Result<GatewayReport, String>, all: bool, now: Duration) {
        let mut live = self.live();
        live.0.heard(answer, all, now);
        live.1 += 1;
        self.news.notify_all();
    }

    /// Returns what is new to a client, or nothing if there was no news for a while.
    fn wait(&self, heard: &mut Heard, number: &mut u64) -> Option<String> {
        let waiting = |live: &mut (Live, u64)| live.1 == *number;
        let result = self.news.wait_timeout_while(self.live(), SILENCE, waiting);
        let (live, late) = result.unwrap_or_else(PoisonError::into_inner);
        if late.timed_out() {
            return None;
        }
        *number = live.1;
        Some(live.0.news(heard))
    }
}

/// Names by which the server may be asked. A page of another site that has its own name lead here is refused.
pub struct Names(Option<Vec<String>>);

impl Names {
    /// Returns the names of a place, and those of `more`. A socket is asked by any name.
    pub fn new(place: &Place, more: &[String]) -> Names {
        let Place::Loopback(_) = place else { return Names(None) };
        let own = ["127.0.0.1", "localhost", "[::1]"].map(str::to_owned);
        Names(Some(own.into_iter().chain(more.iter().map(|name| name.to_lowercase())).collect()))
    }

    fn has(&self, host: &str) -> bool {
        let name = match host.rsplit_once(':') {
            Some((name, port)) if port.bytes().all(|b| b.is_ascii_digit()) => name,
            _ => host,
        };
        self.0.as_ref().is_none_or(|names| names.iter().any(|own| *own == name.to_lowercase()))
    }
}

/// Serves until the process ends.
pub fn serve(server: &Server, shared: &Arc<Shared>, names: &Names) {
    for request in server.incoming_requests() {
        // A client that has gone is none of the others' business.
        let _ = answer(request, shared, names);
    }
}

fn header(text: &str) -> Option<Header> {
    text.parse().ok()
}

fn respond(request: Request, status: u16, kind: &str, body: &str) -> std::io::Result<()> {
    let headers = [
        format!("Content-Type: {kind}"),
        format!("Content-Security-Policy: {POLICY}"),
        "X-Content-Type-Options: nosniff".into(),
        "Referrer-Policy: no-referrer".into(),
        "Cache-Control: no-store".into(),
    ];
    let mut response = Response::from_string(body).with_status_code(status);
    headers.iter().filter_map(|text| header(text)).for_each(|header| response.add_header(header));
    request.respond(response)
}

fn error(request: Request, status: u16, why: &str) -> std::io::Result<()> {
    let body = serde_json::json!({ "error": why }).to_string();
    respond(request, status, JSON, &body)
}

/// Answers one request; a stream on a thread of its own.
fn answer(request: Request, shared: &Arc<Shared>, names: &Names) -> std::io::Result<()> {
    let host = request.headers().iter().find(|header| header.field.equiv("Host"));
    let host = host.map_or(String::new(), |header| header.value.to_string());
    if !names.has(&host) {
        return error(request, 421, "not served by this name: `weir dashboard --host NAME` adds one");
    }
    if !matches!(request.method(), Method::Get | Method::Head) {
        return error(request, 405, "only GET: changes go through `weir ctl`");
    }
    let url = request.url().to_owned();
    let (path, query) = url.split_once('?').unwrap_or((&url, ""));
    if let Some((_, kind, text)) = FILES.iter().find(|(name, _, _)| *name == path) {
        return respond(request, 200, kind, text);
    }
    match path {
        "/api/v1/report" => {
            let report = shared.live().0.report();
            match report {
                Some(report) => respond(request, 200, JSON, &report),
                None => error(request, 503, "the gateway has not answered yet"),
            }
        }
        "/api/v1/state" => {
            let state = shared.live().0.state();
            respond(request, 200, JSON, &state)
        }
        "/api/v1/history" => match asked(query) {
            Some((kind, name, ..=24)) => {
                let history = shared.live().0.history(kind, &name);
                match history {
                    Some(history) => respond(request, 200, JSON, &history),
                    None => error(request, 404, "the gateway has told of no such thing"),
                }
            }
            Some((kind, name, hours)) => older(request, shared, kind, name, hours),
            None => error(request, 400, ASKED),
        },
        "/api/v1/stream" => stream(request, shared),
        _ => error(request, 404, "see /api/v1/openapi.json"),
    }
}

const ASKED: &str =
    "expected ?kind=KIND&name=NAME, with a kind as in reports, and &hours=N for more than a day";

/// Returns the kind, the name and the hours that a query is for.
fn asked(query: &str) -> Option<(Kind, String, u64)> {
    let value = |key: &str| {
        let pairs = query.split('&').filter_map(|pair| pair.split_once('='));
        pairs.into_iter().find(|(name, _)| *name == key).and_then(|(_, value)| decoded(value))
    };
    let kind = serde_json::from_value(serde_json::Value::String(value("kind")?)).ok()?;
    let hours = value("hours").map_or(Ok(24), |hours| hours.parse()).ok();
    Some((kind, value("name")?, hours.filter(|hours| (1..=LONGEST).contains(hours))?))
}

/// Answers with older history, on a thread of its own: Prometheus may take its time.
fn older(
    request: Request,
    shared: &Arc<Shared>,
    kind: Kind,
    name: String,
    hours: u64,
) -> std::io::Result<()> {
    if shared.prometheus.is_none() {
        return error(
            request,
            404,
            "more than a day is Prometheus's: `weir dashboard --history http://HOST:PORT`",
        );
    }
    let asking = Asking(shared.clone());
    if shared.asking.fetch_add(1, SeqCst) >= ASKING {
        return error(request, 503, "too many requests for older history: try again");
    }
    std::thread::Builder::new().spawn(move || {
        let Some(prometheus) = &asking.0.prometheus else { return };
        // A client that has gone is none of the others' business.
        let _ = match prometheus.history(kind, &name, hours) {
            Ok(told) => respond(request, 200, JSON, &serde_json::to_string(&told).unwrap_or_default()),
            Err(why) => error(request, 502, &why),
        };
    })?;
    Ok(())
}

/// Counts a request for older history while it is under way.
struct Asking(Arc<Shared>);

impl Drop for Asking {
    fn drop(&mut self) {
        self.0.asking.fetch_sub(1, SeqCst);
    }
}

/// Decodes a value of a query.
fn decoded(value: &str) -> Option<String> {
    let mut bytes = Vec::new();
    let mut rest = value.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'+' => b' ',
            b'%' => {
                let digits = [rest.next()?, rest.next()?];
                u8::from_str_radix(std::str::from_utf8(&digits).ok()?, 16).ok()?
            }
            byte => byte,
        });
    }
    String::from_utf8(bytes).ok()
}

/// Counts a client while it is there.
struct Client(Arc<Shared>);

impl Drop for Client {
    fn drop(&mut self) {
        self.0.clients.fetch_sub(1, SeqCst);
    }
}

/// Writes server-sent events to a client until it is gone.
fn stream(request: Request, shared: &Arc<Shared>) -> std::io::Result<()> {
    let client = Client(shared.clone());
    if shared.clients.fetch_add(1, SeqCst) >= CLIENTS {
        return error(request, 503, "too many clients read the stream");
    }
    std::thread::Builder::new().spawn(move || {
        let mut to = request.into_writer();
        // Whatever goes wrong, the client is gone.
        let _ = write_events(&client.0, &mut to);
    })?;
    Ok(())
}

fn write_events(shared: &Shared, to: &mut dyn Write) -> std::io::Result<()> {
    write!(
        to,
        "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nCache-Control: no-store\r\n\
         X-Content-Type-Options: nosniff\r\nConnection: close\r\n\r\n"
    )?;
    let (mut heard, mut number) = (Heard::default(), u64::MAX);
    loop {
        match shared.wait(&mut heard, &mut number) {
            // JSON has no line feeds outside of strings, and escapes them there.
            Some(news) => write!(to, "data: {news}\n\n")?,
            None => write!(to, ":\n\n")?,
        }
        to.flush()?;
    }
}

#[cfg(test)]
mod tests;
