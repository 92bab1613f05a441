//! Which crate may depend on which.

/// A crate of the workspace. Its name is `ringfence-<name>`, except that of `xtask`.
pub struct Room {
    /// The end of the crate's name.
    pub name: &'static str,
    /// The rooms that its code may depend on.
    pub may_use: &'static [&'static [&'static str]],
    /// The room's height. Its tests may depend on any room that is no higher.
    pub height: u8,
}

const fn room(height: u8, name: &'static str, may_use: &'static [&'static [&'static str]]) -> Room {
    Room {
        name,
        may_use,
        height,
    }
}

const PRODUCT: &[&str] = &[
    "core",
    "db",
    "bus",
    "backends",
    "engine",
    "api",
    "dashboard",
    "operator",
    "workers",
    "scheduler-hook",
    "simulators",
    "simulation",
];
const AROUND: &[&str] = &["cli", "lab"];

/// All rooms, the lowest first.
pub const ROOMS: &[Room] = &[
    room(0, "core", &[]),
    room(0, "guest", &[]),
    room(0, "lab", &[&["guest"]]),
    room(0, "world", &[&["core"]]),
    room(0, "dashboard", &[]),
    room(1, "db", &[&["core"]]),
    room(1, "bus", &[&["core"]]),
    room(1, "backends", &[&["core"]]),
    room(1, "simulators", &[&["core"]]),
    room(1, "modelcheck", &[&["core", "world"]]),
    room(2, "engine", &[&["core", "db", "bus", "backends"]]),
    room(2, "workers", &[&["core", "bus", "backends"]]),
    room(2, "scheduler-hook", &[&["core", "db"]]),
    room(
        3,
        "api",
        &[&["core", "engine", "db", "scheduler-hook", "dashboard"]],
    ),
    room(
        3,
        "operator",
        &[&["core", "engine", "db", "backends", "scheduler-hook"]],
    ),
    room(3, "simulation", &[&["core", "engine", "db", "bus"]]),
    room(4, "cli", &[PRODUCT]),
    room(5, "tests", &[PRODUCT, AROUND]),
    room(5, "xtask", &[PRODUCT, AROUND]),
    // They run the product as the tests do.
    room(6, "bench", &[PRODUCT, AROUND, &["tests"]]),
    room(6, "campaign", &[PRODUCT, AROUND, &["tests"]]),
];

/// Libraries that only some rooms may use, which give other rooms an interface without them.
pub const KEPT_TO: &[(&str, &[&str])] = &[
    ("rusqlite", &["db"]),
    ("sqlx", &["db", "tests", "bench", "campaign"]),
    ("lapin", &["bus", "tests", "bench", "campaign"]),
    ("openstack", &["backends"]),
    ("osauth", &["backends"]),
];

/// All libraries that the rules may use: nothing with I/O, a clock or randomness.
pub const CORE_LIBRARIES: &[&str] = &["chrono", "serde", "serde_json", "strum", "thiserror", "uuid"];

/// The room with this crate name.
pub fn by_crate(crate_name: &str) -> Option<&'static Room> {
    let name = crate_name.strip_prefix("ringfence-").unwrap_or(crate_name);
    let room = ROOMS.iter().find(|room| room.name == name)?;
    let is_prefixed = crate_name.len() != name.len();
    (is_prefixed != (name == "xtask")).then_some(room)
}
