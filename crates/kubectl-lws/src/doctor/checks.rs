//! Judges what was found. Decides from the facts alone.

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::ByteString;
use k8s_openapi::api::admissionregistration::v1::WebhookClientConfig;
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use serde::Serialize;
use x509_parser::pem::Pem;

use super::facts::{Facts, MUTATING, Trial, VALIDATING};

/// The CRDs of an installation.
pub const CRDS: [&str; 3] = [
    "leaderworkersets.leaderworkerset.x-k8s.io",
    "disaggregatedsets.disaggregatedset.x-k8s.io",
    "disaggregatedsetrolescalers.disaggregatedset.x-k8s.io",
];
/// The webhooks of an installation.
const WEBHOOKS: [(&str, &[&str]); 2] = [
    (MUTATING, &["mleaderworkerset.kb.io", "mpod.kb.io"]),
    (
        VALIDATING,
        &["vleaderworkerset.kb.io", "vdisaggregatedset.kb.io"],
    ),
];
/// UPG-1.
const OLDEST: u32 = 34;
const NEWEST: u32 = 37;
/// A certificate that ends sooner is told of.
const SOON: SignedDuration = SignedDuration::from_hours(14 * 24);
/// A Lease that was not renewed for so many of its durations has no holder.
const STALE: i64 = 2;

/// Something that the manager must be allowed to do (RBAC-1).
pub struct Permission {
    /// API group.
    pub group: &'static str,
    /// Resource.
    pub resource: &'static str,
    /// Subresource, or nothing.
    pub subresource: &'static str,
    /// Verb.
    pub verb: &'static str,
}

const fn may(
    group: &'static str,
    resource: &'static str,
    subresource: &'static str,
    verb: &'static str,
) -> Permission {
    Permission {
        group,
        resource,
        subresource,
        verb,
    }
}

/// What nothing works without.
pub const NEEDED: &[Permission] = &[
    may("", "pods", "", "watch"),
    may("", "pods", "", "patch"),
    may("", "pods", "", "delete"),
    may("", "pods", "status", "patch"),
    may("", "pods", "finalizers", "update"),
    may("", "nodes", "", "watch"),
    may("", "services", "", "create"),
    may("events.k8s.io", "events", "", "create"),
    may("apps", "statefulsets", "", "create"),
    may("apps", "statefulsets", "", "patch"),
    may("apps", "statefulsets", "", "delete"),
    may("apps", "controllerrevisions", "", "create"),
    may("apps", "controllerrevisions", "", "delete"),
    may("apps", "deployments", "", "patch"),
    may("apps", "replicasets", "", "watch"),
    may("leaderworkerset.x-k8s.io", "leaderworkersets", "", "watch"),
    may("leaderworkerset.x-k8s.io", "leaderworkersets", "", "create"),
    may(
        "leaderworkerset.x-k8s.io",
        "leaderworkersets",
        "status",
        "patch",
    ),
    may(
        "disaggregatedset.x-k8s.io",
        "disaggregatedsets",
        "",
        "watch",
    ),
    may(
        "disaggregatedset.x-k8s.io",
        "disaggregatedsets",
        "status",
        "patch",
    ),
    may(
        "disaggregatedset.x-k8s.io",
        "disaggregatedsetrolescalers",
        "",
        "create",
    ),
];

/// What is thought of one thing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Verdict {
    /// As it should be.
    Good,
    /// It works, but look at it.
    Doubtful,
    /// It does not work.
    Broken,
    /// It could not be looked at, or does not matter here.
    Unknown,
}

/// One thing that was looked at.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Check {
    /// What.
    pub area: &'static str,
    /// What is thought of it.
    pub verdict: Verdict,
    /// What was found.
    pub found: String,
    /// What to do.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub advice: Option<String>,
}

impl Check {
    fn new(area: &'static str, verdict: Verdict, found: impl Into<String>) -> Self {
        let found = found.into();
        Self {
            area,
            verdict,
            found,
            advice: None,
        }
    }

    fn advise(self, advice: impl Into<String>) -> Self {
        let advice = Some(advice.into());
        Self { advice, ..self }
    }

    fn unreadable(area: &'static str, words: &str) -> Self {
        Self::new(area, Verdict::Unknown, format!("cannot be read: {words}"))
    }
}

/// Judges everything.
pub fn checks(facts: &Facts) -> Vec<Check> {
    let mut checks = vec![version(facts)];
    checks.extend(crds(facts));
    checks.extend(webhooks(facts));
    checks.push(trial("webhook for sets", &facts.set_trial));
    checks.push(trial("webhook for pods", &facts.pod_trial));
    checks.push(secret(facts));
    checks.push(manager(facts));
    checks.push(lease(facts));
    checks.push(installations(facts));
    checks.push(gang(facts));
    checks.push(access(facts));
    checks
}

