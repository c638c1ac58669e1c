#include "gradflow/ops/parsing/feature_columns.h"

#include <algorithm>
#include <limits>
#include <string>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/inlined_vector.h"
#include "absl/strings/str_cat.h"
#include "gradflow/core/shape_checks.h"
#include "gradflow/core/status.h"
#include "gradflow/core/stop_token.h"
#include "gradflow/ops/common/first_error.h"
#include "gradflow/ops/common/indices.h"
#include "gradflow/ops/common/row_splits.h"
#include "gradflow/ops/parsing/example_reader.h"

namespace gradflow {
namespace {

// The list of a column in an example.
struct Record {
  int64_t begin;
  int64_t size;
  // The number of values; -1 if the example has no list.
  int64_t count;
};
constexpr int64_t kRecordSize = sizeof(Record) / sizeof(int64_t);

// Parses the examples of one call.
class Parser {
 public:
  // `names` may be null.
  Parser(KernelContext* ctx, const Tensor& serialized, const Tensor* names,
         std::vector<FeatureColumn> columns)
      : ctx_(*ctx),
        serialized_(serialized.span<tstring>()),
        is_batch_(serialized.dims() == 1),
        names_(names != nullptr && names->NumElements() > 0 ? names->span<tstring>()
                                                            : absl::Span<const tstring>()),
        columns_(std::move(columns)) {
    for (size_t c = 0; c < columns_.size(); ++c) {
      columns_of_key_[columns_[c].key].push_back(static_cast<int>(c));
      sparse_ += columns_[c].kind == FeatureKind::kSparse ? 1 : 0;
      dense_ += columns_[c].kind == FeatureKind::kDense ? 1 : 0;
      ragged_ += columns_[c].kind == FeatureKind::kRagged ? 1 : 0;
    }
  }

  absl::Status Run() {
    GRADFLOW_RETURN_IF_ERROR(FindLists());
    int next[3] = {};
    for (size_t c = 0; c < columns_.size(); ++c) {
      const int k = next[static_cast<int>(columns_[c].kind)]++;
      switch (columns_[c].kind) {
        case FeatureKind::kSparse:
          GRADFLOW_RETURN_IF_ERROR(MakeSparse(c, k));
          break;
        case FeatureKind::kDense:
          GRADFLOW_RETURN_IF_ERROR(MakeDense(c, 3 * sparse_ + k));
          break;
        case FeatureKind::kRagged:
          GRADFLOW_RETURN_IF_ERROR(MakeRagged(c, 3 * sparse_ + dense_ + k));
          break;
      }
    }
    return absl::OkStatus();
  }

 private:
  int64_t num_examples() const { return static_cast<int64_t>(serialized_.size()); }
  Record& record(int64_t example, size_t column) {
    return reinterpret_cast<Record*>(
        records_.raw_data())[example * static_cast<int64_t>(columns_.size()) +
                             static_cast<int64_t>(column)];
  }
  absl::string_view List(int64_t example, const Record& r) const {
    return absl::string_view(serialized_[example]).substr(r.begin, r.size);
  }
  std::string Place(int64_t i) const { return ExamplePlace(i, is_batch_, names_); }

  // Finds the lists of all columns and counts their values.
  absl::Status FindLists() {
    const auto columns = static_cast<int64_t>(columns_.size());
    GRADFLOW_ASSIGN_OR_RETURN(const TensorShape shape,
                              TensorShape::Make({num_examples(), columns, kRecordSize}));
    GRADFLOW_RETURN_IF_ERROR(ctx_.AllocateTemp(DT_INT64, shape, &records_));
    FirstError error;
    double bytes = 0;
    for (int64_t i = 0; i < num_examples(); i += num_examples() / 16 + 1) {
      bytes = std::max(bytes, static_cast<double>(serialized_[i].size()));
    }
    block_ = BlockSizeForCost(100 + 2 * bytes + 20 * static_cast<double>(columns));
    ParallelFor(ctx_, num_examples(), block_, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        if (absl::Status status = FindListsOf(i); !status.ok()) {
          return error.Found(i, std::move(status));
        }
      }
    });
    if (ctx_.ShouldStop()) return StoppedError();
    return error.status();
  }

