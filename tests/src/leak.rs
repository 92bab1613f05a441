//! Looks for secrets where none may be stored or shown.

use sqlx::{Connection, Row};

use crate::Stack;

/// Panics if any of these secrets is in the database or in an answer of the API: as a value, in a credential, or in a text.
///
/// The mask that replaces a secret, and the names of columns and fields, are not leaks.
pub async fn assert_secrets_are_nowhere(stack: &Stack, secrets: &[&str]) {
    let mut places = told_by_the_api(stack).await;
    places.push(("the database".to_owned(), whole_database(stack).await));
    for (place, text) in &places {
        assert!(
            text.len() > 2,
            "{place} is empty, so that a secret cannot be looked for"
        );
        for secret in secrets {
            assert!(!holds_word(text, secret), "the secret {secret:?} is in {place}");
        }
    }
}

async fn told_by_the_api(stack: &Stack) -> Vec<(String, String)> {
    let paths = [
        "/hosts",
        "/methods",
        "/plans",
        "/segments",
        "/operations",
        "/events?limit=1000",
        "/subscriptions",
        "/audit?limit=1000",
    ];
    let mut told = Vec::new();
    for path in paths {
        told.push((path.to_owned(), stack.client.get(path).await.ok(200).to_string()));
    }
    let operations = stack.client.get("/operations").await.ok(200);
    for operation in operations["operations"].as_array().unwrap() {
        let path = format!("/operations/{}", operation["id"].as_str().unwrap());
        let text = stack.client.get(&path).await.ok(200).to_string();
        told.push((path, text));
    }
    told
}

async fn whole_database(stack: &Stack) -> String {
    let url = &stack.site.database_url;
    match url.strip_prefix("sqlite://") {
        Some(path) => of_sqlite(path),
        None => of_postgres(url).await,
    }
}

/// The database file and its log, with their free pages.
fn of_sqlite(path: &str) -> String {
    let mut bytes = std::fs::read(path).unwrap();
    bytes.extend(std::fs::read(format!("{path}-wal")).unwrap_or_default());
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Every row of every table, with the audit trail.
async fn of_postgres(url: &str) -> String {
    let mut connection = sqlx::PgConnection::connect(url).await.unwrap();
    let tables = "SELECT tablename::text FROM pg_tables WHERE schemaname = 'public'";
    let mut text = String::new();
    for table in sqlx::query(tables).fetch_all(&mut connection).await.unwrap() {
        let rows = format!("SELECT t::text FROM \"{}\" t", table.get::<String, _>(0));
        for row in sqlx::query(sqlx::AssertSqlSafe(rows))
            .fetch_all(&mut connection)
            .await
            .unwrap()
        {
            text.push_str(&row.get::<String, _>(0));
            text.push('\n');
        }
    }
    connection.close().await.unwrap();
    text
}

fn holds_word(text: &str, word: &str) -> bool {
    let part = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '_');
    text.match_indices(word).any(|(at, _)| {
        let (before, after) = (
            text[..at].chars().next_back(),
            text[at + word.len()..].chars().next(),
        );
        let masked = before == Some('[') && after == Some(']');
        !masked && !part(before) && !part(after)
    })
}

#[cfg(test)]
mod tests {
    use super::holds_word;

    #[test]
    fn a_word_is_found_as_a_value_and_not_as_a_part_of_a_name() {
        for leak in [
            "{\"password\":\"secret\"}",
            "admin:secret",
            "secret",
            "password=secret\n",
        ] {
            assert!(holds_word(leak, "secret"), "{leak}");
        }
        for fine in ["secrets TEXT", "no_secret", "[secret]", ""] {
            assert!(!holds_word(fine, "secret"), "{fine}");
        }
    }
}
