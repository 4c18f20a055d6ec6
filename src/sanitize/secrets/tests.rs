use super::*;

fn found(text: &str) -> Vec<(&'static str, String)> {
    Secrets::new()
        .find(text, None, &[])
        .into_iter()
        .map(|span| (span.label, text[span.range].to_owned()))
        .collect()
}