fn version(facts: &Facts) -> Check {
    let area = "Kubernetes version";
    let text = match &facts.version {
        Ok(text) => text,
        Err(words) => return Check::unreadable(area, words),
    };
    let minor = text
        .trim_start_matches('v')
        .split('.')
        .nth(1)
        .and_then(|minor| minor.parse::<u32>().ok());
    match minor {
        Some(minor) if minor < OLDEST => Check::new(area, Verdict::Broken, text)
            .advise(format!("1.{OLDEST} is the oldest supported version; update the cluster")),
        Some(OLDEST) => Check::new(area, Verdict::Doubtful, text)
            .advise("maxUnavailable above 1 needs the gate MaxUnavailableStatefulSet, which is off by default in 1.34"),
        Some(minor) if minor > NEWEST => Check::new(area, Verdict::Doubtful, text)
            .advise(format!("newer than 1.{NEWEST}, the newest version that is tested")),
        Some(_) => Check::new(area, Verdict::Good, text),
        None => Check::new(area, Verdict::Unknown, text),
    }
}

fn crds(facts: &Facts) -> Vec<Check> {
    let area = "CRD";
    let found = CRDS
        .iter()
        .zip(&facts.crds)
        .map(|(name, looked)| match looked {
            Err(words) => Check::unreadable(area, words),
            Ok(None) => Check::new(area, Verdict::Broken, format!("{name} is missing"))
                .advise("kubectl apply --server-side -k crds/"),
            Ok(Some(crd)) => {
                let conditions = crd
                    .status
                    .iter()
                    .flat_map(|status| status.conditions.iter().flatten());
                let is_established = conditions
                    .into_iter()
                    .any(|c| c.type_ == "Established" && c.status == "True");
                let serves = crd
                    .spec
                    .versions
                    .iter()
                    .any(|version| version.name == "v1" && version.served);
                if is_established && serves {
                    Check::new(area, Verdict::Good, *name)
                } else {
                    Check::new(area, Verdict::Broken, format!("{name} does not serve v1"))
                        .advise(format!("kubectl describe crd {name}"))
                }
            }
        });
    found.collect()
}

fn webhooks(facts: &Facts) -> Vec<Check> {
    let mutating = facts.mutating.as_ref().map(|found| {
        let hooks = found.as_ref().map(|found| found.webhooks.iter().flatten());
        hooks.map(|hooks| {
            hooks
                .map(|hook| (hook.name.as_str(), &hook.client_config))
                .collect()
        })
    });
    let validating = facts.validating.as_ref().map(|found| {
        let hooks = found.as_ref().map(|found| found.webhooks.iter().flatten());
        hooks.map(|hooks| {
            hooks
                .map(|hook| (hook.name.as_str(), &hook.client_config))
                .collect()
        })
    });
    let found = WEBHOOKS.iter().zip([mutating, validating]);
    found
        .map(|((name, hooks), found)| configuration(name, hooks, found, facts.now))
        .collect()
}

type Hooks<'a> = Vec<(&'a str, &'a WebhookClientConfig)>;

fn configuration(
    name: &str,
    wanted: &[&str],
    found: Result<Option<Hooks<'_>>, &String>,
    now: Timestamp,
) -> Check {
    let area = "webhook configuration";
    let hooks = match found {
        Err(words) => return Check::unreadable(area, words),
        Ok(None) => {
            return Check::new(area, Verdict::Broken, format!("{name} is missing"))
                .advise("without it pods do not get their place in a group; see docs/install.md");
        }
        Ok(Some(hooks)) => hooks,
    };
    for wanted in wanted {
        let Some((_, client)) = hooks.iter().find(|(name, _)| name == wanted) else {
            return Check::new(area, Verdict::Broken, format!("{name} lacks {wanted}"))
                .advise("apply the manifests of this release again");
        };
        if let Some(check) = bundle(
            area,
            &format!("{name}, {wanted}"),
            client.ca_bundle.as_ref(),
            now,
        ) {
            return check;
        }
    }
    Check::new(area, Verdict::Good, name)
}

/// What is wrong with the certificate that a webhook trusts, if anything.
fn bundle(
    area: &'static str,
    name: &str,
    bundle: Option<&ByteString>,
    now: Timestamp,
) -> Option<Check> {
    let bundle = bundle.map(|bundle| bundle.0.as_slice()).unwrap_or_default();
    if bundle.is_empty() {
        let check = Check::new(area, Verdict::Broken, format!("{name} has no caBundle"));
        return Some(check.advise("the manager injects it when it runs; with cert-manager look at the annotation cert-manager.io/inject-ca-from"));
    }
    expiry_check(area, name, bundle, now).filter(|check| check.verdict != Verdict::Good)
}

