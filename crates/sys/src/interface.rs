//! Network interfaces by name and by index.
