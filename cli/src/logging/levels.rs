//! The meaning of `log.level`: a level is for Ringfence's own crates, and libraries log only where they are named.

/// The prefix of the targets of all crates of Ringfence.
const OWN: &str = "ringfence";

/// The filter's directives for the setting. A bare level is for Ringfence's own crates; libraries that are not named log warnings at most.
pub fn directives(level: &str) -> String {
    let parts = level.split(',').map(str::trim);
    let own: Vec<_> = parts
        .map(|part| {
            if part.contains('=') {
                part.to_owned()
            } else {
                format!("{},{OWN}={part}", of_libraries(part))
            }
        })
        .collect();
    own.join(",")
}

/// The AMQP client warns of every message that the broker returns, with the bytes of its body, and logs every lost connection several
/// times; the crate of the bus logs both itself.
fn of_libraries(level: &str) -> &'static str {
    match level.to_ascii_lowercase().as_str() {
        "off" => "off",
        "error" => "error,lapin=off",
        _ => "warn,lapin=off",
    }
}

#[cfg(test)]
mod tests {
    use tracing_subscriber::EnvFilter;

    use super::*;
    use crate::logging::captured::Lines;

    /// Who says what at which level, as far as `setting` lets it through.
    fn heard(setting: &str) -> Vec<String> {
        let lines = Lines::default();
        let writer = lines.clone();
        let subscriber = tracing_subscriber::fmt()
            .with_env_filter(EnvFilter::try_new(directives(setting)).unwrap())
            .with_writer(move || writer.clone())
            .without_time()
            .with_ansi(false)
            .finish();
        tracing::subscriber::with_default(subscriber, || {
            macro_rules! speak {
                ($($target:literal),+) => {
                    $(
                        tracing::error!(target: $target, "");
                        tracing::warn!(target: $target, "");
                        tracing::info!(target: $target, "");
                        tracing::debug!(target: $target, "");
                        tracing::trace!(target: $target, "");
                    )+
                };
            }
            speak!(
                "ringfence",
                "ringfence_engine::commit",
                "lapin::io_loop",
                "sqlx::postgres::notice"
            );
        });
        let text = lines.text();
        let words = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
        text.lines().map(words).collect()
    }

    fn loudest(setting: &str, target: &str) -> usize {
        let is_of = |line: &&String| line.ends_with(&format!(" {target}:"));
        heard(setting).iter().filter(is_of).count()
    }

    #[test]
    fn libraries_warn_at_most_unless_they_are_named() {
        for (setting, own) in [("error", 1), ("warn", 2), ("info", 3), ("DEBUG", 4), ("trace", 5)] {
            assert_eq!(loudest(setting, "ringfence"), own, "{setting}");
            assert_eq!(loudest(setting, "ringfence_engine::commit"), own, "{setting}");
            let libraries = own.min(2);
            assert_eq!(loudest(setting, "sqlx::postgres::notice"), libraries, "{setting}");
            assert_eq!(loudest(setting, "lapin::io_loop"), 0, "{setting}");
        }
        assert!(heard("off").is_empty());
    }

    #[test]
    fn who_is_named_speaks_as_told() {
        let setting = "info, lapin=debug,ringfence_engine=trace,sqlx=off";
        assert_eq!(loudest(setting, "ringfence"), 3);
        assert_eq!(loudest(setting, "ringfence_engine::commit"), 5);
        assert_eq!(loudest(setting, "lapin::io_loop"), 4);
        assert_eq!(loudest(setting, "sqlx::postgres::notice"), 0);
        assert_eq!(heard("lapin=info").len(), 3);
    }
}
