//! The command line.

/// Options of the job.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Options {
    /// Port of the job: `--port`, else `PORT`, else 7000; 0 lets the system choose.
    pub(crate) port: u16,
}

/// Command of the job.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Command {
    Run(Options),
    HealthCheck(Options),
    Help,
}

pub(crate) const HELP: &str = "\
A job that leaks 8 MB with every call of POST /api/v1/perform. It is a small shop, too: GET /api/v1/quote needs memory for a
moment, GET /api/v1/items/{id} caches, and POST /api/v1/visits leaks a little.

  --port N         listen there instead of $PORT or 7000
  --health-check   ask a running job whether it is live; exit 0 if so

Start it with MEMRAY_PROFILER=true to find out which line leaks.";

/// Reads arguments (without the program's name) and the variable `PORT`.
pub(crate) fn read(
    arguments: impl Iterator<Item = String>,
    variable: Option<String>,
) -> Result<Command, String> {
    let mut port = None;
    let mut health_check = false;
    let mut arguments = arguments;
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "-h" | "--help" => return Ok(Command::Help),
            "--health-check" => health_check = true,
            "--port" => port = Some(number("--port", &arguments.next().unwrap_or_default())?),
            other => match other.strip_prefix("--port=") {
                Some(text) => port = Some(number("--port", text)?),
                None => {
                    return Err(format!(
                        "unknown argument {other:?}; --help lists all arguments"
                    ));
                }
            },
        }
    }
    let port = match (port, variable) {
        (Some(port), _) => port,
        (None, Some(text)) => number("PORT", &text)?,
        (None, None) => 7000,
    };
    Ok(match health_check {
        true => Command::HealthCheck(Options { port }),
        false => Command::Run(Options { port }),
    })
}

fn number(name: &str, text: &str) -> Result<u16, String> {
    text.parse()
        .map_err(|_| format!("{name} is {text:?}, but must be a port from 0 to 65535"))
}

/// Returns the commands and pages for a job on `port`.
pub(crate) fn what_next(port: u16, profiled: bool) -> String {
    let job = format!("http://localhost:{port}");
    if !profiled {
        return format!(
            "The job listens on {job}, and nothing is recorded.\n\
             Start it with MEMRAY_PROFILER=true to see where its memory goes."
        );
    }
    let memray = format!("{job}/api/v1/profiler/memray");
    format!(
        "The job listens on {job}, and its allocations are recorded. Now leak three times, and stop:\n\n  \
           curl -X POST {job}/api/v1/perform\n  \
           curl -X POST {job}/api/v1/perform\n  \
           curl -X POST {job}/api/v1/perform\n  \
           curl -X POST {memray}/stop\n\n\
         Which line was it?\n\n  \
           curl {memray}/stats\n  \
           curl -OJ {memray}/report     # memray-report.bin, for memray from PyPI\n\n\
         To look at it, open\n\n  \
           {memray}/            the page that shows it live, with all reports\n  \
           {memray}/flamegraph\n  \
           {job}/docs/                  every endpoint, to try out\n"
    )
}

#[cfg(test)]
mod tests {
    use super::{Command, Options, read, what_next};

    fn parse(arguments: &[&str], variable: Option<&str>) -> Result<Command, String> {
        read(
            arguments.iter().map(ToString::to_string),
            variable.map(Into::into),
        )
    }

    #[test]
    fn the_argument_beats_the_variable_and_both_beat_the_default() {
        let run = |port| Ok(Command::Run(Options { port }));
        assert_eq!(parse(&[], None), run(7000));
        assert_eq!(parse(&[], Some("8000")), run(8000));
        assert_eq!(parse(&["--port", "9000"], Some("8000")), run(9000));
        assert_eq!(parse(&["--port=0"], Some("x")), run(0));
        let check = Ok(Command::HealthCheck(Options { port: 7001 }));
        assert_eq!(parse(&["--health-check", "--port", "7001"], None), check);
    }

    #[test]
    fn bad_arguments_are_named() {
        for (arguments, named) in [
            (&["--port"][..], "--port is \"\""),
            (&["--port", "70000"], "--port is \"70000\""),
            (&["--prot"], "\"--prot\""),
        ] {
            let error = parse(arguments, None).unwrap_err();
            assert!(error.contains(named), "{error}");
        }
        assert!(parse(&[], Some("http")).unwrap_err().contains("PORT is"));
    }

    #[test]
    fn the_next_steps_are_printed_only_if_the_profiler_records() {
        assert!(
            what_next(7000, true).contains("curl -X POST http://localhost:7000/api/v1/perform")
        );
        assert!(!what_next(7000, false).contains("curl"));
    }
}
