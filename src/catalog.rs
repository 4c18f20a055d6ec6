//! Catalog
pub mod schema;
