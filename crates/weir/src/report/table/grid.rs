//! Text in columns.

/// Rows of cells under two lines of heading: the name of each column and its unit. An empty cell is
/// shown as `-`, a column of which all cells are empty is left out.
pub(super) struct Grid {
    columns: Vec<Column>,
    rows: Vec<Vec<String>>,
}

/// Heading of a column.
#[derive(Clone)]
pub(super) struct Column {
    name: String,
    unit: &'static str,
    left: bool,
}

impl Column {
    /// Of words, aligned to the left.
    pub fn words(name: impl Into<String>) -> Column {
        Column { name: name.into(), unit: "", left: true }
    }
    /// Of numbers, aligned to the right.
    pub fn numbers(name: impl Into<String>, unit: &'static str) -> Column {
        Column { name: name.into(), unit, left: false }
    }
}

impl Grid {
    /// With these columns and no rows.
    pub fn new(columns: Vec<Column>) -> Grid {
        Grid { columns, rows: Vec::new() }
    }

    /// Adds a row, a cell for each column.
    pub fn row(&mut self, cells: Vec<String>) {
        debug_assert_eq!(cells.len(), self.columns.len());
        self.rows.push(cells);
    }

    /// The lines of heading, then the rows; nothing at all if there are no rows.
    pub fn lines(&self) -> (Vec<String>, Vec<String>) {
        let used = |i: &usize| self.rows.iter().any(|r| !r[*i].is_empty());
        let shown: Vec<usize> = (0..self.columns.len()).filter(used).collect();
        let dashed = |cell: &str| if cell.is_empty() { "-".to_string() } else { cell.to_string() };
        let name = |i: usize| self.columns[i].name.clone();
        let unit = |i: usize| self.columns[i].unit.to_string();
        let width = |i: usize| {
            let cells = self.rows.iter().map(|r| r[i].chars().count());
            let heads = [self.columns[i].name.as_str(), self.columns[i].unit];
            cells.chain(heads.map(|h| h.chars().count())).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..self.columns.len()).map(width).collect();
        let line = |cell: &dyn Fn(usize) -> String| {
            let padded = shown.iter().map(|&i| match self.columns[i].left {
                true => format!("{:<1$}", cell(i), widths[i]),
                false => format!("{:>1$}", cell(i), widths[i]),
            });
            padded.collect::<Vec<_>>().join("  ").trim_end().to_string()
        };
        let mut heads = Vec::new();
        if !shown.is_empty() {
            heads.push(line(&name));
            heads.extend(Some(line(&unit)).filter(|l| !l.is_empty()));
        }
        (heads, self.rows.iter().map(|r| line(&|i| dashed(&r[i]))).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_what_is_in_them() {
        let mut g = Grid::new(vec![
            Column::words("flow"),
            Column::numbers("goodput", "Mbit/s"),
            Column::numbers("fct", "s"),
            Column::numbers("n", ""),
        ]);
        g.row(["bulk.10", "5.0", "", "1234"].map(String::from).to_vec());
        g.row(["a", "", "", "7"].map(String::from).to_vec());
        let (heads, rows) = g.lines();
        assert_eq!(heads, ["flow     goodput     n", "          Mbit/s"]);
        assert_eq!(rows, ["bulk.10      5.0  1234", "a              -     7"]);
    }

    #[test]
    fn without_rows_nothing() {
        assert_eq!(Grid::new(vec![Column::words("flow")]).lines(), (vec![], vec![]));
    }
}
