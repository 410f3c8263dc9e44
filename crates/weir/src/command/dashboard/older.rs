//! History that is older than the page's own: from a Prometheus that scrapes `weir metrics`.

use super::history::Told;
use crate::result::traffic::Kind;
use serde::Deserialize;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Steps of an answer.
const STEPS: u64 = 288;
/// Longest span in hours: ten years.
pub const LONGEST: u64 = 87_600;
/// Longest wait for each query, in seconds.
const PATIENCE: u64 = 10;

/// A Prometheus, and the labels that its series of this gateway have.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Prometheus {
    url: String,
    labels: String,
}

/// Parses the address of a Prometheus. TLS is a proxy's.
pub fn url(text: &str) -> Result<String, String> {
    let rest = text.strip_prefix("http://").ok_or("expected a URL, as http://127.0.0.1:9090")?;
    let plain = rest.bytes().all(|b| b.is_ascii_graphic() && !b"?#\"\\".contains(&b));
    match !rest.is_empty() && plain {
        true => Ok(text.trim_end_matches('/').to_owned()),
        false => Err("expected a URL without a query, as http://127.0.0.1:9090".into()),
    }
}

/// Quotes a string as a label's value.
fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for c in text.chars() {
        match c {
            '\\' | '"' => quoted.extend(['\\', c]),
            '\n' => quoted.push_str("\\n"),
            c => quoted.push(c),
        }
    }
    quoted + "\""
}

/// Encodes a value of a query.
fn encoded(text: &str) -> String {
    let one = |byte: u8| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' => char::from(byte).to_string(),
        byte => format!("%{byte:02X}"),
    };
    text.bytes().map(one).collect()
}

/// Answer of Prometheus to a query of a range.
#[derive(Deserialize)]
struct Answer {
    #[serde(default)]
    error: String,
    #[serde(default)]
    data: Data,
}

#[derive(Default, Deserialize)]
struct Data {
    #[serde(default)]
    result: Vec<Series>,
}

#[derive(Deserialize)]
struct Series {
    values: Vec<(f64, String)>,
}

impl Prometheus {
    /// Returns a Prometheus at this [`url`]. `labels` are matchers that choose a gateway of several.
    pub fn new(url: &str, labels: &str) -> Prometheus {
        Prometheus { url: url.into(), labels: labels.into() }
    }

    /// Returns the history of a thing over the last `hours`, or why there is none, and what to do.
    pub fn history(&self, kind: Kind, name: &str, hours: u64) -> Result<Told, String> {
        let step = hours * 3600 / STEPS;
        let end = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO).as_secs();
        let times = Times { begin: end.saturating_sub(step * (STEPS - 1)), end, step };
        let more = if self.labels.is_empty() { String::new() } else { format!(",{}", self.labels) };
        let of = |metric: &str, direction: &str| {
            let direction = if direction.is_empty() {
                String::new()
            } else {
                format!(",direction={}", quoted(direction))
            };
            let (kind, name) = (quoted(kind.name()), quoted(name));
            format!("weir_traffic_{metric}{{kind={kind},name={name}{direction}{more}}}")
        };
        let rate =
            |metric: &str, direction| format!("sum(rate({}[{}s]))", of(metric, direction), step.max(60));
        let worst = |metric| format!("max({})", of(metric, ""));
        let resent = rate("retransmitted_packets_total", "");
        let mega = 1e6;
        let ask = |query: &str, factor| self.range(query, &times, factor);
        Ok(Told {
            step_s: step,
            down_bps: ask(&rate("bytes_total", "in"), 8.0)?,
            up_bps: ask(&rate("bytes_total", "out"), 8.0)?,
            rtt_wan_p50_us: ask(&worst("rtt_wan_median_seconds"), mega)?,
            rtt_wan_p99_us: ask(&worst("rtt_wan_p99_seconds"), mega)?,
            rtt_lan_p99_us: ask(&worst("rtt_lan_p99_seconds"), mega)?,
            resent_ppm: ask(&format!("{resent} / {}", rate("packets_total", "")), mega)?,
        })
    }

    /// Returns the value of a query at each step, 0 where there is none.
    fn range(&self, query: &str, times: &Times, factor: f64) -> Result<Vec<u64>, String> {
        let Times { begin, end, step } = *times;
        let query = encoded(query);
        let url =
            format!("{}/api/v1/query_range?query={query}&start={begin}&end={end}&step={step}", self.url);
        let answer = minreq::get(url).with_timeout(PATIENCE).send().map_err(|e| {
            format!("the Prometheus at {} does not answer: {e}; start it, or correct --history", self.url)
        })?;
        let said = answer.as_str().ok().and_then(|text| serde_json::from_str::<Answer>(text).ok());
        let said = said.ok_or_else(|| {
            format!("{} is no Prometheus (status {}): correct --history", self.url, answer.status_code)
        })?;
        if answer.status_code != 200 {
            return Err(format!("the Prometheus at {} refuses: {}", self.url, said.error));
        }
        let mut values = vec![0; STEPS as usize];
        for (at, value) in said.data.result.into_iter().flat_map(|series| series.values) {
            let place = (at - begin as f64) / step as f64;
            // Prometheus writes NaN and infinities as words.
            let value = value.parse::<f64>().ok().filter(|value| value.is_finite()).unwrap_or(0.0);
            if let Some(place) = values.get_mut(place.round().max(0.0) as usize) {
                *place = (value * factor).round().max(0.0) as u64;
            }
        }
        Ok(values)
    }
}

