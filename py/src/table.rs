//! Tables by columns, exported by Arrow's C stream interface.

use crate::fault::RunError;
use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::{
    ArrayRef, BooleanArray, Float64Array, RecordBatch, RecordBatchIterator, StringArray, UInt64Array,
};
use arrow_schema::{DataType, Field, Schema};
use pyo3::exceptions::PyKeyError;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyList};
use std::collections::HashMap;
use std::sync::Arc;

/// Values of a column.
pub enum Values {
    /// Texts.
    Text(Vec<Option<String>>),
    /// Numbers; `None` where there is no value.
    Number(Vec<Option<f64>>),
    /// Whole numbers.
    Count(Vec<u64>),
    /// Yes or no.
    Flag(Vec<Option<bool>>),
}

impl Values {
    fn len(&self) -> usize {
        match self {
            Values::Text(values) => values.len(),
            Values::Number(values) => values.len(),
            Values::Count(values) => values.len(),
            Values::Flag(values) => values.len(),
        }
    }

    fn array(&self) -> (DataType, ArrayRef) {
        match self {
            Values::Text(values) => (DataType::Utf8, Arc::new(StringArray::from(values.clone()))),
            Values::Number(values) => (DataType::Float64, Arc::new(Float64Array::from(values.clone()))),
            Values::Count(values) => (DataType::UInt64, Arc::new(UInt64Array::from(values.clone()))),
            Values::Flag(values) => (DataType::Boolean, Arc::new(BooleanArray::from(values.clone()))),
        }
    }
}

/// Column of a table.
pub struct Column {
    /// Name, with the unit at its end where there is one.
    pub name: String,
    /// Description; empty for none.
    pub about: &'static str,
    /// Values.
    pub values: Values,
}

impl Column {
    /// Creates a column.
    pub fn new(name: impl Into<String>, about: &'static str, values: Values) -> Column {
        Column { name: name.into(), about, values }
    }
}

/// Table of results. Anything that takes Arrow's C stream interface reads it without a copy by Python:
/// `pyarrow.table(t)`, `polars.from_arrow(t)`, `pandas.DataFrame.from_arrow(t)`, and DuckDB by its name.
#[pyclass(frozen, module = "weir")]
pub struct Table {
    columns: Vec<Column>,
}

impl Table {
    /// Creates a table of columns of the same length.
    pub fn new(columns: Vec<Column>) -> Table {
        Table { columns }
    }

    fn rows(&self) -> usize {
        self.columns.first().map_or(0, |column| column.values.len())
    }

    fn batch(&self) -> Result<RecordBatch, arrow_schema::ArrowError> {
        let (mut fields, mut arrays) = (Vec::new(), Vec::new());
        for column in &self.columns {
            let (kind, array) = column.values.array();
            let about = match column.about {
                "" => HashMap::new(),
                about => HashMap::from([("description".to_string(), about.to_string())]),
            };
            fields.push(Field::new(&column.name, kind, true).with_metadata(about));
            arrays.push(array);
        }
        RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays)
    }
}

#[pymethods]
impl Table {
    /// Names of the columns.
    #[getter]
    fn columns(&self) -> Vec<&str> {
        self.columns.iter().map(|column| column.name.as_str()).collect()
    }

    /// Descriptions of the columns that have one, by name.
    #[getter]
    fn about(&self) -> HashMap<&str, &str> {
        self.columns.iter().filter(|c| !c.about.is_empty()).map(|c| (c.name.as_str(), c.about)).collect()
    }

    fn __len__(&self) -> usize {
        self.rows()
    }

    fn __repr__(&self) -> String {
        format!("<weir.Table of {} rows: {}>", self.rows(), self.columns().join(", "))
    }

    /// Values of a column, with None where there is no value.
    fn __getitem__<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyList>> {
        let Some(column) = self.columns.iter().find(|column| column.name == name) else {
            let message = format!("{name}: the columns are {}", self.columns().join(", "));
            return Err(PyKeyError::new_err(message));
        };
        match &column.values {
            Values::Text(values) => PyList::new(py, values),
            Values::Number(values) => PyList::new(py, values),
            Values::Count(values) => PyList::new(py, values),
            Values::Flag(values) => PyList::new(py, values),
        }
    }

    /// Arrow's C stream interface
    /// (<https://arrow.apache.org/docs/format/CDataInterface/PyCapsuleInterface.html>).
    /// The types of the columns are fixed, so `requested_schema` changes nothing, which the interface allows.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        let _ = requested_schema;
        let batch = self.batch().map_err(|error| RunError::new_err(error.to_string()))?;
        let schema = batch.schema();
        let stream = FFI_ArrowArrayStream::new(Box::new(RecordBatchIterator::new([Ok(batch)], schema)));
        PyCapsule::new_with_value(py, stream, c"arrow_array_stream")
    }
}
