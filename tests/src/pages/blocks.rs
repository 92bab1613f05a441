//! The code blocks of a page, and the comments that say what to do with them.

use pulldown_cmark::{CodeBlockKind, Event, Options, Parser, Tag, TagEnd};

/// What to do with a block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Role {
    Run {
        code: Option<i32>,
    },
    Start {
        name: String,
        until: String,
    },
    File {
        name: String,
    },
    Settings,
    Shown,
    NotRun {
        checked_by: Vec<String>,
    },
    /// Commands in a comment.
    Prepare,
}

/// A code block, or a comment with commands.
#[derive(Clone, Debug)]
pub struct Block {
    /// The block's first line in the page, from 1.
    pub line: usize,
    pub role: Role,
    pub text: String,
}

/// The blocks of a page in their order, and complaints about blocks and comments.
pub fn read_blocks(page: &str) -> (Vec<Block>, Vec<String>) {
    let mut reader = Reader::default();
    let mut parser = Parser::new_ext(page, Options::ENABLE_TABLES).into_offset_iter();
    while let Some((event, range)) = parser.next() {
        let line = page[..range.start].lines().count()
            + usize::from(page[..range.start].ends_with('\n') || range.start == 0);
        match event {
            Event::Start(Tag::HtmlBlock) => {
                let html = collect(&mut parser, TagEnd::HtmlBlock);
                reader.comment(line, &html);
            }
            Event::Start(Tag::CodeBlock(kind)) => {
                let line = line + usize::from(matches!(kind, CodeBlockKind::Fenced(_)));
                let text = collect(&mut parser, TagEnd::CodeBlock);
                reader.block(line, text);
            }
            _ => {}
        }
    }
    if let Some((line, _)) = reader.next {
        reader
            .complaints
            .push(format!("line {line}: no block follows this comment"));
    }
    (reader.blocks, reader.complaints)
}

fn collect<'a>(
    parser: &mut impl Iterator<Item = (Event<'a>, std::ops::Range<usize>)>,
    end: TagEnd,
) -> String {
    let mut text = String::new();
    for (event, _) in parser {
        match event {
            Event::End(tag) if tag == end => break,
            Event::Text(part) | Event::Html(part) => text.push_str(&part),
            _ => {}
        }
    }
    text
}

#[derive(Default)]
struct Reader {
    blocks: Vec<Block>,
    complaints: Vec<String>,
    next: Option<(usize, Role)>,
    all: Option<Role>,
}

impl Reader {
    fn comment(&mut self, line: usize, html: &str) {
        let inner = html
            .trim()
            .strip_prefix("<!--")
            .and_then(|rest| rest.strip_suffix("-->"));
        let Some(text) = inner.map(str::trim) else {
            self.complaints.push(format!(
                "line {line}: an HTML block must be exactly one comment; split it or remove the rest"
            ));
            return;
        };
        if let Some(commands) = text.strip_prefix("prepare\n") {
            self.blocks.push(Block {
                line: line + 1,
                role: Role::Prepare,
                text: commands.to_owned(),
            });
            return;
        }
        let (is_for_all, words) = match text.strip_prefix("all: ") {
            Some(rest) => (true, rest),
            None => (false, text),
        };
        match role(words) {
            Err(why) => self.complaints.push(format!("line {line}: {words:?} {why}")),
            Ok(role) if is_for_all => self.all = Some(role),
            Ok(role) => {
                if let Some((before, _)) = self.next.replace((line, role)) {
                    self.complaints
                        .push(format!("line {before}: no block follows this comment"));
                }
            }
        }
    }

    fn block(&mut self, line: usize, text: String) {
        let role = self
            .next
            .take()
            .map(|(_, role)| role)
            .or_else(|| self.all.clone());
        match role {
            Some(role) => self.blocks.push(Block { line, role, text }),
            None => self.complaints.push(format!(
                "line {line}: this block has no comment; add one that says what to do with it"
            )),
        }
    }
}

fn role(words: &str) -> Result<Role, &'static str> {
    if words == "run" {
        return Ok(Role::Run { code: None });
    }
    if let Some(code) = words.strip_prefix("run, ends with ") {
        let code = code.parse().map_err(|_| "names no exit code")?;
        return Ok(Role::Run { code: Some(code) });
    }
    if let Some(rest) = words.strip_prefix("start ") {
        let (name, until) = rest.split_once(" until ").ok_or("lacks `until TEXT`")?;
        return Ok(Role::Start {
            name: name.to_owned(),
            until: until.to_owned(),
        });
    }
    if let Some(name) = words.strip_prefix("file ") {
        return Ok(Role::File {
            name: name.to_owned(),
        });
    }
    if words == "settings" {
        return Ok(Role::Settings);
    }
    if words.strip_prefix("shown: ").is_some_and(|what| !what.is_empty()) {
        return Ok(Role::Shown);
    }
    if let Some(rest) = words.strip_prefix("not run: ") {
        let (_, paths) = rest
            .split_once("; ")
            .ok_or("lacks `; PATH` of the file that checks this block")?;
        let checked_by = paths.split([' ', ',']).filter(|path| path.contains('/'));
        return Ok(Role::NotRun {
            checked_by: checked_by.map(str::to_owned).collect(),
        });
    }
    Err("is not a known comment; tests/src/pages/mod.rs lists them")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_without_a_comment_is_a_complaint_in_every_markdown_form() {
        let page = "Text.\n\n    indented\n\n1. A list:\n\n       in a list\n\n   ```sh\n   fenced\n   ```\n";
        let (blocks, complaints) = read_blocks(page);
        assert!(blocks.is_empty());
        let lines: Vec<_> = complaints
            .iter()
            .map(|text| text.split(':').next().unwrap())
            .collect();
        assert_eq!(lines, ["line 3", "line 7", "line 10"]);
    }

    #[test]
    fn a_comment_is_for_the_next_block_and_all_is_for_the_rest() {
        let page = "<!-- run, ends with 3 -->\n\n    $ a\n\n<!-- all: run -->\n\n    $ b\n\n<!-- file x.toml -->\n```toml\nc\n```\n\n    $ d\n";
        let (blocks, complaints) = read_blocks(page);
        assert_eq!(complaints, Vec::<String>::new());
        let roles: Vec<_> = blocks.iter().map(|block| block.role.clone()).collect();
        let run = || Role::Run { code: None };
        let file = Role::File {
            name: "x.toml".to_owned(),
        };
        assert_eq!(roles, [Role::Run { code: Some(3) }, run(), file, run()]);
        assert_eq!(blocks[3].text, "$ d\n");
    }

    #[test]
    fn a_comment_that_cannot_be_parsed_is_a_complaint() {
        for comment in ["walk", "not run: no reason", "start it", "run, ends with x"] {
            let (_, complaints) = read_blocks(&format!("<!-- {comment} -->\n\n    $ a\n"));
            assert!(!complaints.is_empty(), "{comment}");
        }
    }
}