  absl::Status FindListsOf(int64_t i) {
    for (size_t c = 0; c < columns_.size(); ++c) record(i, c) = {0, 0, -1};
    const absl::string_view example = serialized_[i];
    absl::Status status;
    const bool valid =
        ForEachFeature(example, [&](absl::string_view key, absl::string_view feature) {
          const auto found = columns_of_key_.find(key);
          if (found == columns_of_key_.end()) return true;
          DataType dtype = DT_INVALID;
          absl::string_view list;
          if (!FindList(feature, &dtype, &list)) return false;
          const int64_t count = dtype == DT_INVALID ? -1 : CountValues(list, dtype);
          if (dtype != DT_INVALID && count < 0) return false;
          for (const int c : found->second) {
            if (dtype != DT_INVALID && dtype != columns_[c].dtype) {
              status = errors::InvalidArgument(
                  "feature '", errors::Printable(key), "' of ", Place(i), " must have type ",
                  DataTypeString(columns_[c].dtype), ", but has ", DataTypeString(dtype));
              return false;
            }
            record(i, c) = {count < 0 ? 0 : list.data() - example.data(),
                            static_cast<int64_t>(count < 0 ? 0 : list.size()), count};
          }
          return true;
        });
    GRADFLOW_RETURN_IF_ERROR(status);
    if (!valid) {
      return errors::InvalidArgument(Place(i), " is not a serialized tf.Example");
    }
    for (size_t c = 0; c < columns_.size(); ++c) {
      if (columns_[c].kind == FeatureKind::kDense) GRADFLOW_RETURN_IF_ERROR(CheckDense(i, c));
    }
    return absl::OkStatus();
  }

  absl::Status CheckDense(int64_t i, size_t c) {
    const FeatureColumn& column = columns_[c];
    const int64_t count = record(i, c).count;
    if (column.is_variable) {
      if (count <= 0 || (column.elements > 0 && count % column.elements == 0)) {
        return absl::OkStatus();
      }
      return errors::InvalidArgument("feature '", errors::Printable(column.key), "' of ", Place(i),
                                     " has ", count, " values, expected a multiple of ",
                                     column.elements);
    }
    if (count == column.elements) return absl::OkStatus();
    if (count < 0) {
      if (column.default_value->NumElements() > 0) return absl::OkStatus();
      return errors::InvalidArgument("feature '", errors::Printable(column.key),
                                     "' is required, but ", Place(i), " lacks it");
    }
    return errors::InvalidArgument("feature '", errors::Printable(column.key), "' of ", Place(i),
                                   " has ", count, " values, expected ", column.elements,
                                   " for shape ", column.shape.DebugString());
  }

  // The number of values of all examples, the largest number, and the characters of strings.
  struct Totals {
    int64_t values = 0;
    int64_t most = 0;
    double bytes = 0;
    int64_t missing = 0;
  };
  // Also stores the number of values before each example in *first.
  absl::Status Sum(size_t c, Totals* totals, Tensor* first) {
    GRADFLOW_RETURN_IF_ERROR(ctx_.AllocateTemp(DT_INT64, {num_examples()}, first));
    for (int64_t i = 0; i < num_examples(); ++i) {
      const Record& r = record(i, c);
      first->span<int64_t>()[i] = totals->values;
      totals->values += std::max<int64_t>(r.count, 0);
      totals->most = std::max(totals->most, r.count);
      totals->bytes += static_cast<double>(r.size);
      totals->missing += r.count < 0 ? 1 : 0;
    }
    return absl::OkStatus();
  }

