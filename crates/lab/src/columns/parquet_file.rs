//! A table as a Parquet file, column by column: the writer of whole Arrow tables links code for every type of Arrow, and tables
//! here have five.

use std::io::{self, Write};
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, Int64Type, UInt64Type};
use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_schema::{DataType, Field};
use parquet::basic::{Compression, LogicalType, Repetition, Type as Physical};
use parquet::data_type::{self as kinds, ByteArray};
use parquet::errors::Result;
use parquet::file::properties::{DEFAULT_MAX_ROW_GROUP_ROW_COUNT, WriterProperties};
use parquet::file::writer::{SerializedColumnWriter, SerializedFileWriter};
use parquet::schema::types::Type;

/// Writes `table` as Parquet, compressed with Snappy.
pub fn write_parquet(table: &RecordBatch, out: impl Write + Send) -> io::Result<()> {
    write(table, out).map_err(io::Error::other)
}

fn write(table: &RecordBatch, out: impl Write + Send) -> Result<()> {
    let fields = table.schema_ref().fields().iter().map(|field| schema(field).map(Arc::new));
    let schema = Type::group_type_builder("schema").with_fields(fields.collect::<Result<_>>()?).build()?;
    let properties = WriterProperties::builder().set_compression(Compression::SNAPPY).build();
    let mut file = SerializedFileWriter::new(out, Arc::new(schema), Arc::new(properties))?;
    for first in (0..table.num_rows()).step_by(DEFAULT_MAX_ROW_GROUP_ROW_COUNT) {
        let rows = table.slice(first, DEFAULT_MAX_ROW_GROUP_ROW_COUNT.min(table.num_rows() - first));
        let mut group = file.next_row_group()?;
        for column in rows.columns() {
            let mut out = group.next_column()?.expect("the schema has a column for each of the table");
            put_column(&mut out, column)?;
            out.close()?;
        }
        group.close()?;
    }
    file.close().map(drop)
}

fn schema(field: &Field) -> Result<Type> {
    let (physical, logical) = match field.data_type() {
        DataType::Utf8 => (Physical::BYTE_ARRAY, Some(LogicalType::String)),
        DataType::UInt64 => (Physical::INT64, Some(LogicalType::integer(64, false))),
        DataType::Int64 => (Physical::INT64, None),
        DataType::Float64 => (Physical::DOUBLE, None),
        DataType::Boolean => (Physical::BOOLEAN, None),
        other => unreachable!("no column is of type {other}"),
    };
    let builder = Type::primitive_type_builder(field.name(), physical);
    builder.with_logical_type(logical).with_repetition(Repetition::OPTIONAL).build()
}

fn put_column(out: &mut SerializedColumnWriter<'_>, column: &ArrayRef) -> Result<()> {
    match column.data_type() {
        DataType::Utf8 => {
            put::<kinds::ByteArrayType>(out, column.as_string::<i32>().iter().map(|v| v.map(ByteArray::from)))
        }
        DataType::UInt64 => {
            let bits = column.as_primitive::<UInt64Type>().iter().map(|v| v.map(u64::cast_signed));
            put::<kinds::Int64Type>(out, bits)
        }
        DataType::Int64 => put::<kinds::Int64Type>(out, column.as_primitive::<Int64Type>().iter()),
        DataType::Float64 => put::<kinds::DoubleType>(out, column.as_primitive::<Float64Type>().iter()),
        DataType::Boolean => put::<kinds::BoolType>(out, column.as_boolean().iter()),
        other => unreachable!("no column is of type {other}"),
    }
}

/// Writes `values`, of which `None` is null.
fn put<T: kinds::DataType>(
    out: &mut SerializedColumnWriter<'_>,
    values: impl Iterator<Item = Option<T::T>>,
) -> Result<()> {
    let mut there = Vec::new();
    let mut present = Vec::new();
    for value in values {
        there.push(i16::from(value.is_some()));
        present.extend(value);
    }
    out.typed::<T>().write_batch(&present, Some(&there), None).map(drop)
}
