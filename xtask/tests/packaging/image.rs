//! DEP-1: the image. No engine is needed: what the Dockerfile builds is built here with its own command.

use std::fs;
use std::process::Command;

use crate::documents::{root, run};

fn dockerfile() -> String {
    fs::read_to_string(root().join("Dockerfile")).expect("a Dockerfile")
}

/// The arguments of an instruction, in order.
fn instructions<'a>(text: &'a str, name: &str) -> Vec<&'a str> {
    let prefix = format!("{name} ");
    text.lines()
        .filter_map(|line| line.strip_prefix(prefix.as_str()))
        .collect()
}

#[test]
fn ops_dep_1_the_image_is_one_binary_without_root() {
    let text = dockerfile();
    let (_, last_stage) = text.rsplit_once("\nFROM ").expect("two stages");
    assert!(last_stage.contains("distroless/static"), "{last_stage}");
    assert_eq!(
        instructions(last_stage, "COPY"),
        ["--from=build /manager /manager"]
    );
    assert_eq!(instructions(last_stage, "USER"), ["65532:65532"]);
    assert_eq!(instructions(last_stage, "ENTRYPOINT"), [r#"["/manager"]"#]);
    assert!(
        instructions(last_stage, "RUN").is_empty(),
        "nothing can be run there"
    );
}

/// What cargo needs to read the workspace must not be left out of the context.
#[test]
fn ops_dep_1_the_context_has_the_whole_workspace() {
    let ignored = fs::read_to_string(root().join(".dockerignore")).expect("a .dockerignore");
    let kept: Vec<_> = ignored
        .lines()
        .filter_map(|line| line.strip_prefix('!'))
        .collect();
    let workspace = fs::read_to_string(root().join("Cargo.toml")).expect("a Cargo.toml");
    let members = workspace
        .lines()
        .find_map(|line| line.strip_prefix("members = "))
        .expect("members");
    for member in members
        .split('"')
        .skip(1)
        .step_by(2)
        .filter(|member| *member != ".")
    {
        let folder = member.split('/').next().expect("a folder");
        assert!(kept.contains(&folder), "{folder} is not in the context");
    }
    for file in [
        "Cargo.toml",
        "Cargo.lock",
        "rust-toolchain.toml",
        "src",
        ".cargo",
    ] {
        assert!(kept.contains(&file), "{file} is not in the context");
    }
}

/// Minutes long, so only in the full run. It needs `musl-gcc` (on Debian: musl-tools) and the musl target of rustup.
#[test]
fn ops_dep_1_what_the_dockerfile_builds_is_static_and_runs() {
    if std::env::var_os("LWS_FULL").is_none() {
        return;
    }
    let text = dockerfile();
    let builds: Vec<_> = instructions(&text, "RUN")
        .into_iter()
        .filter(|line| line.starts_with("cargo "))
        .collect();
    let [build] = builds[..] else {
        panic!("one build is expected: {builds:?}");
    };
    let target = tempfile::tempdir().expect("a folder");
    run(Command::new("sh")
        .args(["-c", build])
        .current_dir(root())
        .env("CARGO_TARGET_DIR", target.path()));
    let folder = format!("{}-unknown-linux-musl", std::env::consts::ARCH);
    let binary = target.path().join(folder).join("release/lws-manager");
    assert!(run(Command::new(&binary).arg("--version")).starts_with("Version: "));
    let content = fs::read(&binary).expect("a binary");
    let interpreter = b"/ld-musl-";
    assert!(
        !content
            .windows(interpreter.len())
            .any(|bytes| bytes == interpreter),
        "it is linked dynamically"
    );
}
