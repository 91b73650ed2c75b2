//! Manual pages and completions, generated from the definitions of the commands, so that they match
//! `--help`. Packagers run the program to generate them.
//!
//! The meaning of options is described at their definitions.

use std::fs;
use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{ArgMatches, Args, Command, FromArgMatches};
use clap_complete::Shell;
use clap_mangen::Man;
use clap_mangen::roff::{Inline, Roff, bold, roman};

/// The manual section of all pages: user commands.
const SECTION: &str = "1";

/// Write the completions of a shell to standard output.
#[derive(Args)]
#[command(hide = true)]
struct CompletionsArgs {
    /// The shell.
    shell: Shell,
}

/// Write the manual pages of all commands into a directory.
#[derive(Args)]
#[command(hide = true)]
struct ManArgs {
    /// The directory.
    directory: PathBuf,
    /// The date of the pages, as in 2030-12-31.
    #[arg(long, value_name = "DATE", default_value = "")]
    date: String,
}

/// Adds the commands for manual pages and completions.
pub(crate) fn with_manual(command: Command) -> Command {
    command
        .subcommand(CompletionsArgs::augment_args(Command::new("completions")))
        .subcommand(ManArgs::augment_args(Command::new("man")))
}

/// Writes the completions of `command` to standard output.
pub(crate) fn complete(
    command: &mut Command,
    matches: &ArgMatches,
) -> Result<ExitCode, Box<dyn std::error::Error>> {
    let shell = CompletionsArgs::from_arg_matches(matches)?.shell;
    let name = command.get_name().to_owned();
    let mut text = Vec::new();
    clap_complete::generate(shell, command, name, &mut text);
    io::stdout().write_all(&text)?;
    Ok(ExitCode::SUCCESS)
}

/// Writes the pages of `command` and of all its subcommands.
pub(crate) fn write(
    command: Command,
    matches: &ArgMatches,
) -> Result<ExitCode, Box<dyn std::error::Error>> {
    let args = ManArgs::from_arg_matches(matches)?;
    for (name, text) in pages(command, &args.date)? {
        let path = args.directory.join(name);
        fs::write(&path, text).map_err(|error| format!("{}: {error}", path.display()))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Returns the pages: file names and texts.
fn pages(command: Command, date: &str) -> io::Result<Vec<(String, Vec<u8>)>> {
    let source = format!(
        "{} {}",
        command.get_name(),
        command.get_version().unwrap_or_default()
    );
    let heading = Heading { source, date };
    let mut command = command.disable_help_subcommand(true);
    command.build();
    let mut pages = Vec::new();
    heading.collect(&command, None, &mut pages)?;
    Ok(pages)
}

/// The header and footer of each page.
struct Heading<'a> {
    source: String,
    date: &'a str,
}

impl Heading<'_> {
    /// Adds the pages of `command`, a subcommand of `parent`, and of its subcommands.
    fn collect(
        &self,
        command: &Command,
        parent: Option<&str>,
        pages: &mut Vec<(String, Vec<u8>)>,
    ) -> io::Result<()> {
        // The display name of a command, as in its version output, is not the title of its page.
        let title = match parent {
            Some(parent) => format!("{parent}-{}", command.get_name()),
            None => command.get_name().to_owned(),
        };
        let usage = usage(command);
        let command = command.clone().display_name(&title).override_usage(usage);
        pages.push((
            format!("{title}.{SECTION}"),
            self.page(&command, &title, parent)?,
        ));
        for below in command.get_subcommands() {
            self.collect(below, Some(&title), pages)?;
        }
        Ok(())
    }

    fn page(&self, command: &Command, title: &str, parent: Option<&str>) -> io::Result<Vec<u8>> {
        let page = Man::new(command.clone())
            .title(title.to_uppercase())
            .section(SECTION)
            .source(&self.source)
            .date(self.date)
            .manual("Comporta Manual");
        let mut text = Vec::new();
        page.render_title(&mut text)?;
        page.render_name_section(&mut text)?;
        page.render_synopsis_section(&mut text)?;
        let about = command.get_about().map(ToString::to_string);
        let text_after = command.get_after_help().map(ToString::to_string);
        let (examples, rest) = split_examples(text_after.as_deref().unwrap_or_default());
        let mut section = Roff::new();
        section
            .control("SH", ["DESCRIPTION"])
            .text([roman(format!("{}.", about.unwrap_or_default()))]);
        for paragraph in rest {
            section.control("PP", []).text([roman(paragraph)]);
        }
        section.to_writer(&mut text)?;
        page.render_options_section(&mut text)?;
        if command.has_subcommands() {
            page.render_subcommands_section(&mut text)?;
        }
        let mut section = Roff::new();
        if !examples.is_empty() {
            section.control("SH", ["EXAMPLES"]).control("EX", []);
            for line in examples {
                section.text([roman(line)]);
            }
            section.control("EE", []);
        }
        add_common(&mut section, command, parent);
        section.to_writer(&mut text)?;
        Ok(text)
    }
}

/// Returns the synopsis in one line; the options have their own section.
fn usage(command: &Command) -> String {
    let usage = command.clone().render_usage().to_string();
    let usage = usage.strip_prefix("Usage:").unwrap_or(&usage);
    usage.trim().to_owned()
}

