//! Personal data in texts and fields.
