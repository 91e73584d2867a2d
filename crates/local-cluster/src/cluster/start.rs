//! Starting a cluster: files, processes one after the other, nodes.

use std::collections::BTreeSet;
use std::time::Duration;

use super::{Cluster, Options, names_in};
use crate::certificates::{self, Authority};
use crate::control_plane::{self, Component, Layout, Ports, SERVER_NAMES};
use crate::node::{self, Node, REAL_NODE};
use crate::state::{Process, State};
use crate::{Cache, Error, Result, Tools};
use crate::{cache, http, kubeconfig, nodes, ports, process};

/// How often a start is tried when another process took one of its ports.
const ATTEMPTS: usize = 3;
/// How long a component may take to come up. The machine may be busy with a build.
const START_LIMIT: Duration = Duration::from_secs(120);
/// Who gets a kubeconfig: common name, group. The components have the rights of real ones; the rest may do all. The manager
/// gets its kubeconfig with its rights.
const USERS: [(&str, &str, Option<&str>); 5] = [
    ("admin", "admin", Some("system:masters")),
    (
        "kube-controller-manager",
        "system:kube-controller-manager",
        None,
    ),
    ("kube-scheduler", "system:kube-scheduler", None),
    ("kwok", "kwok", Some("system:masters")),
    (node::USER, "node", Some("system:masters")),
];

impl Cluster {
    pub(super) fn start_on_free_ports(
        &self,
        options: &Options,
        tools: &Tools,
        cache: &Cache,
        mut state: State,
    ) -> Result<()> {
        let node = match options.real_node {
            true => Some(Node::ensure(&self.layout, tools, cache, options.progress)?),
            false => None,
        };
        let mut attempt = 1;
        loop {
            state.ports = Ports::of(ports::pick(&ports_in_use(cache)?)?);
            state.processes.clear();
            let outcome = self.start(options, tools, node.as_ref(), &mut state);
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

    fn start(
        &self,
        options: &Options,
        tools: &Tools,
        node: Option<&Node<'_>>,
        state: &mut State,
    ) -> Result<()> {
        options
            .progress
            .step(&format!("cluster {}: starting", self.name));
        self.prepare(state)?;
        let mut components = Component::ALL.to_vec();
        if let Some(node) = node {
            node.prepare(&self.name, options.nodes > 0)?;
            components.extend(Component::NODE);
        }
        for component in components {
            let mut argv = vec![component.program(tools)?.display().to_string()];
            argv.extend(control_plane::arguments(
                component,
                &self.layout,
                &state.ports,
                options.gang_scheduling,
            ));
            if component == Component::ApiServer && node.is_some() {
                argv.extend(node::api_server_flags(&self.layout));
            }
            argv.extend(options.flags.get(&component).cloned().unwrap_or_default());
            let env = control_plane::environment(component, &self.layout);
            let id = self.spawn(component, &argv, &env)?;
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
            let server = match user {
                node::USER => format!("https://{}", node::API_ADDRESS),
                _ => state.ports.server(),
            };
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
                Component::Kwok | Component::NodeLink => true,
                Component::Node => self.real_node_is_ready(),
            })
        })
    }

    fn real_node_is_ready(&self) -> bool {
        let condition = "jsonpath={.status.conditions[?(@.type==\"Ready\")].status}";
        let arguments = ["get", "node", REAL_NODE, "-o", condition];
        self.target
            .kubectl(&arguments)
            .is_ok_and(|status| status.trim() == "True")
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
        if count > 0 {
            let documents = nodes::documents(count).to_string();
            self.target
                .kubectl_with(&["create", "-f", "-"], &documents)?;
        }
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
                    "--selector=type=kwok",
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
