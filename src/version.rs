//! What was built: version, commit and date, given by the release build through the environment of the compiler.

/// Release version.
pub const GIT_VERSION: &str = match option_env!("LWS_GIT_VERSION") {
    Some(version) => version,
    None => "v0.0.0-main",
};
/// Commit that was built.
pub const GIT_COMMIT: &str = match option_env!("LWS_GIT_COMMIT") {
    Some(commit) => commit,
    None => "abcd01234",
};
/// Date of the build.
pub const BUILD_DATE: &str = match option_env!("LWS_BUILD_DATE") {
    Some(date) => date,
    None => "N/A",
};

/// FLG-1: the three lines of `--version`.
pub fn lines() -> String {
    format!("Version: {GIT_VERSION}\nBuild Date: {BUILD_DATE}\nGit Commit: {GIT_COMMIT}")
}

/// CLI-2: the user agent of every request.
pub fn user_agent() -> String {
    agent(GIT_VERSION, std::env::consts::OS, arch(), GIT_COMMIT)
}

/// Operating system and architecture, as Go calls them.
pub fn platform() -> String {
    format!("{}/{}", std::env::consts::OS, arch())
}

fn arch() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    }
}

fn agent(version: &str, os: &str, arch: &str, commit: &str) -> String {
    let short = commit.get(..7).unwrap_or(commit);
    let short = if short.is_empty() { "unknown" } else { short };
    format!("lws/{version} ({os}/{arch}) {short}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ops_cli_2_user_agent() {
        assert_eq!(
            agent("v1.0.0", "linux", "amd64", "a1b2c3d4e5"),
            "lws/v1.0.0 (linux/amd64) a1b2c3d"
        );
        assert_eq!(
            agent("v1.0.0", "linux", "arm64", ""),
            "lws/v1.0.0 (linux/arm64) unknown"
        );
        assert_eq!(
            agent("v1.0.0", "linux", "arm64", "abc"),
            "lws/v1.0.0 (linux/arm64) abc"
        );
    }
}
