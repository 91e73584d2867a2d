use jiff::Timestamp;
use k8s_openapi::ByteString;
use k8s_openapi::api::coordination::v1::Lease;
use rcgen::{CertificateParams, KeyPair, date_time_ymd};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::checks::{CRDS, Check, NEEDED, Verdict, checks};
use super::facts::{Facts, Trial};
use super::render;
use crate::output::Paint;

fn from<T: DeserializeOwned>(value: Value) -> T {
    serde_json::from_value(value).unwrap()
}

/// A certificate that is good until the start of this year.
fn pem(year: i32) -> String {
    let mut params = CertificateParams::new(vec!["lws".to_owned()]).unwrap();
    params.not_after = date_time_ymd(year, 1, 1);
    params
        .self_signed(&KeyPair::generate().unwrap())
        .unwrap()
        .pem()
}

fn hooks(names: &[&str]) -> Value {
    let bundle = json!(ByteString(pem(2040).into_bytes()));
    let hook = |name: &&str| json!({"name": name, "admissionReviewVersions": ["v1"], "sideEffects": "None", "clientConfig": {"caBundle": bundle}});
    json!({"metadata": {}, "webhooks": names.iter().map(hook).collect::<Vec<_>>()})
}

fn held(namespace: &str) -> Lease {
    let spec = json!({"holderIdentity": "m", "renewTime": "2030-01-01T00:00:00.000000Z", "leaseDurationSeconds": 15});
    from(json!({"metadata": {"namespace": namespace}, "spec": spec}))
}

fn healthy() -> Facts {
    let crd = |name: &&str| {
        let version = json!({"name": "v1", "served": true, "storage": true});
        let names = json!({"kind": "X", "plural": "xs"});
        Ok(Some(from(
            json!({"metadata": {"name": name}, "spec": {"group": "g", "names": names, "scope": "Namespaced", "versions": [version]},
            "status": {"conditions": [{"type": "Established", "status": "True"}]}}),
        )))
    };
    let data = json!({"tls.crt": ByteString(pem(2040).into_bytes())});
    Facts {
        version: Ok("v1.37.2".to_owned()),
        crds: CRDS.iter().map(crd).collect(),
        mutating: Ok(Some(from(hooks(&["mleaderworkerset.kb.io", "mpod.kb.io"])))),
        validating: Ok(Some(from(hooks(&[
            "vleaderworkerset.kb.io",
            "vdisaggregatedset.kb.io",
        ])))),
        set_trial: Trial::Completed,
        pod_trial: Trial::Completed,
        secret: Ok(Some(from(json!({"metadata": {}, "data": data})))),
        lease: Ok(Some(from(
            json!({"metadata": {}, "spec": {"holderIdentity": "m-1", "renewTime": "2030-01-01T00:00:00.000000Z", "leaseDurationSeconds": 15}}),
        ))),
        leases: Ok(vec![held("lws-system")]),
        configuration: Ok(Some(from(
            json!({"data": {"c.yaml": "kind: Configuration\n"}}),
        ))),
        manager: Ok(Some(from(
            json!({"metadata": {}, "spec": {"replicas": 2, "selector": {}, "template": {}}, "status": {"availableReplicas": 2}}),
        ))),
        scheduling: Vec::new(),
        access: NEEDED.iter().map(|_| Ok(true)).collect(),
        namespace: "lws-system".to_owned(),
        now: "2030-01-01T00:00:10Z".parse::<Timestamp>().unwrap(),
    }
}

fn worst(facts: &Facts) -> Vec<Check> {
    checks(facts)
        .into_iter()
        .filter(|check| check.verdict != Verdict::Good)
        .collect()
}

#[test]
fn kc_doctor_finds_nothing_wrong() {
    let facts = healthy();
    assert_eq!(worst(&facts), []);
    let text = render(&checks(&facts), Paint::default());
    assert!(
        text.contains("leader election         good      m-1 leads\n"),
        "{text}"
    );
}