/// Steps of a query.
struct Times {
    begin: u64,
    end: u64,
    step: u64,
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::SocketAddr;
    use tiny_http::{Response, Server};

    /// Serves these answers, one to each request; returns the requests.
    fn serve(answers: Vec<(u16, String)>) -> (SocketAddr, std::thread::JoinHandle<Vec<String>>) {
        let server = Server::http("127.0.0.1:0").unwrap();
        let address = server.server_addr().to_ip().unwrap();
        let serving = std::thread::spawn(move || {
            let one = |(status, text): (u16, String)| {
                let request = server.recv().unwrap();
                let url = request.url().to_owned();
                request.respond(Response::from_string(text).with_status_code(status)).unwrap();
                url
            };
            answers.into_iter().map(one).collect()
        });
        (address, serving)
    }

    fn at(address: SocketAddr) -> Prometheus {
        Prometheus::new(&format!("http://{address}"), "instance=\"a\"")
    }

    #[test]
    fn a_week_has_a_value_at_each_step() {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
        // A week has 2,100 s for each step; the series has values at the last two, of which one is no number.
        let text = format!(
            r#"{{"status":"success","data":{{"resultType":"matrix","result":[
               {{"metric":{{}},"values":[[{},"250000"],[{},"NaN"]]}}]}}}}"#,
            now - 2_100,
            now
        );
        let (address, serving) = serve(vec![(200, text); 6]);
        let told = at(address).history(Kind::Customer, "a \"b\"", 168).unwrap();
        assert_eq!((told.step_s, told.down_bps.len(), told.resent_ppm.len()), (2_100, 288, 288));
        // 250 kB a second are 2 Mbit/s.
        assert_eq!((told.down_bps[286], told.down_bps[287], told.down_bps[0]), (2_000_000, 0, 0));
        let asked = serving.join().unwrap();
        let expected = "weir_traffic_bytes_total{kind=\"customer\",name=\"a \\\"b\\\"\",direction=\"in\",instance=\"a\"}";
        assert!(asked[0].contains(&encoded(expected)), "{}", asked[0]);
        assert!(asked[0].contains("&step=2100"), "{}", asked[0]);
    }

    #[test]
    fn a_prometheus_that_is_away_or_is_none_is_said() {
        let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let away = at(free).history(Kind::Link, "wan0", 720).unwrap_err();
        assert!(away.contains("does not answer") && away.contains("correct --history"), "{away}");
        let (address, serving) = serve(vec![(200, "<html>".into())]);
        let none = at(address).history(Kind::Link, "wan0", 720).unwrap_err();
        assert!(none.contains("is no Prometheus (status 200)"), "{none}");
        serving.join().unwrap();
        let (address, serving) = serve(vec![(422, r#"{"status":"error","error":"too many"}"#.into())]);
        let refused = at(address).history(Kind::Link, "wan0", 720).unwrap_err();
        assert!(refused.contains("refuses: too many"), "{refused}");
        serving.join().unwrap();
    }

    #[test]
    fn a_url_is_plain() {
        assert_eq!(url("http://a:9090/").as_deref(), Ok("http://a:9090"));
        for wrong in ["", "a:9090", "https://a", "http://", "http://a b", "http://a/?q"] {
            assert!(url(wrong).is_err(), "{wrong}");
        }
    }
}
