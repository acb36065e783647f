//! The table, walked along the stories that matter, and explored whole for what must always hold.

mod exploration;
mod stories;

use std::sync::Arc;

use crate::events::ExitStatus;
use crate::plan::{Exhausted, Kind, OnExit, RestartPolicy};
use crate::supervisor::machine::{ReadyWhen, Rule, UnitId};

const COLLECTOR: UnitId = 0;
const MODEL: UnitId = 1;
const AGENT: UnitId = 2;
const DRIVER: UnitId = 3;

fn exit(code: i32) -> ExitStatus {
    ExitStatus { code: Some(code), signal: None }
}

fn restart(also_dependants: bool, exhausted: Exhausted) -> OnExit {
    OnExit::Restart(RestartPolicy {
        limit: 1,
        window_seconds: 60.0,
        backoff_seconds: 1.0,
        backoff_max_seconds: 1.0,
        also_dependants,
        exhausted,
    })
}

/// A collector, a model that is asked if it is alive, an agent that needs it, and a driver.
fn rules(on_exit: OnExit, model: ReadyWhen) -> Arc<[Rule]> {
    let rule = |name: &str, kind, needs: &[UnitId], needed_by: &[UnitId], ready| Rule {
        name: name.into(),
        kind,
        needs: needs.to_vec(),
        needed_by: needed_by.to_vec(),
        ready,
        liveness: name == "model",
        // One process that is started again is enough to see.
        on_exit: if matches!(on_exit, OnExit::Restart(_)) && name != "model" { OnExit::Stop } else { on_exit },
    };
    [
        rule("collector", Kind::Collector, &[], &[], ReadyWhen::Probed),
        rule("model", Kind::Service, &[], &[AGENT], model),
        rule("agent", Kind::Server, &[MODEL], &[], ReadyWhen::Probed),
        rule("driver", Kind::Driver, &[], &[], ReadyWhen::Started),
    ]
    .into()
}
