//! The log (LOG): to stderr, as tab-separated text or as JSON with the keys `level`, `ts`, `logger` and `msg`.

use std::fmt;

use jiff::Timestamp;
use serde_json::{Map, Value, json};
use tracing::field::{Field, Visit};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::format::{JsonFields, Writer};
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormattedFields};
use tracing_subscriber::registry::LookupSpan;

use crate::flags::{Encoder, LogFlags, LogFormat, LogLevel, TimeEncoding};

/// Starts logging as the flags say; a `RUST_LOG` adds to the filter.
///
/// # Errors
/// When a log was started before.
pub fn start(flags: &LogFlags) -> Result<(), tracing_subscriber::util::TryInitError> {
    use tracing_subscriber::util::SubscriberInitExt as _;
    let extra = std::env::var("RUST_LOG").unwrap_or_default();
    tracing_subscriber::fmt()
        .with_writer(std::io::stderr)
        .with_env_filter(EnvFilter::new(format!("{},{extra}", filter(flags))))
        .fmt_fields(JsonFields::new())
        .event_format(Lines {
            form: form(flags),
            time: flags.zap_time_encoding,
        })
        .finish()
        .try_init()
}

/// LOG-2. Libraries are heard from warnings up. KRS-21: kube's client writes whole bodies into its warnings, which may hold user data.
fn filter(flags: &LogFlags) -> String {
    let by_mode = if flags.zap_devel {
        LogLevel::Debug
    } else {
        LogLevel::Info
    };
    let ours = match flags.zap_log_level.unwrap_or(by_mode) {
        LogLevel::Error => "error",
        LogLevel::Info | LogLevel::Verbosity(0..=2) => "info",
        LogLevel::Debug | LogLevel::Verbosity(3..=4) => "debug",
        LogLevel::Verbosity(5..) => "trace",
    };
    let libraries = if ours == "error" { "error" } else { "warn" };
    format!(
        "{libraries},kube_client::client=error,setup={ours},lws={ours},lws_manager={ours},lws_core={ours},lws_webhook={ours}"
    )
}

fn form(flags: &LogFlags) -> Encoder {
    let by_mode = if flags.zap_devel {
        Encoder::Console
    } else {
        Encoder::Json
    };
    let alias = flags.log_format.map(|format| match format {
        LogFormat::Json => Encoder::Json,
        LogFormat::Text => Encoder::Console,
    });
    alias.or(flags.zap_encoder).unwrap_or(by_mode)
}

/// Writes one line per event.
struct Lines {
    form: Encoder,
    time: TimeEncoding,
}

impl<S> FormatEvent<S, JsonFields> for Lines
where
    S: Subscriber + for<'a> LookupSpan<'a>,
{
    fn format_event(
        &self,
        cx: &FmtContext<'_, S, JsonFields>,
        mut line: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        let mut fields = Fields::default();
        for span in cx
            .event_scope()
            .into_iter()
            .flat_map(|scope| scope.from_root())
        {
            if let Some(of_span) = span.extensions().get::<FormattedFields<JsonFields>>()
                && let Ok(Value::Object(of_span)) = serde_json::from_str(&of_span.fields)
            {
                fields.rest.extend(of_span);
            }
        }
        event.record(&mut fields);
        let logger = event.metadata().target();
        let level = level(*event.metadata().level());
        let time = time(Timestamp::now(), self.time);
        match self.form {
            Encoder::Console => {
                let time = time
                    .as_str()
                    .map_or_else(|| time.to_string(), str::to_owned);
                write!(
                    line,
                    "{time}\t{}\t{logger}\t{}",
                    level.to_uppercase(),
                    fields.message
                )?;
                if fields.rest.is_empty() {
                    writeln!(line)
                } else {
                    writeln!(line, "\t{}", Value::Object(fields.rest))
                }
            }
            Encoder::Json => {
                let mut object = Map::new();
                object.extend(fields.rest);
                object.extend([
                    ("level".to_owned(), json!(level)),
                    ("ts".to_owned(), time),
                    ("logger".to_owned(), json!(logger)),
                    ("msg".to_owned(), json!(fields.message)),
                ]);
                writeln!(line, "{}", Value::Object(object))
            }
        }
    }
}

fn level(level: Level) -> &'static str {
    match level {
        Level::ERROR => "error",
        Level::WARN => "warn",
        Level::INFO => "info",
        _ => "debug",
    }
}

