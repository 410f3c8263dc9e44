//! `weir metrics`: metrics of a running gateway for Prometheus. It is a process of its own that asks the
//! gateway as `weir ctl` does, so nothing that scrapes can stop what shapes.

use crate::command::error::Failure;
use crate::experiment::config::addresses;
use crate::field;
use crate::output::Target;
use crate::report::metrics::{Form, Scrape};
use std::net::SocketAddr;
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tiny_http::{Header, Method, Request, Response, Server};

/// Arguments of `weir metrics`.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Examples:
  sudo weir metrics                                      # once, to standard output
  sudo weir metrics --listen 127.0.0.1:9650
  sudo weir metrics --listen /run/weir/metrics.sock --customers
  sudo weir metrics --textfile /var/lib/prometheus/node-exporter/weir.prom

Prometheus scrapes http://127.0.0.1:9650/metrics. If the gateway is down, weir_up is 0.")]
pub struct Args {
    /// The interface of the gateway, if several gateways run
    #[arg(long, value_name = "INTERFACE", value_parser = addresses::interface)]
    dev: Option<String>,
    /// Serve HTTP at a loopback address, or at a Unix socket
    #[arg(long, value_name = "ADDRESS:PORT or PATH", value_parser = place, conflicts_with = "textfile")]
    listen: Option<Place>,
    /// Write the metrics to this file instead, each time as a whole
    #[arg(long, value_name = "FILE")]
    textfile: Option<PathBuf>,
    /// Seconds between two writes of the file
    #[arg(long, value_name = "SECONDS", default_value_t = 15, value_parser = clap::value_parser!(u64).range(1..=3600), requires = "textfile", conflicts_with = "listen")]
    every: u64,
    /// Give each customer series too
    #[arg(long)]
    customers: bool,
}

/// Place to listen at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Place {
    Loopback(SocketAddr),
    Socket(PathBuf),
}

pub(super) fn place(text: &str) -> Result<Place, String> {
    if text.starts_with('/') {
        return Ok(Place::Socket(text.into()));
    }
    match text.parse::<SocketAddr>() {
        Ok(address) if address.ip().is_loopback() => Ok(Place::Loopback(address)),
        Ok(address) => Err(format!(
            "{} is no loopback address: listen at 127.0.0.1 or [::1], and put a reverse proxy with TLS before it",
            address.ip()
        )),
        Err(_) => Err("expected an address with a port, as 127.0.0.1:9650, or the path of a socket, as \
                       /run/weir/metrics.sock"
            .into()),
    }
}

/// Runs until it is stopped, or prints the metrics once.
pub fn run(args: &Args) -> Result<(), Failure> {
    field::may_ask().map_err(Failure::Other)?;
    match (&args.listen, &args.textfile) {
        (Some(place), _) => serve(args, place),
        (None, Some(path)) => write(args, path),
        (None, None) => {
            let report = Some(field::report(args.dev.as_deref(), "show all").map_err(Failure::Other)?);
            super::print(&Scrape { report, customers: args.customers }.format(Form::OpenMetrics))
        }
    }
}

/// The last failure, so that a gateway that is down is said once and not at each scrape.
#[derive(Default)]
struct Source(Option<String>);

impl Source {
    fn scrape(&mut self, args: &Args) -> Scrape {
        let report = field::report(args.dev.as_deref(), "show all");
        let failure = report.as_ref().err().cloned();
        if failure.is_some() && self.0 != failure {
            crate::output::say(&format!("weir: weir_up is 0: {}", failure.as_deref().unwrap_or_default()));
        }
        self.0 = failure;
        Scrape { report: report.ok(), customers: args.customers }
    }
}

fn write(args: &Args, path: &Path) -> Result<(), Failure> {
    let target = Target::new(path).map_err(Failure::Input)?;
    let mut source = Source::default();
    let mut failed = None;
    loop {
        let text = source.scrape(args).format(Form::Prometheus);
        let written = target.write(text.as_bytes()).map_err(|e| e.to_string()).err();
        if let Some(why) = written.as_ref().filter(|_| written != failed) {
            let (path, every) = (path.display(), args.every);
            crate::output::say(&format!(
                "weir: {path}: {why}; the old file stays, trying again each {every} s"
            ));
        }
        failed = written;
        std::thread::sleep(Duration::from_secs(args.every));
    }
}

/// Takes the place.
pub(super) fn listen(place: &Place) -> Result<Server, String> {
    match place {
        Place::Loopback(address) => Server::http(address).map_err(|e| {
            format!("cannot listen at {address}: {e}; `ss -ltnp` shows who does, or take another port")
        }),
        Place::Socket(path) => {
            // A socket without a server is left from an earlier run.
            let is_socket = path.symlink_metadata().is_ok_and(|about| about.file_type().is_socket());
            if is_socket && UnixStream::connect(path).is_err() {
                std::fs::remove_file(path).map_err(|e| format!("{}: {e}", path.display()))?;
            }
            Server::http_unix(path).map_err(|e| format!("cannot listen at {}: {e}", path.display()))
        }
    }
}

