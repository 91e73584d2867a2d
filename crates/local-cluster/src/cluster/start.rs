//! Starting a cluster: files, processes one after the other, nodes.

use std::collections::BTreeSet;
use std::time::Duration;

use super::{Cluster, Options, names_in};
use crate::certificates::{self, Authority};
use crate::control_plane::{self, Component, Layout, Ports, SERVER_NAMES};
use crate::state::{Process, State};
use crate::{Cache, Error, Result, Tools};
use crate::{cache, http, kubeconfig, nodes, ports, process};

/// How often a start is tried when another process took one of its ports.
const ATTEMPTS: usize = 3;
/// How long a component may take to come up. The machine may be busy with a build.
const START_LIMIT: Duration = Duration::from_secs(120);
/// Who gets a kubeconfig: common name, group. The components have the rights of real ones; the rest may do all. The manager
/// gets its kubeconfig with its rights.
const USERS: [(&str, &str, Option<&str>); 4] = [
    ("admin", "admin", Some("system:masters")),
    (
        "kube-controller-manager",
        "system:kube-controller-manager",
        None,
    ),
    ("kube-scheduler", "system:kube-scheduler", None),
    ("kwok", "kwok", Some("system:masters")),
];

impl Cluster {
    pub(super) fn start_on_free_ports(
        &self,
        options: &Options,
        tools: &Tools,
        cache: &Cache,
        mut state: State,
    ) -> Result<()> {
        let mut attempt = 1;
        loop {
            state.ports = Ports::of(ports::pick(&ports_in_use(cache)?)?);
            state.processes.clear();
            let outcome = self.start(options, tools, &mut state);
            if outcome.is_ok() {
                return Ok(());
            }
            let lost_port = self.lost_a_port();
            self.stop_everything()?;
            if !lost_port || attempt == ATTEMPTS {
                return outcome;
            }
            attempt += 1;
            options
                .progress
                .step("another process took a port: trying again with others");
        }
    }

    /// Whether a component found its port taken.
    fn lost_a_port(&self) -> bool {
        Component::ALL.iter().any(|component| {
            process::tail(&self.log(*component)).contains("address already in use")
        })
    }

    fn start(&self, options: &Options, tools: &Tools, state: &mut State) -> Result<()> {
        options
            .progress
            .step(&format!("cluster {}: starting", self.name));
        self.prepare(state)?;
        for component in Component::ALL {
            let program = tools.path(component.tool())?;
            let mut argv = vec![program.display().to_string()];
            argv.extend(control_plane::arguments(
                component,
                &self.layout,
                &state.ports,
                options.gang_scheduling,
            ));
            argv.extend(options.flags.get(&component).cloned().unwrap_or_default());
            let env = control_plane::environment(component, &self.layout);
            let id = process::spawn(&argv, &env, &self.log(component))?;
            state.processes.push(Process {
                component,
                id,
                argv,
                env,
            });
            state.write(&self.layout.state())?;
            self.wait_for_component(component, state)?;
            options.progress.step(&format!("{} runs", component.name()));
        }
        self.add_nodes(options.nodes, state)?;
        state.complete = true;
        state.write(&self.layout.state())?;
        options
            .progress
            .step(&format!("cluster {}: ready", self.name));
        Ok(())
    }

    /// Writes everything that the components read. The record comes first, so that a start cut short is seen.
    fn prepare(&self, state: &State) -> Result<()> {
        let layout = &self.layout;
        for folder in layout.folders() {
            cache::remove(&folder)?;
            cache::make_folder(&folder)?;
        }
        state.write(&layout.state())?;
        let authority = Authority::new("lws-local-cluster")?;
        cache::write(&layout.pki().join("ca.crt"), authority.certificate())?;
        authority
            .server("kube-apiserver", &SERVER_NAMES)?
            .write(&layout.pki(), "server")?;
        certificates::write_service_account_keys(&layout.pki())?;
        for (user, name, group) in USERS {
            let client = authority.client(name, group)?;
            let server = state.ports.server();
            let document =
                kubeconfig::document(&self.name, &server, authority.certificate(), &client);
            cache::write_secret(&layout.kubeconfig(user), &document.to_string())?;
        }
        let audit = control_plane::audit_policy().to_string();
        cache::write(&layout.config("audit-policy.json"), &audit)?;
        let scheduler = control_plane::scheduler_config(layout).to_string();
        cache::write(&layout.config("scheduler.json"), &scheduler)?;
        cache::write(&layout.config("kwok.yaml"), nodes::STAGES)
    }

    /// Waits until a component answers. KWOK has no port: its nodes are waited for.
    pub(super) fn wait_for_component(&self, component: Component, state: &State) -> Result<()> {
        let what = format!("{} does not come up", component.name());
        self.interrupt.wait_until(&what, START_LIMIT, || {
            self.check_alive(
                state
                    .stopped()
                    .into_iter()
                    .find(|stopped| *stopped == component),
            )?;
            Ok(match component {
                Component::Etcd => {
                    http::get(state.ports.etcd, "/health").is_some_and(|(code, _)| code == 200)
                }
                Component::ApiServer => self.api_server_is_ready(),
                Component::ControllerManager => http::is_open(state.ports.controller_manager),
                Component::Scheduler => http::is_open(state.ports.scheduler),
                Component::Kwok => true,
            })
        })
    }

    /// Fails with the end of its log if a component has ended.
    fn check_alive(&self, ended: Option<Component>) -> Result<()> {
        match ended {
            None => Ok(()),
            Some(component) => {
                let log = self.log(component);
                let (name, tail) = (component.name().to_owned(), process::tail(&log));
                Err(Error::Ended { name, log, tail })
            }
        }
    }

    /// Adds the fake nodes and waits until pods can run: nodes ready and untainted, default service account there.
    fn add_nodes(&self, count: usize, state: &State) -> Result<()> {
        let documents = nodes::documents(count).to_string();
        self.target
            .kubectl_with(&["create", "-f", "-"], &documents)?;
        self.interrupt
            .wait_until("the fake nodes do not get ready", START_LIMIT, || {
                self.check_alive(state.stopped().first().copied())?;
                let accounts = [
                    "get",
                    "serviceaccount",
                    "default",
                    "--ignore-not-found",
                    "-o",
                    "name",
                ];
                let taints = [
                    "get",
                    "nodes",
                    "-o",
                    "jsonpath={.items[*].spec.taints[*].key}",
                ];
                Ok(!self.target.kubectl(&accounts)?.is_empty()
                    && self.target.kubectl(&taints)?.trim().is_empty())
            })
    }
}

/// Ports of all clusters that are there, running or not: a stopped component comes back to its port.
fn ports_in_use(cache: &Cache) -> Result<BTreeSet<u16>> {
    let mut ports = BTreeSet::new();
    for name in names_in(cache)? {
        let path = Layout {
            folder: cache.clusters().join(name),
        }
        .state();
        if let Ok(Some(state)) = State::read(&path) {
            ports.extend(state.ports.all());
        }
    }
    Ok(ports)
}
