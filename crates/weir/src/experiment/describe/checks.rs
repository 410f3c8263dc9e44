//! Expectations and measures.

use crate::experiment::plan::{Aggregate, Expect, Measure, Of, Op, Quantity, Target, Tolerance};
use crate::result::metric::OverTime;
use weir_core::time::Duration;

/// Returns an expectation in words, for results and tables.
pub fn expectation(e: &Expect) -> String {
    let over = e.aggregate.map_or(String::new(), |how| format!("{} of ", aggregate(how)));
    let value = |v: f64| e.measure.quantity.unit().show_exactly(v);
    let target = match e.target {
        Target::Value(part) if e.of.is_some() => {
            let of = e.of.as_ref().map_or(String::new(), |of| match of {
                Of::Measure(of) => of.what.clone(),
                Of::Baseline(name) => format!("baseline {name}"),
            });
            format!("{}% of {of}", (part * 1e8).round() / 1e6)
        }
        Target::Value(v) => value(v),
        Target::FlowRate => "flow_rate".to_string(),
    };
    let slack = match e.tolerance {
        Tolerance::Absolute(0.0) => String::new(),
        Tolerance::Absolute(a) => value(a),
        Tolerance::Relative(r) => format!("{}%", (r * 1e8).round() / 1e6),
    };
    let bound = match (e.op, slack.is_empty()) {
        (Op::Within, true) => format!("= {target}"),
        (Op::Within, false) => format!("within {slack} of {target}"),
        (Op::AtMost, true) => format!("<= {target}"),
        (Op::AtMost, false) => format!("<= {target} + {slack}"),
        (Op::AtLeast, true) => format!(">= {target}"),
        (Op::AtLeast, false) => format!(">= {target} - {slack}"),
    };
    format!("{over}{} {bound}", measure(&e.measure))
}

/// Returns the name of an aggregate.
pub fn aggregate(how: Aggregate) -> String {
    match how {
        Aggregate::Sum => "sum".into(),
        Aggregate::Mean => "mean".into(),
        Aggregate::Min => "min".into(),
        Aggregate::Max => "max".into(),
        Aggregate::Deviation => "deviation".into(),
        Aggregate::Percentile(percent) => format!("p{percent}"),
    }
}

/// Returns a measure in words.
pub fn measure(m: &Measure) -> String {
    let when = match m.quantity {
        Quantity::Goodput { over: OverTime::Intervals, length } => format!(" every {length}"),
        Quantity::Goodput { over: OverTime::Highest | OverTime::Lowest, length } => {
            format!(" over any {length}")
        }
        Quantity::Series { at: Some(at), .. } => format!(" at {at}"),
        _ => String::new(),
    };
    let sizes = m.sizes.map_or(String::new(), |(min, max)| format!(" of {min} to {max} bytes"));
    let from = if m.from == Duration::ZERO { String::new() } else { format!(" from {}", m.from) };
    let until = m.until.map_or(String::new(), |u| format!(" until {u}"));
    format!("{}{sizes}{when}{from}{until}", m.what)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::config::{experiment, Source};

    fn parsed(expect: &str) -> Expect {
        let text = format!(
            "name = 't'\nduration = '4s'\npath.wan = {{ rate = '100Mbit' }}\nflow = [{{ id = 'ten' }}]\n\
             gateway.class = [{{ name = 'ten', ack = {{ preset = 'ack-shaper', flow_rate = '10Mbit' }} }}]\n\
             [[expect]]\n{expect}\n"
        );
        let parsed = experiment::parse(&Source::new("t.toml", text)).unwrap_or_else(|e| panic!("{e}"));
        parsed.plan.expects[0].clone()
    }

    #[test]
    fn in_words() {
        let said = |e: &str| expectation(&parsed(e));
        assert_eq!(
            said("what = 'flow.*.max_bps'\nwindow = '400ms'\nfrom = '1s'\nop = 'at_most'\ntarget = '10Mbit'\ntolerance = '5%'"),
            "flow.*.max_bps over any 400ms from 1s <= 10 Mbit/s + 5%"
        );
        assert_eq!(
            said("what = 'class.ten.bps'\nop = 'within'\ntarget = '20Mbit'\ntolerance = '100kbit'"),
            "class.ten.bps within 100 kbit/s of 20 Mbit/s"
        );
        assert_eq!(
            said("what = 'class.ten.goodput_bps'\nof = 'flow.ten.*.goodput_bps'\nfrom = '1s'\nop = 'at_least'\ntarget = '99%'"),
            "class.ten.goodput_bps from 1s >= 99% of flow.ten.*.goodput_bps"
        );
        assert_eq!(
            said("what = 'flow.ten.*.rtos'\naggregate = 'sum'\nop = 'at_most'\ntarget = 3"),
            "sum of flow.ten.*.rtos <= 3"
        );
        assert_eq!(
            said("what = 'flow.ten.*.bytes'\nsizes = ['1kB', '10kB']\naggregate = 'p99'\nop = 'at_most'\ntarget = '9kB'"),
            "p99 of flow.ten.*.bytes of 1000 to 10000 bytes <= 9 kB"
        );
    }
}