fn expiry_check(area: &'static str, name: &str, pem: &[u8], now: Timestamp) -> Option<Check> {
    let Some(end) = expiry(pem) else {
        return Some(
            Check::new(area, Verdict::Broken, format!("{name}: not a certificate"))
                .advise("delete the content, so that it is made anew"),
        );
    };
    let left = end.duration_since(now);
    Some(if left.is_negative() {
        Check::new(area, Verdict::Broken, format!("{name}: expired at {end}"))
            .advise("restart the manager, or renew the certificate with the tool that made it")
    } else if left < SOON {
        Check::new(area, Verdict::Doubtful, format!("{name}: expires at {end}"))
            .advise("it is due for renewal; see whether that happens")
    } else {
        Check::new(area, Verdict::Good, format!("{name}: good until {end}"))
    })
}

/// When the first certificate of a chain ends.
fn expiry(pem: &[u8]) -> Option<Timestamp> {
    let pem = Pem::iter_from_buffer(pem).next()?.ok()?;
    let certificate = pem.parse_x509().ok()?;
    Timestamp::from_second(certificate.validity().not_after.timestamp()).ok()
}

fn trial(area: &'static str, trial: &Trial) -> Check {
    match trial {
        Trial::Completed => Check::new(area, Verdict::Good, "answers, and completes objects"),
        Trial::Untouched => Check::new(area, Verdict::Broken, "was not asked")
            .advise("look at the rules and selectors of the webhook configurations"),
        Trial::Refused(words) if words.contains("failed calling webhook") => {
            Check::new(area, Verdict::Broken, words.as_str()).advise(why_it_fails(words))
        }
        // A denial is an answer.
        Trial::Refused(words) if words.contains("denied the request") => {
            Check::new(area, Verdict::Good, "answers")
        }
        Trial::Refused(words) => Check::new(area, Verdict::Unknown, words.as_str()),
    }
}

fn why_it_fails(words: &str) -> &'static str {
    if words.contains("x509") || words.contains("certificate") {
        "the API server does not trust the certificate: compare caBundle with the Secret of the manager"
    } else if words.contains("no endpoints") || words.contains("connection refused") {
        "no manager is ready: kubectl get pods of its namespace, and look at its log"
    } else if words.contains("deadline") || words.contains("timeout") {
        "the API server does not reach the manager: look at network policies and firewalls, port 9443"
    } else {
        "look at the log of the manager"
    }
}

fn secret(facts: &Facts) -> Check {
    let area = "serving certificate";
    let secret = match &facts.secret {
        Err(words) => return Check::unreadable(area, words),
        Ok(None) => {
            return Check::new(
                area,
                Verdict::Unknown,
                "no Secret lws-webhook-server-cert: the certificate comes from elsewhere",
            );
        }
        Ok(Some(secret)) => secret,
    };
    let data = secret.data.as_ref().and_then(|data| data.get("tls.crt"));
    let pem = data
        .map(|data| data.0.as_slice())
        .filter(|pem| !pem.is_empty());
    let check = pem.and_then(|pem| expiry_check(area, "tls.crt", pem, facts.now));
    check.unwrap_or_else(|| {
        Check::new(area, Verdict::Broken, "the Secret holds none yet")
            .advise("the manager fills it when it starts; look at its log")
    })
}

fn manager(facts: &Facts) -> Check {
    let area = "manager";
    let namespace = &facts.namespace;
    let manager = match &facts.manager {
        Err(words) => return Check::unreadable(area, words),
        Ok(None) => {
            return Check::new(
                area,
                Verdict::Unknown,
                format!("no Deployment lws-controller-manager in {namespace}"),
            )
            .advise("if it runs in another namespace, name that with --system-namespace");
        }
        Ok(Some(manager)) => manager,
    };
    let available = manager
        .status
        .as_ref()
        .and_then(|status| status.available_replicas)
        .unwrap_or_default();
    let wanted = manager.spec.replicas.unwrap_or(1);
    let found = format!("{available} of {wanted} replicas are available");
    match available {
        0 => Check::new(area, Verdict::Broken, found).advise(format!(
            "kubectl -n {namespace} describe deployment lws-controller-manager"
        )),
        some if some < wanted => Check::new(area, Verdict::Doubtful, found),
        _ => Check::new(area, Verdict::Good, found),
    }
}

fn lease(facts: &Facts) -> Check {
    let area = "leader election";
    let spec = match &facts.lease {
        Err(words) => return Check::unreadable(area, words),
        Ok(None) => {
            return Check::new(
                area,
                Verdict::Unknown,
                "there is no Lease: leader election is off, or no manager ever ran",
            );
        }
        Ok(Some(lease)) => lease.spec.clone().unwrap_or_default(),
    };
    let holder = spec.holder_identity.as_deref().unwrap_or_default();
    if holder.is_empty() {
        return Check::new(area, Verdict::Broken, "nobody leads")
            .advise("start a manager, and look at its log");
    }
    match renewed(&spec, facts.now) {
        Some((_, true)) => Check::new(area, Verdict::Good, format!("{holder} leads")),
        Some((age, false)) => Check::new(
            area,
            Verdict::Broken,
            format!("{holder} led, but has not renewed the Lease for {age}s"),
        )
        .advise("the manager is gone or cannot reach the API server; look at its log"),
        None => Check::new(area, Verdict::Unknown, format!("{holder} leads")),
    }
}

