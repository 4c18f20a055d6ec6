//! `WWW-Authenticate`, read in every legal shape (RFC 9110 §11.6.1).

use thiserror::Error;

/// One challenge.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Challenge {
    /// The scheme as it came; compare without case.
    pub scheme: String,
    /// What stands behind a scheme that has no parameters (`Basic YWJj`).
    pub token68: Option<String>,
    /// The parameters in their order, names in lower case.
    pub parameters: Vec<(String, String)>,
}

impl Challenge {
    /// Whether the scheme is this one.
    pub fn is(&self, scheme: &str) -> bool {
        self.scheme.eq_ignore_ascii_case(scheme)
    }

    /// A parameter, by its name in lower case.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.parameters
            .iter()
            .find(|(known, _)| known == name)
            .map(|(_, value)| value.as_str())
    }
}

/// Header lines that cannot be read, or name a parameter twice in one challenge:
/// one of two is not to be trusted (RFC 9110 §11.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("the WWW-Authenticate header is malformed")]
pub struct MalformedChallenge;

/// Reads the challenges of all lines of the header.
///
/// # Errors
/// [`MalformedChallenge`]; then none of them is used.
pub fn parse_challenges<'a>(
    lines: impl IntoIterator<Item = &'a [u8]>,
) -> Result<Vec<Challenge>, MalformedChallenge> {
    let mut challenges = Vec::new();
    for line in lines {
        Reader { rest: line }.line(&mut challenges)?;
    }
    Ok(challenges)
}

struct Reader<'a> {
    rest: &'a [u8],
}

impl Reader<'_> {
    fn line(&mut self, challenges: &mut Vec<Challenge>) -> Result<(), MalformedChallenge> {
        let first = challenges.len();
        loop {
            // Empty elements of a list are skipped (RFC 9110 §5.6.1.2).
            self.skip(b" \t,");
            if self.rest.is_empty() {
                return Ok(());
            }
            // A name with `=` and a value goes with the challenge before it, if
            // this line has one; anything else is the next challenge's scheme.
            let within = challenges.get_mut(first..).and_then(<[_]>::last_mut);
            match (self.parameter()?, within) {
                (Some((name, value)), Some(challenge)) => add(challenge, name, value)?,
                (Some(_), None) => return Err(MalformedChallenge),
                (None, _) => challenges.push(self.challenge()?),
            }
            self.skip(b" \t");
            if !self.rest.is_empty() && self.rest.first() != Some(&b',') {
                return Err(MalformedChallenge);
            }
        }
    }

    /// A scheme and the first thing behind it.
    fn challenge(&mut self) -> Result<Challenge, MalformedChallenge> {
        let mut challenge = Challenge {
            scheme: self.token().ok_or(MalformedChallenge)?,
            token68: None,
            parameters: Vec::new(),
        };
        let spaces = self.skip(b" \t");
        match self.rest.first() {
            None | Some(b',') => return Ok(challenge),
            Some(_) if spaces == 0 => return Err(MalformedChallenge),
            Some(_) => {}
        }
        match self.parameter()? {
            Some((name, value)) => add(&mut challenge, name, value)?,
            None => challenge.token68 = Some(self.token68().ok_or(MalformedChallenge)?),
        }
        Ok(challenge)
    }

    /// `name = value`, if that is what comes next; else nothing is read.
    fn parameter(&mut self) -> Result<Option<(String, String)>, MalformedChallenge> {
        let start = self.rest;
        let parsed = self.try_parameter()?;
        if parsed.is_none() {
            self.rest = start;
        }
        Ok(parsed)
    }

    fn try_parameter(&mut self) -> Result<Option<(String, String)>, MalformedChallenge> {
        let Some(name) = self.token() else {
            return Ok(None);
        };
        self.skip(b" \t");
        if !self.take(b'=') {
            return Ok(None);
        }
        self.skip(b" \t");
        let value = if self.take(b'"') {
            Some(self.quoted()?)
        } else {
            self.token()
        };
        Ok(value.map(|value| (name.to_ascii_lowercase(), value)))
    }

    /// The rest of a quoted string, unescaped (RFC 9110 §5.6.4).
    fn quoted(&mut self) -> Result<String, MalformedChallenge> {
        let mut value = Vec::new();
        loop {
            match self.next() {
                None => return Err(MalformedChallenge),
                Some(b'"') => return Ok(String::from_utf8_lossy(&value).into_owned()),
                Some(b'\\') => value.push(self.next().ok_or(MalformedChallenge)?),
                Some(byte) => value.push(byte),
            }
        }
    }

    fn token(&mut self) -> Option<String> {
        self.run(|byte| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte))
    }

    fn token68(&mut self) -> Option<String> {
        self.run(|byte| byte.is_ascii_alphanumeric() || b"-._~+/=".contains(&byte))
    }

    fn run(&mut self, of: impl Fn(u8) -> bool) -> Option<String> {
        let length = self.rest.iter().take_while(|byte| of(**byte)).count();
        let (run, rest) = self.rest.split_at_checked(length)?;
        self.rest = rest;
        (length > 0).then(|| String::from_utf8_lossy(run).into_owned())
    }

    fn skip(&mut self, any: &[u8]) -> usize {
        let length = self.rest.iter().take_while(|b| any.contains(b)).count();
        self.rest = self.rest.get(length..).unwrap_or_default();
        length
    }

    fn take(&mut self, byte: u8) -> bool {
        let found = self.rest.first() == Some(&byte);
        if found {
            self.next();
        }
        found
    }

    fn next(&mut self) -> Option<u8> {
        let (first, rest) = self.rest.split_first()?;
        self.rest = rest;
        Some(*first)
    }
}

