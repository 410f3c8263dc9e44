//! Variants of an experiment that run beside it.

use crate::experiment::plan::Plan;
use crate::result::{Machine, RunResult, Status};

/// Runs a plan's baselines with `run`, and adds their results to its own. A failure of a baseline is a
/// failure of the experiment. After an interruption no baseline is started.
pub fn run(
    plan: &Plan,
    result: &mut RunResult,
    mut run: impl FnMut(&Plan) -> Result<RunResult, String>,
) -> Result<(), String> {
    for baseline in &plan.baselines {
        if result.status == Status::Interrupted {
            break;
        }
        let named = |fault: &String| format!("baseline {}: {fault}", baseline.name);
        let beside = run(&baseline.plan).map_err(|error| named(&error))?;
        result.faults.extend(beside.faults.iter().map(named));
        result.wall_s += beside.wall_s;
        result.machine = result.machine.into_iter().chain(beside.machine).reduce(Machine::worst);
        if beside.status != Status::Ok {
            result.status = beside.status;
        }
        result.baselines.insert(baseline.name.clone(), beside);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::plan::Baseline;
    use weir_core::time::Duration;

    fn plan() -> Plan {
        let plan = |name: &str| Plan::new(name, Duration::from_secs(1));
        let baseline = |name: &str| Baseline { name: name.into(), settings: Vec::new(), plan: plan(name) };
        Plan { baselines: vec![baseline("a"), baseline("b")], ..plan("t") }
    }

    fn made(status: Status) -> (RunResult, usize) {
        let (mut result, mut runs) = (RunResult::default(), 0);
        let run_one = |p: &Plan| {
            runs += 1;
            let fault = (status == Status::Failed).then(|| "it broke".to_string());
            Ok(RunResult {
                experiment: p.name.clone(),
                status,
                faults: fault.into_iter().collect(),
                ..RunResult::default()
            })
        };
        run(&plan(), &mut result, run_one).unwrap();
        (result, runs)
    }

    #[test]
    fn each_is_run_and_its_faults_are_the_run_s() {
        let (good, runs) = made(Status::Ok);
        assert_eq!((good.status, runs, good.baselines["b"].experiment.as_str()), (Status::Ok, 2, "b"));
        let (bad, _) = made(Status::Failed);
        assert_eq!((bad.status, bad.faults.len()), (Status::Failed, 2));
        assert_eq!(bad.faults[0], "baseline a: it broke");
    }

    #[test]
    fn an_interruption_ends_them() {
        let (result, runs) = made(Status::Interrupted);
        assert_eq!((result.status, runs), (Status::Interrupted, 1));
        let error = run(&plan(), &mut RunResult::default(), |_| Err("no".to_string())).unwrap_err();
        assert_eq!(error, "baseline a: no");
    }
}