/// Seconds since the holder renewed its Lease, and whether it still has it; `None` if it never did.
fn renewed(spec: &LeaseSpec, now: Timestamp) -> Option<(i64, bool)> {
    let age = now.duration_since(spec.renew_time.as_ref()?.0).as_secs();
    let limit = STALE * i64::from(spec.lease_duration_seconds.unwrap_or(15));
    Some((age, age <= limit))
}

/// WHK-2: two managers with Leases in different namespaces would both work on every set.
fn installations(facts: &Facts) -> Check {
    let area = "installations";
    let leases = match &facts.leases {
        Err(words) => return Check::unreadable(area, words),
        Ok(leases) => leases,
    };
    let led: Vec<_> = leases
        .iter()
        .filter(|lease| is_held(lease, facts.now))
        .filter_map(|lease| lease.metadata.namespace.as_deref())
        .collect();
    match led.as_slice() {
        [] => Check::new(area, Verdict::Unknown, "no manager leads in any namespace"),
        [one] => Check::new(area, Verdict::Good, format!("one, in {one}")),
        _ => Check::new(
            area,
            Verdict::Broken,
            format!("managers lead in {}", led.join(" and ")),
        )
        .advise("both work on every set: remove one, then apply the manifests of the other again"),
    }
}

fn is_held(lease: &Lease, now: Timestamp) -> bool {
    let Some(spec) = &lease.spec else {
        return false;
    };
    let holder = spec.holder_identity.as_deref().unwrap_or_default();
    !holder.is_empty() && renewed(spec, now).is_some_and(|(_, is_recent)| is_recent)
}

fn gang(facts: &Facts) -> Check {
    let area = "gang scheduling";
    let text = match &facts.configuration {
        Err(words) => return Check::unreadable(area, words),
        Ok(None) => {
            return Check::new(
                area,
                Verdict::Unknown,
                "no ConfigMap lws-manager-config: the configuration is elsewhere",
            );
        }
        Ok(Some(found)) => found
            .data
            .iter()
            .flatten()
            .map(|(_, text)| text.as_str())
            .collect::<String>(),
    };
    let is_on = |gate: &str| {
        text.lines().any(|line| {
            let line: String = line.chars().filter(|c| !c.is_whitespace()).collect();
            line == format!("{gate}:true")
        })
    };
    if !is_on("WorkloadAwareScheduling") {
        return Check::new(
            area,
            Verdict::Good,
            "the gate WorkloadAwareScheduling is off",
        );
    }
    let missing: Vec<&str> = ["Workload", "PodGroup"]
        .into_iter()
        .filter(|kind| !facts.scheduling.iter().any(|served| served == kind))
        .collect();
    if missing.is_empty() {
        Check::new(area, Verdict::Good, "the gate is on, and the API is served")
    } else {
        let found = format!(
            "the gate is on, but scheduling.k8s.io/v1beta1 does not serve {}",
            missing.join(" and ")
        );
        Check::new(area, Verdict::Broken, found)
            .advise("kube-apiserver needs the gate GenericWorkload and --runtime-config=scheduling.k8s.io/v1beta1=true, from Kubernetes 1.37 on")
    }
}

fn access(facts: &Facts) -> Check {
    let area = "permissions";
    if facts.access.is_empty() {
        return Check::new(
            area,
            Verdict::Unknown,
            "not asked, since the account of the manager is not known",
        );
    }
    let mut missing = Vec::new();
    for (permission, answer) in NEEDED.iter().zip(&facts.access) {
        match answer {
            Err(words) => return Check::unreadable(area, words),
            Ok(true) => {}
            Ok(false) => missing.push(permission.to_string()),
        }
    }
    if missing.is_empty() {
        return Check::new(area, Verdict::Good, "the manager may do what it needs");
    }
    Check::new(
        area,
        Verdict::Broken,
        format!("the manager may not {}", missing.join(", ")),
    )
    .advise("apply the ClusterRole of this release again")
}

impl std::fmt::Display for Permission {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self {
            group,
            resource,
            subresource,
            verb,
        } = self;
        write!(to, "{verb} {resource}")?;
        if !subresource.is_empty() {
            write!(to, "/{subresource}")?;
        }
        if !group.is_empty() {
            write!(to, " of {group}")?;
        }
        Ok(())
    }
}
