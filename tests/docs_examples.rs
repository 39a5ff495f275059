//! The commands in docs/ work as they are written, with the exit codes they name.
//!
//! Knows: blocks marked `console`, lines that begin with `$ rocr`, a comment `# exit N`. Must not know: what commands do.
#![expect(
    clippy::unwrap_used,
    reason = "what helpers of a test meet fails the test"
)]
use std::path::Path;
use std::process::Command;

/// The commands of a page: the words, and the exit code.
fn commands(text: &str) -> Vec<(Vec<String>, i32)> {
    let mut inside = false;
    let mut found = Vec::new();
    for line in text.lines() {
        if line.starts_with("```") {
            inside = line == "```console";
        } else if let (true, Some(command)) = (inside, line.strip_prefix("$ rocr ")) {
            let (command, code) = match command.split_once(" # exit ") {
                Some((command, code)) => (command, code.trim().parse().unwrap()),
                None => (command, 0),
            };
            found.push((
                command.split_whitespace().map(str::to_owned).collect(),
                code,
            ));
        }
    }
    found
}

#[test]
fn every_command_of_every_page_runs() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut run = 0;
    for page in ["info", "load", "launch", "spec", "bench", "copy"] {
        let text = std::fs::read_to_string(root.join(format!("docs/{page}.md"))).unwrap();
        let commands = commands(&text);
        assert!(!commands.is_empty(), "docs/{page}.md has no command");
        for (words, code) in commands {
            let output = Command::new(env!("CARGO_BIN_EXE_rocr"))
                .args(&words)
                .current_dir(root)
                .env_remove("ROCR_DEVICE")
                .env_remove("HSA_OVERRIDE_GFX_VERSION")
                .env_remove("ROCR_VISIBLE_DEVICES")
                .output()
                .unwrap();
            assert_eq!(
                output.status.code(),
                Some(code),
                "docs/{page}.md: rocr {}\n{}{}",
                words.join(" "),
                String::from_utf8_lossy(&output.stdout),
                String::from_utf8_lossy(&output.stderr)
            );
            run += 1;
        }
    }
    assert!(run > 20, "{run} commands");
}