/// Splits the text after the options into the lines of examples and the other paragraphs.
fn split_examples(text_after: &str) -> (Vec<&str>, Vec<String>) {
    let (mut examples, mut rest) = (Vec::new(), Vec::new());
    for paragraph in text_after.split("\n\n") {
        let mut lines = paragraph.lines();
        match lines.next() {
            Some("Example:" | "Examples:") => {
                examples.extend(lines.map(str::trim_start));
            }
            Some(_) => rest.push(paragraph.replace('\n', " ")),
            None => {}
        }
    }
    (examples, rest)
}

/// Adds the sections on all commands to the first page, and references to it to the others.
fn add_common(page: &mut Roff, command: &Command, parent: Option<&str>) {
    if command.get_arguments().any(|arg| arg.get_id() == "rundir") {
        page.control("SH", ["ENVIRONMENT"]);
        define(
            page,
            "OVS_RUNDIR",
            "The directory of the sockets; --rundir has precedence.",
        );
    }
    let Some(parent) = parent else {
        page.control("SH", ["EXIT STATUS"]);
        for (code, meaning) in EXIT_STATUS {
            define(page, code, meaning);
        }
        page.control("SH", ["FILES"]);
        for (file, meaning) in FILES {
            define(page, file, meaning);
        }
        see_also(page, &["ovs-ofctl(8)", "ovs-vsctl(8)", "ovs-vswitchd(8)"]);
        return;
    };
    see_also(page, &[&format!("{parent}({SECTION})")]);
}

/// The exit codes of all commands.
const EXIT_STATUS: [(&str, &str); 5] = [
    ("0", "Success."),
    (
        "1",
        "Failure: a line on standard error states the reason and the remedy.",
    ),
    (
        "2",
        "The arguments are invalid, a comparison found differences, or doctor found problems.",
    ),
    ("4", "The measurement is inconclusive."),
    ("130", "Interrupted. Results so far are kept."),
];

/// The files that commands share.
const FILES: [(&str, &str); 4] = [
    (
        "/var/run/openvswitch/BRIDGE.mgmt",
        "The management socket of a bridge, for ovs-ofctl and similar tools.",
    ),
    (
        "/var/run/openvswitch/BRIDGE.ctl",
        "The control socket of a bridge of comporta switch, for ovs-appctl -t.",
    ),
    (
        "/etc/comporta/comporta.toml",
        "The bridges of the service comporta, for comporta switch --config.",
    ),
    (
        "/run/comporta/doctor.json",
        "The settings that comporta doctor --fix changed.",
    ),
];

fn define(page: &mut Roff, term: &str, meaning: &str) {
    page.control("TP", [])
        .text([bold(term)])
        .text([roman(meaning)]);
}

fn see_also(page: &mut Roff, pages: &[&str]) {
    let mut line: Vec<Inline> = Vec::new();
    for (number, name) in pages.iter().enumerate() {
        let comma = if number == 0 { "" } else { ", " };
        line.push(roman(format!("{comma}{name}")));
    }
    page.control("SH", ["SEE ALSO"]).text(line);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the manual page in the file `name`.
    fn page(name: &str) -> String {
        let pages = pages(crate::command(), "2030-12-31").expect("writing to memory succeeds");
        let (_, text) = pages
            .into_iter()
            .find(|(found, _)| found == name)
            .unwrap_or_else(|| panic!("no page {name}"));
        String::from_utf8(text).expect("text")
    }

    #[test]
    fn manual_pages_exist_for_all_commands_and_link_to_each_other() {
        let mut count = 0;
        for (name, text) in pages(crate::command(), "").expect("writing to memory succeeds") {
            let text = String::from_utf8(text).expect("text");
            for section in [".SH NAME", ".SH SYNOPSIS", ".SH DESCRIPTION", ".SH OPTIONS"] {
                assert!(text.contains(section), "{name} has no {section}");
            }
            assert!(text.contains(".SH \"SEE ALSO\""), "{name}");
            count += 1;
        }
        assert!(count > 25, "{count}");
        assert!(page("comporta.1").contains("comporta\\-vswitchd(1)"));
        assert!(page("comporta-lab.1").contains("comporta\\-lab\\-run(1)"));
        assert!(page("comporta-lab-run.1").contains("comporta\\-lab(1)"));
    }

    #[test]
    fn manual_page_header_has_command_name_and_version() {
        let text = page("comporta-vswitchd.1");
        assert!(text.contains(".TH COMPORTA-VSWITCHD 1 2030-12-31 \"comporta "));
        assert!(text.contains("comporta\\-vswitchd \\- Run"), "{text}");
    }

    #[test]
    fn help_text_splits_into_examples_and_paragraphs() {
        let text_after = "Codes are listed.\nAll of them.\n\nExamples:\n  one\n  two\n\nThe end.";
        assert_eq!(
            split_examples(text_after),
            (
                vec!["one", "two"],
                vec![
                    "Codes are listed. All of them.".to_owned(),
                    "The end.".to_owned()
                ]
            )
        );
    }

    #[test]
    fn completions_of_all_shells_contain_all_commands() {
        for shell in [Shell::Bash, Shell::Zsh, Shell::Fish] {
            let mut text = Vec::new();
            let mut command = crate::command();
            clap_complete::generate(shell, &mut command, "comporta", &mut text);
            let text = String::from_utf8(text).expect("text");
            for command in command.get_subcommands() {
                assert!(text.contains(command.get_name()), "{shell}");
            }
        }
    }
}
