//! Who schedules pods in gangs (CFG-1 … CFG-4), and what the API server serves of it (E.3).
//!
//! The native kinds are watched only when they are to be used and are served. What is found out is told to the webhooks and to the controllers, to
//! these only once the watches have listed, so that nothing is planned from an empty cache.

use std::sync::Arc;
use std::time::Duration;

use kube::Client;
use lws_core::admission::{Environment, SchedulerProvider, ServedKinds};
use tokio::sync::watch;

use crate::config::{Configuration, FeatureGates};
use crate::events::Notices;
use crate::store::Store;
use crate::watches;

/// Group and version of Workload and PodGroup.
const API: &str = "scheduling.k8s.io/v1beta1";
/// E.3: how soon the API is looked for again, at first and in the end.
const FIRST_PAUSE: Duration = Duration::from_secs(10);
const LONGEST_PAUSE: Duration = Duration::from_secs(300);

/// What the configuration says; nothing counts as served yet.
pub fn configured(configuration: &Configuration) -> Environment {
    let management = configuration.gang_scheduling_management.as_ref();
    let provider = management.and_then(|of| of.scheduler_provider.as_deref());
    let gates = FeatureGates::effective(&configuration.feature_gates);
    Environment {
        workload_aware_scheduling: gates.is_on("WorkloadAwareScheduling"),
        // Validated to be one of them (CFG-1).
        scheduler_provider: match provider {
            Some("kubernetes") => Some(SchedulerProvider::Kubernetes),
            Some("volcano") => Some(SchedulerProvider::Volcano),
            Some(_) | None => None,
        },
        served: ServedKinds::default(),
    }
}

/// CFG-9, HLT-1.
pub fn log(environment: Environment) {
    let provider = match environment.scheduler_provider {
        None => return,
        Some(SchedulerProvider::Kubernetes) => "kubernetes",
        Some(SchedulerProvider::Volcano) => "volcano",
    };
    tracing::info!(target: "setup", provider, "Gang scheduling enabled");
    if !environment.workload_aware_scheduling {
        tracing::warn!(
            target: "setup",
            "the feature gate WorkloadAwareScheduling is off: new objects with spec.scheduling will be rejected"
        );
    }
}

/// Keeps track of what is served.
pub struct Discovery {
    client: Client,
    store: Arc<Store>,
    environments: watch::Sender<Environment>,
    watches: Option<WatchesOf>,
}

/// What the watches of the native kinds are started with, once.
struct WatchesOf {
    client: Client,
    notices: Notices,
}

impl Discovery {
    /// Looks once, before anything is planned; watches begin with all the others if the kinds are served. `watching` is for the watches.
    pub async fn begin(
        environment: Environment,
        client: Client,
        watching: Client,
        store: Arc<Store>,
        notices: Notices,
    ) -> Self {
        let (environments, _) = watch::channel(environment);
        let mut discovery = Self {
            client,
            store,
            environments,
            watches: Some(WatchesOf {
                client: watching,
                notices,
            }),
        };
        if discovery.is_native() {
            let served = discovery.look().await.unwrap_or_default();
            discovery.start_watches(served);
            discovery.environments.send_modify(|of| of.served = served);
        }
        let environment = *discovery.environments.borrow();
        discovery.store.set_environment(environment);
        discovery
    }

    /// For the webhooks.
    pub fn environment(&self) -> watch::Receiver<Environment> {
        self.environments.subscribe()
    }

    fn is_native(&self) -> bool {
        self.environments.borrow().scheduler_provider == Some(SchedulerProvider::Kubernetes)
    }

    /// E.3: looks again until everything is served. From then on nothing is asked for, and the watches show what becomes of it.
    pub async fn follow(mut self) {
        if !self.is_native() {
            return;
        }
        let mut pause = FIRST_PAUSE;
        loop {
            let known = self.environments.borrow().served;
            if known.workload && known.pod_group {
                return;
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
            match self.look().await {
                Some(served) if served != known => self.changed(served).await,
                Some(_) | None => {}
            }
        }
    }

    async fn changed(&mut self, served: ServedKinds) {
        tracing::info!(
            workload = served.workload,
            pod_group = served.pod_group,
            "what is served of {API} has changed"
        );
        if self.start_watches(served) {
            self.store.is_synced().await;
        }
        let environment = Environment {
            served,
            ..*self.environments.borrow()
        };
        self.store.set_environment(environment);
        self.environments.send_replace(environment);
    }

    /// Starts them if that can be done and was not; they run until the process ends.
    fn start_watches(&mut self, served: ServedKinds) -> bool {
        if !served.workload || !served.pod_group {
            return false;
        }
        let Some(WatchesOf { client, notices }) = self.watches.take() else {
            return false;
        };
        self.store.expect(&watches::GANGS);
        let tasks = watches::start_gangs(&client, &self.store, &notices);
        tokio::spawn(tasks.join_all());
        true
    }

    /// `None` if the API server did not say.
    async fn look(&self) -> Option<ServedKinds> {
        let found = match self.client.list_api_group_resources(API).await {
            Ok(list) => list.resources,
            Err(kube::Error::Api(status)) if status.code == 404 => Vec::new(),
            Err(error) => {
                tracing::warn!(%error, "what is served of {API} is not known");
                return None;
            }
        };
        let is_served = |kind| found.iter().any(|resource| resource.kind == kind);
        Some(ServedKinds {
            workload: is_served("Workload"),
            pod_group: is_served("PodGroup"),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config;

    #[test]
    fn gang_cfg_1_cfg_2_cfg_3_provider_and_gate_are_independent() {
        let environment = |body: &str| {
            let text = format!("apiVersion: config.lws.x-k8s.io/v1\nkind: Configuration\n{body}");
            let of = configured(&config::parse(&text).expect("a file").configuration);
            (of.workload_aware_scheduling, of.scheduler_provider)
        };
        let gate = "featureGates: {WorkloadAwareScheduling: true}\n";
        let provider =
            |name: &str| format!("gangSchedulingManagement: {{schedulerProvider: {name}}}\n");
        let native = Some(SchedulerProvider::Kubernetes);
        assert_eq!(environment(""), (false, None));
        assert_eq!(environment(gate), (true, None));
        assert_eq!(environment(&provider("kubernetes")), (false, native));
        let volcano = Some(SchedulerProvider::Volcano);
        assert_eq!(environment(&provider("volcano")), (false, volcano));
        let both = format!("{gate}{}", provider("kubernetes"));
        assert_eq!(environment(&both), (true, native));
    }
}