fn serve(args: &Args, place: &Place) -> Result<(), Failure> {
    let server = listen(place).map_err(Failure::Other)?;
    let mut source = Source::default();
    for request in server.incoming_requests() {
        // A client that has gone is none of the others' business.
        let _ = answer(request, || source.scrape(args));
    }
    Ok(())
}

/// Answers one request. Scrapes come one after the other.
fn answer(request: Request, scrape: impl FnOnce() -> Scrape) -> std::io::Result<()> {
    let path = request.url().split('?').next().unwrap_or_default();
    if !matches!(request.method(), Method::Get | Method::Head) {
        return request.respond(Response::from_string("only GET\n").with_status_code(405));
    }
    if path != "/metrics" {
        return request.respond(Response::from_string("the metrics are at /metrics\n").with_status_code(404));
    }
    let accepts = |header: &Header| {
        header.field.equiv("Accept") && header.value.as_str().contains("application/openmetrics-text")
    };
    let form = if request.headers().iter().any(accepts) { Form::OpenMetrics } else { Form::Prometheus };
    let response = Response::from_string(scrape().format(form));
    request.respond(match content_type(form).parse::<Header>() {
        Ok(header) => response.with_header(header),
        Err(()) => response,
    })
}

fn content_type(form: Form) -> &'static str {
    match form {
        Form::OpenMetrics => "Content-Type: application/openmetrics-text; version=1.0.0; charset=utf-8",
        Form::Prometheus => "Content-Type: text/plain; version=0.0.4; charset=utf-8",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::result::running::GatewayReport;
    use std::io::{Read, Write};
    use std::net::TcpStream;

    /// Serves one request and returns the answer as it came.
    fn get(server: &Server, address: SocketAddr, request: &str) -> String {
        let mut client = TcpStream::connect(address).unwrap();
        client.write_all(format!("{request}\r\nHost: a\r\nConnection: close\r\n\r\n").as_bytes()).unwrap();
        answer(server.recv().unwrap(), || Scrape {
            report: Some(GatewayReport::default()),
            customers: false,
        })
        .unwrap();
        let mut said = String::new();
        client.read_to_string(&mut said).unwrap();
        said
    }

    #[test]
    fn scrapers_get_the_form_that_they_ask_for() {
        let server = listen(&place("127.0.0.1:0").unwrap()).unwrap();
        let address = server.server_addr().to_ip().unwrap();
        let plain = get(&server, address, "GET /metrics HTTP/1.1");
        assert!(plain.starts_with("HTTP/1.1 200") && plain.contains("weir_up 1"), "{plain}");
        assert!(plain.contains("text/plain; version=0.0.4") && !plain.contains("# EOF"), "{plain}");
        let open = get(&server, address, "GET /metrics?a=1 HTTP/1.1\r\nAccept: application/openmetrics-text");
        assert!(
            open.contains("application/openmetrics-text; version=1.0.0") && open.contains("# EOF"),
            "{open}"
        );
        assert!(get(&server, address, "GET / HTTP/1.1").starts_with("HTTP/1.1 404"));
        assert!(get(&server, address, "POST /metrics HTTP/1.1").starts_with("HTTP/1.1 405"));
    }

    #[test]
    fn a_port_that_is_taken_is_said() {
        let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = taken.local_addr().unwrap();
        let why = listen(&Place::Loopback(address)).map(|_| ()).unwrap_err();
        assert!(
            why.starts_with(&format!("cannot listen at {address}: ")) && why.contains("another port"),
            "{why}"
        );
    }

    #[test]
    fn only_loopback_and_sockets_are_served() {
        for wrong in ["0.0.0.0:9650", "10.0.0.1:9650", "[::]:9650"] {
            assert!(place(wrong).unwrap_err().contains("no loopback address"), "{wrong}");
        }
        assert!(place("localhost").unwrap_err().contains("127.0.0.1:9650"));
        assert_eq!(place("/run/a.sock"), Ok(Place::Socket("/run/a.sock".into())));
    }

    #[test]
    fn a_socket_that_nobody_serves_is_taken() {
        let directory = tempfile::tempdir().unwrap();
        let at = Place::Socket(directory.path().join("m.sock"));
        drop(listen(&at).unwrap());
        let server = listen(&at).unwrap();
        assert!(listen(&at).is_err(), "it is served");
        drop(server);
    }
}
