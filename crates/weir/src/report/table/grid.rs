//! Text in columns.

/// Rows of cells under two lines of heading: the name of each column and its unit. An empty cell is shown as
/// `-`. A column is left out if all its cells are empty.
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
    /// Flag: the column stays in a block with the column before it.
    joined: bool,
}

impl Column {
    /// Creates a column of words, aligned to the left.
    pub fn words(name: impl Into<String>) -> Column {
        Column { name: name.into(), unit: "", left: true, joined: false }
    }
    /// Creates a column of numbers, aligned to the right.
    pub fn numbers(name: impl Into<String>, unit: &'static str) -> Column {
        Column { name: name.into(), unit, left: false, joined: false }
    }
    /// Joins the column to the one before it, without which it has no meaning.
    #[must_use]
    pub fn joined(self) -> Column {
        Column { joined: true, ..self }
    }
}

impl Grid {
    /// Creates a grid with these columns and no rows.
    pub fn new(columns: Vec<Column>) -> Grid {
        Grid { columns, rows: Vec::new() }
    }

    /// Adds a row, a cell for each column.
    pub fn row(&mut self, cells: Vec<String>) {
        debug_assert_eq!(cells.len(), self.columns.len());
        self.rows.push(cells);
    }

    /// Returns the lines of heading and the rows; both are empty if there are no rows.
    pub fn lines(&self) -> (Vec<String>, Vec<String>) {
        self.block(&self.shown())
    }

    /// Returns the grid in blocks one below the other. Each begins with the first column. No block is wider
    /// than `width`, unless joined columns need more.
    pub fn blocks(&self, width: usize) -> Vec<(Vec<String>, Vec<String>)> {
        let shown = self.shown();
        let Some((&key, rest)) = shown.split_first() else { return Vec::new() };
        let wide = |columns: &[usize]| columns.iter().map(|&i| self.width(i) + 2).sum::<usize>();
        let mut blocks: Vec<Vec<usize>> = vec![vec![key]];
        for part in rest.chunk_by(|_, &next| self.columns[next].joined) {
            let last = blocks.last_mut().filter(|b| b.len() == 1 || wide(b) + wide(part) <= width + 2);
            match last {
                Some(block) => block.extend(part),
                None => blocks.push(std::iter::once(key).chain(part.iter().copied()).collect()),
            }
        }
        blocks.iter().map(|columns| self.block(columns)).collect()
    }

    /// Returns the columns with any content.
    fn shown(&self) -> Vec<usize> {
        (0..self.columns.len()).filter(|&i| self.rows.iter().any(|r| !r[i].is_empty())).collect()
    }

    fn width(&self, i: usize) -> usize {
        let cells = self.rows.iter().map(|r| r[i].as_str());
        let heads = [self.columns[i].name.as_str(), self.columns[i].unit];
        cells.chain(heads).map(|text| text.chars().count()).max().unwrap_or(0)
    }

    /// Formats some columns: the lines of heading, then the rows.
    fn block(&self, shown: &[usize]) -> (Vec<String>, Vec<String>) {
        let dashed = |cell: &str| if cell.is_empty() { "-".to_string() } else { cell.to_string() };
        let widths: Vec<usize> = shown.iter().map(|&i| self.width(i)).collect();
        let line = |cell: &dyn Fn(usize) -> String| {
            let padded = shown.iter().zip(&widths).map(|(&i, width)| match self.columns[i].left {
                true => format!("{:<1$}", cell(i), width),
                false => format!("{:>1$}", cell(i), width),
            });
            padded.collect::<Vec<_>>().join("  ").trim_end().to_string()
        };
        let mut heads = Vec::new();
        if !shown.is_empty() {
            heads.push(line(&|i| self.columns[i].name.clone()));
            heads.extend(Some(line(&|i| self.columns[i].unit.to_string())).filter(|l| !l.is_empty()));
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
    fn what_is_too_wide_goes_on_below() {
        let pair =
            |name: &str| [Column::numbers(format!("{name} a"), "s"), Column::numbers("b", "s").joined()];
        let mut g = Grid::new([vec![Column::words("flow")], pair("one").into(), pair("two").into()].concat());
        g.row(["up.0", "1", "2", "3", "4"].map(String::from).to_vec());
        let wide = g.blocks(24);
        assert_eq!(wide, [g.lines()]);
        assert_eq!(wide[0].0[0].chars().count(), 24);
        let narrow = g.blocks(23);
        assert_eq!(narrow.len(), 2);
        assert_eq!(narrow[1].0, ["flow  two a  b", "          s  s"]);
        assert_eq!(narrow[1].1, ["up.0      3  4"]);
        // Joined columns stay together at any width.
        assert_eq!(g.blocks(1).len(), 2);
    }

    #[test]
    fn without_rows_nothing() {
        let empty = Grid::new(vec![Column::words("flow")]);
        assert_eq!((empty.lines(), empty.blocks(100)), ((vec![], vec![]), vec![]));
    }
}