  absl::Status MakeSparse(size_t c, int k) {
    Totals totals;
    Tensor first;
    GRADFLOW_RETURN_IF_ERROR(Sum(c, &totals, &first));
    Tensor* indices = nullptr;
    Tensor* values = nullptr;
    Tensor* shape = nullptr;
    const int64_t rank = is_batch_ ? 2 : 1;
    GRADFLOW_RETURN_IF_ERROR(ctx_.AllocateOutput(k, {totals.values, rank}, &indices));
    ctx_.ExpectStringBytes(totals.bytes);
    GRADFLOW_RETURN_IF_ERROR(ctx_.AllocateOutput(sparse_ + k, {totals.values}, &values));
    GRADFLOW_RETURN_IF_ERROR(ctx_.AllocateOutput(2 * sparse_ + k, {rank}, &shape));
    if (is_batch_) shape->span<int64_t>()[0] = num_examples();
    shape->span<int64_t>()[rank - 1] = totals.most;
    const auto index = indices->span<int64_t>();
    ParallelFor(ctx_, num_examples(), block_, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const Record& r = record(i, c);
        if (r.count <= 0) continue;
        const int64_t at = first.span<int64_t>()[i];
        WriteValues(List(i, r), values, at);
        for (int64_t v = 0; v < r.count; ++v) {
          if (is_batch_) index[(at + v) * 2] = i;
          index[(at + v + 1) * rank - 1] = v;
        }
      }
    });
    return absl::OkStatus();
  }

  absl::Status MakeRagged(size_t c, int k) {
    Totals totals;
    Tensor first;
    GRADFLOW_RETURN_IF_ERROR(Sum(c, &totals, &first));
    Tensor* values = nullptr;
    Tensor* splits = nullptr;
    ctx_.ExpectStringBytes(totals.bytes);
    GRADFLOW_RETURN_IF_ERROR(ctx_.AllocateOutput(k, {totals.values}, &values));
    GRADFLOW_RETURN_IF_ERROR(
        ctx_.AllocateOutput(ragged_ + k, {is_batch_ ? num_examples() + 1 : 0}, &splits));
    if (splits->dtype() == DT_INT32 && totals.values > std::numeric_limits<int32_t>::max()) {
      return errors::InvalidArgument("the splits of feature '", errors::Printable(columns_[c].key),
                                     "' exceed int32");
    }
    if (is_batch_) WriteIndex(splits, num_examples(), totals.values);
    ParallelFor(ctx_, num_examples(), block_, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const Record& r = record(i, c);
        const int64_t at = first.span<int64_t>()[i];
        if (is_batch_) WriteIndex(splits, i, at);
        if (r.count > 0) WriteValues(List(i, r), values, at);
      }
    });
    return absl::OkStatus();
  }

  absl::Status MakeDense(size_t c, int k) {
    const FeatureColumn& column = columns_[c];
    Totals totals;
    Tensor first;
    GRADFLOW_RETURN_IF_ERROR(Sum(c, &totals, &first));
    TensorShape shape;
    if (is_batch_) shape.AddDim(num_examples());
    int64_t row = column.elements;
    for (int d = 0; d < column.shape.dims(); ++d) {
      const bool is_variable = column.is_variable && d == 0;
      const int64_t size = !is_variable           ? column.shape.dim_size(d)
                           : column.elements == 0 ? 0
                                                  : totals.most / column.elements;
      if (is_variable) row = column.elements * size;
      GRADFLOW_RETURN_IF_ERROR(shape.AddDimWithStatus(size));
    }
    const Tensor& pad = *column.default_value;
    double bytes = totals.bytes;
    if (column.dtype == DT_STRING && pad.NumElements() > 0) {
      const auto size = static_cast<double>(pad.StringBytes());
      bytes += column.is_variable ? size * (static_cast<double>(shape.num_elements()) -
                                            static_cast<double>(totals.values))
                                  : size * static_cast<double>(totals.missing);
    }
    ctx_.ExpectStringBytes(bytes);
    Tensor* output = nullptr;
    GRADFLOW_RETURN_IF_ERROR(ctx_.AllocateOutput(k, shape, &output));
    DispatchType(FeatureTypes(), column.dtype, [&](auto tag) {
      using T = typename decltype(tag)::type;
      ParallelFor(ctx_, num_examples(), block_, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
          const Record& r = record(i, c);
          const auto out = output->span<T>().subspan(i * row, row);
          if (r.count > 0) WriteValues(List(i, r), output, i * row);
          if (column.is_variable) {
            std::fill(out.begin() + std::max<int64_t>(r.count, 0), out.end(), pad.span<T>()[0]);
          } else if (r.count < 0) {
            std::copy(pad.span<T>().begin(), pad.span<T>().end(), out.begin());
          }
        }
      });
    });
    return absl::OkStatus();
  }

  KernelContext& ctx_;
  const absl::Span<const tstring> serialized_;
  const bool is_batch_;
  const absl::Span<const tstring> names_;
  const std::vector<FeatureColumn> columns_;
  absl::flat_hash_map<absl::string_view, absl::InlinedVector<int, 2>> columns_of_key_;
  int sparse_ = 0;
  int dense_ = 0;
  int ragged_ = 0;
  int64_t block_ = 1;
  // [examples, columns, kRecordSize]
  Tensor records_;
};

}  // namespace

