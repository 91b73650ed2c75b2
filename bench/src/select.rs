//! Selection of rows by name.

/// Returns the row of this name.
///
/// # Errors
/// There is none; the error lists the existing names.
pub(crate) fn find<'a, T>(
    name: &str,
    rows: &'a [T],
    name_of: impl Fn(&'a T) -> &'a str,
) -> Result<&'a T, String> {
    let row = rows.iter().find(|row| name_of(row) == name);
    row.ok_or_else(|| {
        let known: Vec<&str> = rows.iter().map(name_of).collect();
        let known = known.join(", ");
        format!("unknown name '{name}': expected one of {known}")
    })
}

/// Returns the rows of these names, in that order; all of them if `names` is empty.
///
/// # Errors
/// Those of [`find`].
pub(crate) fn select<'a, T>(
    names: &[String],
    rows: &'a [T],
    name_of: impl Fn(&'a T) -> &'a str,
) -> Result<Vec<&'a T>, String> {
    match names {
        [] => Ok(rows.iter().collect()),
        names => names
            .iter()
            .map(|name| find(name, rows, &name_of))
            .collect(),
    }
}
