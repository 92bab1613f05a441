//! Lists with filters: a request is read by the declaration of its list, and the list is described by it.

use ringfence_db::{Asked, Filters, Listing, Page, Reader, Values};
use utoipa::openapi::Required;
use utoipa::openapi::path::{Parameter, ParameterBuilder, ParameterIn};
use utoipa::openapi::schema::{KnownFormat, ObjectBuilder, SchemaFormat, Type};
use uuid::Uuid;

use crate::ApiError;
use crate::filter::{Operators, Parameters, name, number, time, word};
use crate::paging::{MAX_LIMIT, page};
use crate::state::State;

/// What the patterns of the description say of single values.
const FLAGS: [&str; 2] = ["true", "false"];
const NAME: &str = "[A-Za-z0-9][A-Za-z0-9._-]{0,254}";
const NUMBER: &str = "[0-9]{1,9}";
const ID: &str = "[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}";
const TIME: &str = "[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])T([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]([.][0-9]{1,9})?\
                    (Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])";

/// What a request for a list asks for.
pub(crate) struct ListRequest {
    pub page: Page,
    pub filters: Filters,
}

impl ListRequest {
    /// Reads a query.
    pub fn read(listing: &Listing, query: &str) -> Result<Self, ApiError> {
        let filters = listing.filters.iter().map(|filter| filter.name);
        let known: Vec<&str> = filters.chain(["limit", "marker", "sort"]).collect();
        let given = Parameters::read(query, &known)?;
        let mut filters = Filters::default();
        for filter in listing.filters {
            let operators = operators(filter.values);
            for test in given.tests(filter.name, operators, |text| asked(filter.values, text))? {
                filters = filters.and(*filter, test);
            }
        }
        Ok(Self {
            page: page(&given, listing.sort_keys, listing.by_default)?,
            filters,
        })
    }

    /// What reads the page, once it is known that the page follows a row that is there.
    pub async fn reader<'a>(&self, listing: &Listing, state: &'a State) -> Result<Reader<'a>, ApiError> {
        let db = state.engine.db();
        if let Some(marker) = self.page.marker
            && !listing.has(&mut db.reader(), marker).await?
        {
            let why = format!("is {marker}, and there is no such {}", listing.noun);
            return Err(ApiError::bad("marker", why));
        }
        // Which index is best depends on what is asked for: a plan that was kept could read every row to find none.
        Ok(if self.filters.is_empty() {
            db.reader()
        } else {
            db.reader_of_what_grows()
        })
    }
}

fn operators(values: Values) -> Operators {
    match values {
        Values::Words(_) | Values::Names | Values::Rows(_) | Values::Flag => Operators::Same,
        Values::Numbers | Values::Times | Values::Ids => Operators::Order,
    }
}

fn asked(values: Values, text: &str) -> Result<Asked, String> {
    match values {
        Values::Words(words) => word(&words(), text).map(Asked::from),
        Values::Flag => word(&FLAGS, text).map(Asked::from),
        Values::Names | Values::Rows(_) => name(text).map(Asked::Text),
        Values::Numbers => number(text).map(Asked::Number),
        Values::Times => time(text).map(Asked::Time),
        Values::Ids => Uuid::parse_str(text)
            .map(Asked::Id)
            .map_err(|_| "a UUID is allowed".to_owned()),
    }
}

/// The parameters of a list.
pub(crate) fn parameters(listing: &Listing) -> Vec<Parameter> {
    let filters = listing.filters.iter().map(|filter| {
        let (about, pattern) = described(filter.about, filter.values);
        parameter(filter.name, &about, text(&pattern))
    });
    let limit = ObjectBuilder::new()
        .schema_type(Type::Integer)
        .format(Some(SchemaFormat::KnownFormat(KnownFormat::Int32)))
        .minimum(Some(1))
        .maximum(Some(MAX_LIMIT));
    let marker = ObjectBuilder::new()
        .schema_type(Type::String)
        .format(Some(SchemaFormat::KnownFormat(KnownFormat::Uuid)));
    let (about, pattern) = sorting(listing);
    let page = [
        parameter("limit", "The most rows; 100 if absent.", limit),
        parameter("marker", "The id of the last row of the page before.", marker),
        parameter("sort", &about, text(&pattern)),
    ];
    filters.chain(page).collect()
}

fn parameter(name: &str, about: &str, schema: ObjectBuilder) -> Parameter {
    ParameterBuilder::new()
        .name(name)
        .parameter_in(ParameterIn::Query)
        .description(Some(about))
        .required(Required::False)
        .schema(Some(schema))
        .build()
}

fn text(pattern: &str) -> ObjectBuilder {
    ObjectBuilder::new()
        .schema_type(Type::String)
        .pattern(Some(pattern))
}

/// What a filter takes, in words and as a pattern.
fn described(about: &str, values: Values) -> (String, String) {
    const SAME: &str = "after neq:, or several after in: or nin:";
    let same = |one: &str, more: &str| format!("^((neq:)?{one}|n?in:{one}(,{one}){more})$");
    match values {
        Values::Words(words) => {
            let (words, one) = (words(), format!("({})", words().join("|")));
            (format!("{about}: {}; {SAME}", one_of(&words)), same(&one, "*"))
        }
        Values::Flag => (
            format!("{about}: {}; {SAME}", one_of(&FLAGS)),
            same(&format!("({})", FLAGS.join("|")), "*"),
        ),
        Values::Names | Values::Rows(_) => (format!("{about}; {SAME}"), same(NAME, "{0,99}")),
        Values::Numbers => (
            format!("{about}; after neq:, gt:, gte:, lt: or lte:, or several after in: or nin:"),
            format!("^(((neq|gte?|lte?):)?{NUMBER}|n?in:{NUMBER}(,{NUMBER}){{0,99}})$"),
        ),
        Values::Times => (
            format!("{about}, RFC 3339; after neq:, gt:, gte:, lt: or lte:"),
            format!("^((neq|gte?|lte?):)?{TIME}$"),
        ),
        Values::Ids => (
            format!("{about}; after neq:, gt:, gte:, lt: or lte:, or several after in: or nin:"),
            format!("^(((neq|gte?|lte?):)?{ID}|n?in:{ID}(,{ID}){{0,99}})$"),
        ),
    }
}

fn one_of(words: &[&str]) -> String {
    match words {
        [] => String::new(),
        [one] => (*one).to_owned(),
        [all @ .., last] => format!("{} or {last}", all.join(", ")),
    }
}

/// Which orders there are, in words and as a pattern.
fn sorting(listing: &Listing) -> (String, String) {
    let names: Vec<&str> = listing.sort_keys.iter().map(|key| key.as_str()).collect();
    let order = listing.by_default;
    let direction = if order.descending { ":desc" } else { "" };
    let about = format!(
        "{} with commas between them, each once, with :asc or :desc or nothing; {}{direction} if absent.",
        one_of(&names),
        order.key.as_str()
    );
    (about, format!("^({})$", orders(&names)))
}

/// Every order in which each key is named at most once.
fn orders(keys: &[&str]) -> String {
    let from = |key: &&str| {
        let rest: Vec<&str> = keys.iter().copied().filter(|other| other != key).collect();
        let more = if rest.is_empty() {
            String::new()
        } else {
            format!("(,({}))?", orders(&rest))
        };
        format!("{key}(:(asc|desc))?{more}")
    };
    keys.iter().map(from).collect::<Vec<_>>().join("|")
}
