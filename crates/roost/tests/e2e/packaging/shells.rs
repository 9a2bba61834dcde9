//! Tests of man pages, as `man` shows them, and of completions, as shells use them.

use std::process::Command;

use super::{Dist, tool};
use crate::support::said;

#[test]
fn man_pages_describe_every_setting_and_have_no_mistakes() {
    let page = Dist::made().tree.join("man/roost-serve.1");
    let mut groff = Command::new("groff");
    let Some(output) = tool(groff.args(["-man", "-Tascii", "-ww", "-P-cbou"]).arg(page)) else {
        return;
    };
    assert!(output.stderr.is_empty(), "{output:?}");
    let text = said(&output);
    for part in ["--redis-listen", "ROOST_MEMORY", "Run the server"] {
        assert!(text.contains(part), "{part}? {text}");
    }
}

#[test]
fn bash_completes_subcommands_and_options() {
    let completions = Dist::made().tree.join("completions/roost.bash");
    let check = |words: &[&str], expect: &str| {
        let script = "source \"$0\"; COMP_WORDS=(\"$@\"); COMP_CWORD=$(($# - 1)); \
             _roost roost \"${COMP_WORDS[COMP_CWORD]}\" \"${COMP_WORDS[COMP_CWORD - 1]}\"; \
             echo \"${COMPREPLY[@]}\"";
        let mut bash = Command::new("bash");
        bash.args(["-c", script]).arg(&completions).args(words);
        assert_eq!(said(&bash.output().unwrap()).trim(), expect, "{words:?}");
    };
    check(&["roost", "ser"], "serve");
    check(&["roost", "serve", "--redis-l"], "--redis-listen");
    check(&["roost", "key", "rev"], "revoke");
    check(&["roost", "serve", "--durability", "in"], "interval");
}

#[test]
fn zsh_and_fish_accept_their_completions() {
    for (shell, file) in [("zsh", "_roost"), ("fish", "roost.fish")] {
        let mut check = Command::new(shell);
        let file = Dist::made().tree.join("completions").join(file);
        if let Some(output) = tool(check.arg("-n").arg(file)) {
            assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
        }
    }
}