fn add(challenge: &mut Challenge, name: String, value: String) -> Result<(), MalformedChallenge> {
    if challenge.token68.is_some() || challenge.get(&name).is_some() {
        return Err(MalformedChallenge);
    }
    challenge.parameters.push((name, value));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(lines: &[&str]) -> Result<Vec<Challenge>, MalformedChallenge> {
        parse_challenges(lines.iter().map(|line| line.as_bytes()))
    }

    fn bearer(lines: &[&str]) -> Challenge {
        let all = read(lines).unwrap();
        all.into_iter().find(|c| c.is("Bearer")).unwrap()
    }

    #[test]
    fn the_bearer_challenge_is_found_among_others() {
        let a = bearer(&[
            r#"DPoP algs="ES256", Bearer scope="files:read", resource_metadata="https://up.example.com/.well-known/oauth-protected-resource/mcp""#,
        ]);
        assert_eq!(a.get("scope"), Some("files:read"));
        assert_eq!(
            a.get("resource_metadata"),
            Some("https://up.example.com/.well-known/oauth-protected-resource/mcp")
        );
        let b = bearer(&[r#"Bearer resource_metadata = "https://up.example.com/prm""#]);
        assert_eq!(
            b.get("resource_metadata"),
            Some("https://up.example.com/prm")
        );
        let c = bearer(&[
            r#"Basic realm="a, b""#,
            r#"bearer error_description="say \"no, thanks\"", resource_metadata="https://up.example.com/prm""#,
        ]);
        assert_eq!(c.get("error_description"), Some(r#"say "no, thanks""#));
        assert_eq!(
            c.get("resource_metadata"),
            Some("https://up.example.com/prm")
        );
    }

    #[test]
    fn a_parameter_that_comes_twice_spoils_the_header() {
        let twice = r#"Bearer resource_metadata="https://a.example/prm", resource_metadata="https://b.example/prm""#;
        assert_eq!(read(&[twice]), Err(MalformedChallenge));
        let by_case = r#"Bearer realm="a", REALM="b""#;
        assert_eq!(read(&[by_case]), Err(MalformedChallenge));
        // In two challenges it is not twice.
        assert_eq!(
            read(&[r#"Basic realm="a", Bearer realm="b""#])
                .unwrap()
                .len(),
            2
        );
    }

    #[test]
    fn every_legal_shape_is_read() {
        let names = |line: &str| -> Vec<String> {
            let shown = |c: &Challenge| {
                let parameters = c.parameters.iter().map(|(name, v)| format!("{name}={v}"));
                let token = c.token68.iter().map(|token| format!("[{token}]"));
                let words = std::iter::once(c.scheme.clone());
                let all: Vec<_> = words.chain(parameters).chain(token).collect();
                all.join(" ")
            };
            read(&[line]).unwrap().iter().map(shown).collect()
        };
        assert_eq!(names(""), Vec::<String>::new());
        assert_eq!(names(" , ,"), Vec::<String>::new());
        assert_eq!(names("Negotiate"), ["Negotiate"]);
        assert_eq!(names("Negotiate, Bearer"), ["Negotiate", "Bearer"]);
        assert_eq!(
            names("Negotiate YWJj, Bearer a=b"),
            ["Negotiate [YWJj]", "Bearer a=b"]
        );
        assert_eq!(names("Negotiate YWI="), ["Negotiate [YWI=]"]);
        assert_eq!(
            names("Negotiate YQ==,, Bearer"),
            ["Negotiate [YQ==]", "Bearer"]
        );
        assert_eq!(
            names("Bearer a=b ,c = d , Basic"),
            ["Bearer a=b c=d", "Basic"]
        );
        assert_eq!(names("Bearer\ta=\"\""), ["Bearer a="]);
        assert_eq!(names(r#"Bearer a="x\\y""#), [r"Bearer a=x\y"]);
    }

    #[test]
    fn what_is_not_legal_is_refused() {
        for line in [
            "=x",
            "a=b",
            "Bearer a=\"x",
            "Bearer a=\"x\\",
            "Bearer a=\"x\"y",
            "Bearer a=b c=d",
            "Bearer YWJj, a=b",
            "Bearer a=, b=c",
            "\"Bearer\"",
            "Bearer@",
        ] {
            assert_eq!(read(&[line]), Err(MalformedChallenge), "{line}");
        }
    }
}
