//! What the API shows, as far as the tables need it.