fn time(now: Timestamp, encoding: TimeEncoding) -> Value {
    match encoding {
        TimeEncoding::Epoch => json!(now.as_duration().as_secs_f64()),
        TimeEncoding::Millis => json!(now.as_millisecond()),
        TimeEncoding::Nanos => json!(now.as_duration().as_secs_f64() * 1e9),
        TimeEncoding::Iso8601 => json!(now.strftime("%Y-%m-%dT%H:%M:%S.%3fZ").to_string()),
        TimeEncoding::Rfc3339 => json!(now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()),
        TimeEncoding::Rfc3339nano => json!(now.strftime("%Y-%m-%dT%H:%M:%S.%9fZ").to_string()),
    }
}

/// The message of an event and its other fields.
#[derive(Default)]
struct Fields {
    message: String,
    rest: Map<String, Value>,
}

impl Fields {
    fn put(&mut self, field: &Field, value: Value) {
        self.rest.insert(field.name().to_owned(), value);
    }
}

impl Visit for Fields {
    fn record_f64(&mut self, field: &Field, value: f64) {
        self.put(field, json!(value));
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.put(field, json!(value));
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.put(field, json!(value));
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.put(field, json!(value));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        if field.name() == "message" {
            self.message = value.to_owned()
        } else {
            self.put(field, json!(value))
        }
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.record_str(field, &format!("{value:?}"));
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::sync::{Arc, Mutex};

    use clap::Parser as _;

    use super::*;
    use crate::flags::Flags;

    fn flags(args: &[&str]) -> LogFlags {
        Flags::parse_from(std::iter::once(&"lws-manager").chain(args)).log
    }

    #[derive(Clone, Default)]
    struct Kept(Arc<Mutex<Vec<u8>>>);

    impl Write for Kept {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().expect("a lock").write(bytes)
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    fn logged(form: Encoder) -> String {
        let kept = Kept::default();
        let writer = kept.clone();
        let subscriber = tracing_subscriber::fmt()
            .with_writer(move || writer.clone())
            .fmt_fields(JsonFields::new())
            .event_format(Lines {
                form,
                time: TimeEncoding::Rfc3339,
            })
            .finish();
        tracing::subscriber::with_default(subscriber, || {
            let _entered =
                tracing::info_span!("reconcile", name = "demo", generation = 3).entered();
            tracing::info!(target: "setup", why = "service_missing", "created {}", "it");
        });
        let bytes = kept.0.lock().expect("a lock").clone();
        String::from_utf8(bytes).expect("text")
    }

    #[test]
    fn ops_log_1_json_keys() {
        let line: Value = serde_json::from_str(&logged(Encoder::Json)).expect("one JSON line");
        assert!(line["ts"].as_str().expect("a time").ends_with('Z'));
        for (key, value) in [
            ("level", json!("info")),
            ("logger", json!("setup")),
            ("msg", json!("created it")),
            ("why", json!("service_missing")),
            ("name", json!("demo")),
            ("generation", json!(3)),
        ] {
            assert_eq!(line[key], value, "{key}");
        }
    }

    #[test]
    fn ops_log_1_text_is_tab_separated() {
        let line = logged(Encoder::Console);
        let parts: Vec<&str> = line.trim_end().split('\t').collect();
        assert_eq!(parts[1..4], ["INFO", "setup", "created it"]);
        assert!(parts[4].contains("\"why\":\"service_missing\""), "{line}");
    }

    #[test]
    fn ops_log_5_form_by_mode_and_flags() {
        assert_eq!(form(&flags(&[])), Encoder::Console);
        assert_eq!(form(&flags(&["--zap-devel=false"])), Encoder::Json);
        assert_eq!(form(&flags(&["--zap-encoder=json"])), Encoder::Json);
        assert_eq!(
            form(&flags(&["--zap-devel=false", "--log-format=text"])),
            Encoder::Console
        );
    }

    #[test]
    fn ops_log_2_verbosity() {
        for (args, wanted) in [
            (&[][..], "setup=debug"),
            (&["--zap-devel=false"], "lws=info"),
            (&["--zap-log-level=2"], "lws=info"),
            (&["--zap-log-level=4"], "lws=debug"),
            (&["--zap-log-level=5"], "lws=trace"),
            (&["--zap-log-level=error"], "lws=error"),
        ] {
            assert!(filter(&flags(args)).contains(wanted), "{args:?}");
        }
    }

    #[test]
    fn krs_21_bodies_of_the_client_are_not_logged() {
        assert!(filter(&flags(&["--zap-log-level=9"])).contains("kube_client::client=error"));
    }
}
