//! Removes secrets from command lines.

/// Text that replaces a secret.
const HIDDEN: &str = "(hidden)";

/// Words in the name of an option whose value is a secret.
const SECRET: [&str; 13] = [
    "apikey",
    "auth",
    "authorization",
    "bearer",
    "credential",
    "credentials",
    "passphrase",
    "passwd",
    "password",
    "pwd",
    "secret",
    "secrets",
    "token",
];

/// Words before `key` in the name of a secret.
const SECRET_KEY: [&str; 6] = [
    "access",
    "api",
    "encryption",
    "private",
    "secret",
    "signing",
];

/// Returns the arguments without the values of options with names such as `token` or `password` (`--token=…`, `--token …`,
/// `TOKEN=…`, `Authorization: …`), and without passwords in addresses, because reports are shown to others.
#[must_use]
pub fn without_secrets<'a>(arguments: impl Iterator<Item = &'a str>) -> Vec<String> {
    let mut follows = false;
    let shown = arguments.map(|argument| {
        let is_value = std::mem::take(&mut follows) && !argument.starts_with('-');
        if is_value {
            return HIDDEN.to_owned();
        }
        match argument.find(['=', ':']) {
            Some(at) if is_secret(&argument[..at]) => format!("{}{HIDDEN}", &argument[..=at]),
            Some(_) => without_password(argument),
            None => {
                follows = argument.starts_with('-') && is_secret(argument);
                argument.to_owned()
            }
        }
    });
    shown.collect()
}

fn is_secret(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    let words: Vec<&str> = name.split(|c: char| !c.is_ascii_alphanumeric()).collect();
    let of = |list: &[&str]| words.iter().any(|word| list.contains(word));
    // The path of a secret is not a secret.
    let place = matches!(words.last(), Some(&("file" | "path" | "dir")));
    let key = || {
        words
            .windows(2)
            .any(|two| two[1] == "key" && SECRET_KEY.contains(&two[0]))
    };
    !place && (of(&SECRET) || key())
}

/// Returns `scheme://user:password@host` without the password.
fn without_password(argument: &str) -> String {
    let cut = || {
        let begin = argument.find("://")? + 3;
        let authority = argument[begin..].split(['/', '?', '#']).next()?;
        let (user, password) = authority.rsplit_once('@')?.0.split_once(':')?;
        let from = begin + user.len() + 1;
        let (head, tail) = (&argument[..from], &argument[from + password.len()..]);
        Some(format!("{head}{HIDDEN}{tail}"))
    };
    cut().unwrap_or_else(|| argument.to_owned())
}

#[cfg(test)]
mod tests {
    use super::without_secrets;

    #[test]
    fn a_secret_in_a_command_line_is_not_kept() {
        for (raw, shown) in [
            ("a --token=s3cret -v", "a --token=(hidden) -v"),
            ("a --token s3cret -v", "a --token (hidden) -v"),
            ("a --token -v", "a --token -v"),
            ("a --db-password=s3cret", "a --db-password=(hidden)"),
            ("a --api-key s3cret", "a --api-key (hidden)"),
            ("a -H Authorization:s3cret", "a -H Authorization:(hidden)"),
            (
                "env MEMRAY_PROFILER_TOKEN=s3cret b",
                "env MEMRAY_PROFILER_TOKEN=(hidden) b",
            ),
            (
                "a --db=postgres://u:s3:@cret@h/x",
                "a --db=postgres://u:(hidden)@h/x",
            ),
            ("a http://u:s3cret@h", "a http://u:(hidden)@h"),
            (
                "a --token-file=/run/t --tokens-dir x",
                "a --token-file=/run/t --tokens-dir x",
            ),
            (
                "a --port=7000 http://h:80/a@b:c --author x",
                "a --port=7000 http://h:80/a@b:c --author x",
            ),
            (
                "a --keys=5 --key-file k monkey=1",
                "a --keys=5 --key-file k monkey=1",
            ),
        ] {
            assert_eq!(without_secrets(raw.split(' ')).join(" "), shown);
        }
        let header = ["a", "--header", "Authorization: Bearer s3cret"];
        assert!(
            !without_secrets(header.into_iter())
                .concat()
                .contains("s3cret")
        );
    }
}