absl::Status SetShape(const PartialTensorShape& shape, FeatureColumn* column) {
  column->shape = shape;
  column->is_variable = shape.dims() > 0 && shape.dim_size(0) < 0;
  DimVector dims(shape.dim_sizes().begin(), shape.dim_sizes().end());
  if (column->is_variable) dims[0] = 1;
  GRADFLOW_ASSIGN_OR_RETURN(const TensorShape row, TensorShape::Make(dims));
  column->elements = row.num_elements();
  return absl::OkStatus();
}

absl::Status CheckDefault(absl::string_view name, const FeatureColumn& column, int k) {
  const Tensor& value = *column.default_value;
  if (value.dtype() != column.dtype) {
    return errors::InvalidArgument(name, "[", k, "] must have type ", DataTypeString(column.dtype),
                                   ", but has ", DataTypeString(value.dtype()));
  }
  if (column.is_variable) {
    if (value.NumElements() == 1) return absl::OkStatus();
    return errors::InvalidArgument(
        name, "[", k, "] must have one element, which fills up values of shape ",
        column.shape.DebugString(), ", but has shape ", value.shape().DebugString());
  }
  if (value.NumElements() == 0 || column.shape.IsCompatibleWith(value.shape())) {
    return absl::OkStatus();
  }
  return errors::InvalidArgument(name, "[", k, "] must be empty or have shape ",
                                 column.shape.DebugString(), ", but has shape ",
                                 value.shape().DebugString());
}

absl::Status ParseFeatures(KernelContext& ctx, const Tensor& serialized, const Tensor* names,
                           std::vector<FeatureColumn> columns) {
  return Parser(&ctx, serialized, names, std::move(columns)).Run();
}

absl::Status BatchShape(const ShapeContext& c, bool is_single, bool allows_scalar,
                        PartialTensorShape* batch) {
  *batch = c.input(0);
  if (is_single) {
    *batch = TensorShape();
    return c.CheckRank(0, 0);
  }
  if (!allows_scalar) {
    if (batch->unknown_rank()) *batch = PartialTensorShape({-1});
    return c.CheckRank(0, 1);
  }
  return CheckRankAtMost(c, 0, 1);
}

absl::StatusOr<int64_t> NumSplits(const PartialTensorShape& batch) {
  if (batch.unknown_rank()) return -1;
  return batch.dims() == 0 ? 0 : NumRowSplits(batch.dim_size(0));
}

std::string ExamplePlace(int64_t i, bool is_batch, absl::Span<const tstring> names) {
  std::string place = is_batch ? absl::StrCat("example ", i) : "the example";
  if (!names.empty()) absl::StrAppend(&place, " ('", errors::Printable(names[i]), "')");
  return place;
}

}  // namespace gradflow