#[test]
fn kc_doctor_finds_what_is_wrong() {
    type Spoil = fn(&mut Facts);
    let rows: [(Spoil, &str, Verdict, &str); 18] = [
        (
            |f| f.leases = Ok(vec![held("lws-system"), held("other"), Lease::default()]),
            "installations",
            Verdict::Broken,
            "managers lead in lws-system and other",
        ),
        (
            |f| f.version = Ok("v1.33.1".to_owned()),
            "Kubernetes version",
            Verdict::Broken,
            "v1.33.1",
        ),
        (
            |f| f.version = Ok("v1.34.0".to_owned()),
            "Kubernetes version",
            Verdict::Doubtful,
            "v1.34.0",
        ),
        (
            |f| f.crds[1] = Ok(None),
            "CRD",
            Verdict::Broken,
            "disaggregatedsets.disaggregatedset.x-k8s.io is missing",
        ),
        (
            |f| f.mutating = Ok(None),
            "webhook configuration",
            Verdict::Broken,
            "is missing",
        ),
        (
            |f| f.mutating = Ok(Some(from(hooks(&["mleaderworkerset.kb.io"])))),
            "webhook configuration",
            Verdict::Broken,
            "lacks mpod.kb.io",
        ),
        (
            |f| {
                let mut spoilt = hooks(&["mleaderworkerset.kb.io", "mpod.kb.io"]);
                spoilt["webhooks"][1]["clientConfig"] = json!({});
                f.mutating = Ok(Some(from(spoilt)));
            },
            "webhook configuration",
            Verdict::Broken,
            "mpod.kb.io has no caBundle",
        ),
        (
            |f| {
                f.pod_trial = Trial::Refused(
                    "failed calling webhook \"mpod.kb.io\": x509: unknown authority".to_owned(),
                )
            },
            "webhook for pods",
            Verdict::Broken,
            "unknown authority",
        ),
        (
            |f| f.set_trial = Trial::Untouched,
            "webhook for sets",
            Verdict::Broken,
            "was not asked",
        ),
        (
            |f| f.set_trial = Trial::Refused("namespaces \"x\" not found".to_owned()),
            "webhook for sets",
            Verdict::Unknown,
            "not found",
        ),
        (
            |f| f.secret = Ok(Some(from(json!({"metadata": {}})))),
            "serving certificate",
            Verdict::Broken,
            "holds none",
        ),
        (
            |f| {
                f.secret = Ok(Some(from(
                    json!({"metadata": {}, "data": {"tls.crt": ByteString(pem(2029).into_bytes())}}),
                )))
            },
            "serving certificate",
            Verdict::Broken,
            "expired at 2029-01-01",
        ),
        (
            |f| f.now = "2039-12-25T00:00:00Z".parse().unwrap(),
            "serving certificate",
            Verdict::Doubtful,
            "expires at 2040-01-01",
        ),
        (
            |f| f.now = "2030-01-01T00:01:00Z".parse().unwrap(),
            "leader election",
            Verdict::Broken,
            "has not renewed the Lease for 60s",
        ),
        (
            |f| {
                f.manager = Ok(Some(from(
                    json!({"metadata": {}, "spec": {"selector": {}, "template": {}}}),
                )))
            },
            "manager",
            Verdict::Broken,
            "0 of 1",
        ),
        (
            |f| f.manager = Ok(None),
            "manager",
            Verdict::Unknown,
            "no Deployment",
        ),
        (
            |f| {
                f.configuration = Ok(Some(from(
                    json!({"data": {"c.yaml": "featureGates:\n  WorkloadAwareScheduling: true\n"}}),
                )))
            },
            "gang scheduling",
            Verdict::Broken,
            "does not serve Workload and PodGroup",
        ),
        (
            |f| f.access[4] = Ok(false),
            "permissions",
            Verdict::Broken,
            "the manager may not update pods/finalizers",
        ),
    ];
    for (spoil, area, verdict, words) in rows {
        let mut facts = healthy();
        spoil(&mut facts);
        let found = worst(&facts);
        let check = found.iter().find(|check| check.area == area);
        let check = check.unwrap_or_else(|| panic!("{area}: {words}"));
        assert_eq!(check.verdict, verdict, "{check:?}");
        assert!(check.found.contains(words), "{check:?}");
        assert!(
            check.advice.is_some() || verdict == Verdict::Unknown,
            "{check:?}"
        );
    }
}

#[test]
fn kc_doctor_says_what_it_may_not_read() {
    let mut facts = healthy();
    facts.secret = Err("secrets is forbidden".to_owned());
    facts.access[0] = Err("subjectaccessreviews is forbidden".to_owned());
    let found = worst(&facts);
    assert_eq!(found.len(), 2);
    assert!(
        found
            .iter()
            .all(|check| check.verdict == Verdict::Unknown && check.found.contains("forbidden"))
    );
}

#[test]
fn kc_doctor_takes_a_denial_for_an_answer() {
    let mut facts = healthy();
    facts.pod_trial =
        Trial::Refused("admission webhook \"mpod.kb.io\" denied the request: x".to_owned());
    assert_eq!(worst(&facts), []);
}
