//! The record of what happened: through the program, and in the tables.

use sqlx::{AssertSqlSafe, Row};

use super::{Gateway, Value, eventually};

impl Gateway {
    /// What `toolgate audit search` finds, newest first or as the program orders it.
    pub(crate) fn audit(&self, filters: &[&str]) -> Vec<Value> {
        let mut args = vec!["audit", "search", "--json"];
        args.extend_from_slice(filters);
        json_lines(&self.command(&args))
    }

    /// Waits until the search finds at least `count` records.
    pub(crate) async fn audit_of(&self, filters: &[&str], count: usize) -> Vec<Value> {
        eventually(&format!("{count} records"), async || {
            let records = self.audit(filters);
            (records.len() >= count).then_some(records)
        })
        .await
    }

    /// The rows of a query, each as JSON: `select … from …` without a semicolon.
    pub(crate) async fn rows(&self, query: &str) -> Vec<Value> {
        let sql = format!("select row_to_json(found)::text as line from ({query}) as found");
        let pool = self.database().pool().await;
        let rows = sqlx::query(AssertSqlSafe(sql))
            .fetch_all(&pool)
            .await
            .unwrap();
        let parse = |row: &sqlx::postgres::PgRow| {
            let line: String = row.get("line");
            serde_json::from_str(&line).unwrap()
        };
        rows.iter().map(parse).collect()
    }
}

/// A JSON array, or a JSON object a line.
fn json_lines(text: &str) -> Vec<Value> {
    if let Ok(Value::Array(all)) = serde_json::from_str(text) {
        return all;
    }
    let lines = text.lines().filter(|line| !line.trim().is_empty());
    lines
        .map(|line| serde_json::from_str(line).unwrap_or_else(|_| panic!("not JSON: {line}")))
        .collect()
}
