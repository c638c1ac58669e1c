// SparseCross, SparseCrossV2, SparseCrossHashed and RaggedCross: for each row, all combinations of
// a feature of each column. Columns are sparse, dense or ragged matrices of strings or integers.
#include <farmhash.h>
#include <highwayhash/sip_hash.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/strings/str_cat.h"
#include "gradflow/core/op_kernel.h"
#include "gradflow/core/registry.h"
#include "gradflow/core/shape_fns.h"
#include "gradflow/core/status.h"
#include "gradflow/core/stop_token.h"
#include "gradflow/ops/common/indices.h"
#include "gradflow/ops/ragged/ragged_splits.h"
#include "gradflow/ops/sparse/sparse_inputs.h"
#include "gradflow/proto/node_def.pb.h"

namespace gradflow::sparse_cross {
namespace {

// The characters of the longest int64.
constexpr double kMaxDigits = 20;
// Stands between joined features.
constexpr const char* kSeparator = "_X_";

absl::Status CrossShape(ShapeContext& c) {
  c.set_output(0, PartialTensorShape({-1, 2}));
  c.set_output(1, PartialTensorShape({-1}));
  c.set_output(2, TensorShape({2}));
  return absl::OkStatus();
}

struct Column {
  // The rows of a sparse column.
  SparseInput sparse;
  // The row splits of a ragged column.
  const Tensor* splits = nullptr;
  const Tensor* values = nullptr;
  // The number of features in each row of a dense column; -1 for other columns.
  int64_t width = -1;
  // The features of the row that is processed.
  int64_t begin = 0;
  int64_t end = 0;

  bool is_sparse() const { return width < 0 && splits == nullptr; }
  int64_t size() const { return end - begin; }
  int64_t RowOf(int64_t i) const { return sparse.indices[2 * i]; }
};

// The method that turns the features of a combination into a string or a hash.
struct Combination {
  // Strings with a separator, or hashes.
  bool is_string = false;
  std::string separator;
  uint64_t num_buckets = 0;
  // SparseCross starts with `hash_key`. SparseCrossHashed starts with the first feature.
  bool has_hash_key = false;
  uint64_t hash_key = 0;
  // SparseCrossHashed also hashes integers, and uses a key if `is_strong`.
  bool is_strong = false;
  highwayhash::HH_U64 key[2] = {};
};

uint64_t ShiftMix(uint64_t value) { return value ^ (value >> 47); }

// Combines two hashes, with TensorFlow's results.
uint64_t CombineHashes(uint64_t a, uint64_t b) {
  constexpr uint64_t kFactor = 0xc6a4a7935bd1e995;
  const uint64_t mixed = (a ^ kFactor ^ (ShiftMix(b * kFactor) * kFactor)) * kFactor;
  return ShiftMix(ShiftMix(mixed) * kFactor);
}

uint64_t HashBytes(const Combination& how, const char* data, size_t size) {
  return how.is_strong ? highwayhash::SipHash(how.key, data, size)
                       : ::util::Fingerprint64(data, size);
}

uint64_t HashFeature(const Combination& how, const Column& column, int64_t i) {
  if (column.values->dtype() == DT_STRING) {
    const tstring& string = column.values->span<tstring>()[i];
    return HashBytes(how, string.data(), string.size());
  }
  const int64_t value = column.values->span<int64_t>()[i];
  if (how.has_hash_key || (!column.is_sparse() && !how.is_strong)) {
    return static_cast<uint64_t>(value);
  }
  // TensorFlow hashes 4 of the 8 bytes.
  char bytes[4];
  for (int k = 0; k < 4; ++k) bytes[k] = static_cast<char>(static_cast<uint64_t>(value) >> (8 * k));
  return HashBytes(how, bytes, sizeof(bytes));
}

// Calls `fn` for each row where all columns have features. A shape may claim any number of rows, so
// only rows of the first column are visited if it is sparse.
template <typename Fn>
absl::Status ForEachRow(KernelContext& ctx, int64_t batch, std::vector<Column>* columns,
                        const Fn& fn) {
  if (columns->empty()) return absl::OkStatus();
  for (Column& column : *columns) {
    column.begin = 0;
    column.end = 0;
    if (column.width == 0) return absl::OkStatus();
  }
  Column& first = columns->front();
  for (int64_t row = 0; row < batch; ++row) {
    if ((row & 0xfff) == 0xfff && ctx.ShouldStop()) return StoppedError();
    if (first.is_sparse()) {
      if (first.end == first.sparse.size) return absl::OkStatus();
      row = first.RowOf(first.end);
    }
    bool has_features = true;
    for (Column& column : *columns) {
      if (column.is_sparse()) {
        column.begin = column.end;
        while (column.begin < column.sparse.size && column.RowOf(column.begin) < row) {
          ++column.begin;
        }
        column.end = column.begin;
        while (column.end < column.sparse.size && column.RowOf(column.end) == row) ++column.end;
      } else if (column.splits != nullptr) {
        const IndexReader splits(*column.splits);
        column.begin = splits[row];
        column.end = splits[row + 1];
      } else {
        column.begin = row * column.width;
        column.end = column.begin + column.width;
      }
      has_features = has_features && column.size() > 0;
    }
    if (has_features) GRADFLOW_RETURN_IF_ERROR(fn(row));
  }
  return absl::OkStatus();
}

// An upper bound of the characters of the combinations of a row.
double Characters(const Combination& how, const std::vector<Column>& columns, double count) {
  double all = count * static_cast<double>((columns.size() - 1) * how.separator.size());
  for (const Column& column : columns) {
    double own = kMaxDigits * static_cast<double>(column.size());
    if (column.values->dtype() == DT_STRING) {
      own = 0;
      for (int64_t i = column.begin; i < column.end; ++i) {
        own += static_cast<double>(column.values->span<tstring>()[i].size());
      }
    }
    all += count / static_cast<double>(column.size()) * own;
  }
  return all;
}

std::string Join(const Combination& how, const std::vector<Column>& columns,
                 absl::Span<const int64_t> choice) {
  std::string joined;
  for (size_t c = 0; c < columns.size(); ++c) {
    if (c > 0) joined += how.separator;
    const Tensor& values = *columns[c].values;
    if (values.dtype() == DT_STRING) {
      const tstring& string = values.span<tstring>()[choice[c]];
      joined.append(string.data(), string.size());
    } else {
      absl::StrAppend(&joined, values.span<int64_t>()[choice[c]]);
    }
  }
  return joined;
}

int64_t Hash(const Combination& how, const std::vector<Column>& columns,
             absl::Span<const int64_t> choice) {
  uint64_t hash = how.hash_key;
  for (size_t c = 0; c < columns.size(); ++c) {
    const uint64_t feature = HashFeature(how, columns[c], choice[c]);
    hash = c == 0 && !how.has_hash_key ? feature : CombineHashes(hash, feature);
  }
  return static_cast<int64_t>(hash % (how.num_buckets > 0
                                          ? how.num_buckets
                                          : uint64_t{std::numeric_limits<int64_t>::max()}));
}

// The numbers of combinations.
struct Counts {
  int64_t total = 0;
  // The largest number in a row.
  int64_t most = 0;
  // The characters of all combinations, if they are strings.
  double bytes = 0;
};

// Counts the combinations, and calls `on_row` with each row that has some, and their number.
template <typename OnRow>
absl::StatusOr<Counts> Count(KernelContext& ctx, const Combination& how, int64_t batch,
                             std::vector<Column>* columns, const OnRow& on_row) {
  Counts counts;
  GRADFLOW_RETURN_IF_ERROR(ForEachRow(ctx, batch, columns, [&](int64_t row) -> absl::Status {
    int64_t count = 1;
    for (const Column& column : *columns) {
      if (column.size() > (std::numeric_limits<int64_t>::max() - counts.total) / count) {
        return errors::InvalidArgument("there are more combinations than int64 holds");
      }
      count *= column.size();
    }
    counts.total += count;
    counts.most = std::max(counts.most, count);
    if (how.is_string) {
      counts.bytes += Characters(how, *columns, static_cast<double>(count));
    }
    on_row(row, count);
    return absl::OkStatus();
  }));
  return counts;
}

// Writes the combinations to `values`, in the order of the rows. Calls `on_value` with the position
// of each combination, its row, and its number in the row.
template <typename OnValue>
absl::Status Write(KernelContext& ctx, const Combination& how, int64_t batch,
                   std::vector<Column>* columns, Tensor* values, const OnValue& on_value) {
  int64_t next = 0;
  return ForEachRow(ctx, batch, columns, [&](int64_t row) -> absl::Status {
    absl::InlinedVector<int64_t, 8> choice;
    for (const Column& column : *columns) choice.push_back(column.begin);
    for (int64_t i = 0;; ++i, ++next) {
      if ((next & 0xfff) == 0xfff && ctx.ShouldStop()) return StoppedError();
      if (how.is_string) {
        values->span<tstring>()[next] = Join(how, *columns, choice);
      } else {
        values->span<int64_t>()[next] = Hash(how, *columns, choice);
      }
      on_value(next, row, i);
      // The last column changes first.
      size_t c = columns->size();
      while (c > 0 && ++choice[c - 1] == (*columns)[c - 1].end) {
        choice[c - 1] = (*columns)[c - 1].begin;
        --c;
      }
      if (c > 0) continue;
      ++next;
      return absl::OkStatus();
    }
  });
}

// Adds column `i` of `name`, which has `rows` rows. All columns have the rows of the first one.
absl::Status AddColumn(absl::string_view name, int i, int64_t rows, Column column,
                       std::vector<Column>* columns, int64_t* batch) {
  if (columns->empty()) *batch = rows;
  if (*batch != rows) {
    return errors::InvalidArgument("all inputs must have ", *batch, " rows, but ", name, "[", i,
                                   "] has ", rows);
  }
  for (int64_t k = 0; k < column.sparse.size; ++k) {
    const int64_t row = column.RowOf(k);
    if (row >= 0 && row < rows && (k == 0 || row >= column.RowOf(k - 1))) continue;
    return errors::InvalidArgument("the rows of indices[", i, "] must not decrease and must be in ",
                                   "[0, ", rows, "), but row ", k, " is ", row);
  }
  columns->push_back(std::move(column));
  return absl::OkStatus();
}

// Adds the sparse matrix `i` in these inputs.
absl::Status AddSparse(const KernelContext& ctx, int i, int indices, int values, int shape,
                       std::vector<Column>* columns, int64_t* batch) {
  Column column;
  GRADFLOW_ASSIGN_OR_RETURN(
      column.sparse, ReadSparse(ctx, absl::StrCat("input ", i, "'s "), SparseOrder::kUnchecked,
                                indices, values, shape));
  if (column.sparse.rank != 2) {
    return errors::InvalidArgument("shapes[", i, "] must have 2 elements, but has ",
                                   column.sparse.rank);
  }
  column.values = column.sparse.values;
  const int64_t rows = column.sparse.shape.dim_size(0);
  return AddColumn("shapes", i, rows, std::move(column), columns, batch);
}

// Adds the dense matrix `i`, which is input `input`.
absl::Status AddDense(const KernelContext& ctx, int i, int input, std::vector<Column>* columns,
                      int64_t* batch) {
  GRADFLOW_RETURN_IF_ERROR(ctx.CheckRank(input, absl::StrCat("dense_inputs[", i, "]"), 2));
  Column column;
  column.values = &ctx.input(input);
  column.width = column.values->dim_size(1);
  return AddColumn("dense_inputs", i, column.values->dim_size(0), std::move(column), columns,
                   batch);
}

class CrossKernel final : public OpKernel {
 public:
  absl::Status Init(const KernelConstruction& construction) {
    GRADFLOW_RETURN_IF_ERROR(construction.GetAttr("N", &num_sparse_));
    DataTypeVector types;
    GRADFLOW_RETURN_IF_ERROR(construction.GetAttr("sparse_types", &types));
    if (static_cast<int>(types.size()) != num_sparse_) {
      return errors::InvalidArgument("sparse_types must have N = ", num_sparse_,
                                     " elements, but has ", types.size());
    }
    DataTypeVector dense_types;
    GRADFLOW_RETURN_IF_ERROR(construction.GetAttr("dense_types", &dense_types));
    num_dense_ = static_cast<int>(dense_types.size());
    op_ = construction.def().op();
    how_.is_string = construction.output_type(1) == DT_STRING;
    if (op_ != "SparseCross") return absl::OkStatus();
    int64_t num_buckets = 0;
    int64_t hash_key = 0;
    DataType internal_type = DT_INVALID;
    GRADFLOW_RETURN_IF_ERROR(construction.GetAttr("num_buckets", &num_buckets));
    GRADFLOW_RETURN_IF_ERROR(construction.GetAttr("hash_key", &hash_key));
    GRADFLOW_RETURN_IF_ERROR(construction.GetAttr("internal_type", &internal_type));
    types.insert(types.end(), dense_types.begin(), dense_types.end());
    if (internal_type == DT_STRING && std::count(types.begin(), types.end(), DT_INT64) > 0) {
      return errors::InvalidArgument("all inputs must be strings if internal_type is string");
    }
    how_.separator = kSeparator;
    how_.num_buckets = static_cast<uint64_t>(num_buckets);
    how_.has_hash_key = true;
    how_.hash_key = static_cast<uint64_t>(hash_key);
    return absl::OkStatus();
  }

  absl::Status Compute(KernelContext& ctx) const override {
    Combination how = how_;
    GRADFLOW_RETURN_IF_ERROR(ReadOptions(ctx, &how));
    std::vector<Column> columns;
    int64_t batch = 0;
    GRADFLOW_RETURN_IF_ERROR(ReadColumns(ctx, &columns, &batch));
    GRADFLOW_ASSIGN_OR_RETURN(const Counts counts,
                              Count(ctx, how, batch, &columns, [](int64_t, int64_t) {}));
    Tensor* indices = nullptr;
    Tensor* values = nullptr;
    GRADFLOW_RETURN_IF_ERROR(
        AllocateSparse(ctx, 0, 1, counts.total, 2, counts.bytes, &indices, &values));
    const auto index = indices->span<int64_t>();
    GRADFLOW_RETURN_IF_ERROR(
        Write(ctx, how, batch, &columns, values, [&](int64_t next, int64_t row, int64_t i) {
          index[2 * next] = row;
          index[2 * next + 1] = i;
        }));
    return SetShapeOutput(ctx, 2, {batch, counts.most});
  }

 private:
  absl::Status ReadOptions(KernelContext& ctx, Combination* how) const {
    const int first = 3 * num_sparse_ + num_dense_;
    if (op_ == "SparseCrossV2") {
      GRADFLOW_RETURN_IF_ERROR(ctx.CheckScalar(first, "sep"));
      const tstring& separator = ctx.input(first).span<tstring>()[0];
      how->separator.assign(separator.data(), separator.size());
    } else if (op_ == "SparseCrossHashed") {
      GRADFLOW_ASSIGN_OR_RETURN(const int64_t num_buckets, ctx.ScalarInt(first, "num_buckets"));
      GRADFLOW_RETURN_IF_ERROR(ctx.CheckScalar(first + 1, "strong_hash"));
      GRADFLOW_RETURN_IF_ERROR(ctx.CheckShape(first + 2, "salt", TensorShape({2})));
      how->num_buckets = static_cast<uint64_t>(std::max<int64_t>(num_buckets, 0));
      how->is_strong = ctx.input(first + 1).span<bool>()[0];
      for (int i = 0; i < 2; ++i) {
        how->key[i] = static_cast<uint64_t>(ctx.input(first + 2).span<int64_t>()[i]);
      }
    }
    return absl::OkStatus();
  }

  absl::Status ReadColumns(KernelContext& ctx, std::vector<Column>* columns, int64_t* batch) const {
    for (int i = 0; i < num_sparse_; ++i) {
      GRADFLOW_RETURN_IF_ERROR(
          AddSparse(ctx, i, i, num_sparse_ + i, 2 * num_sparse_ + i, columns, batch));
    }
    for (int i = 0; i < num_dense_; ++i) {
      GRADFLOW_RETURN_IF_ERROR(AddDense(ctx, i, 3 * num_sparse_ + i, columns, batch));
    }
    return absl::OkStatus();
  }

  std::string op_;
  int num_sparse_ = 0;
  int num_dense_ = 0;
  Combination how_;
};

// ---- RaggedCross ----

absl::Status RaggedCrossShape(ShapeContext& c) {
  c.set_output(0, PartialTensorShape({-1}));
  c.set_output(1, PartialTensorShape({-1}));
  return absl::OkStatus();
}

class RaggedCrossKernel final : public OpKernel {
 public:
  absl::Status Init(const KernelConstruction& construction) {
    DataTypeVector ragged;
    DataTypeVector splits;
    DataTypeVector sparse;
    DataTypeVector dense;
    int64_t num_buckets = 0;
    int64_t hash_key = 0;
    GRADFLOW_RETURN_IF_ERROR(construction.GetAttr("ragged_values_types", &ragged));
    GRADFLOW_RETURN_IF_ERROR(construction.GetAttr("ragged_splits_types", &splits));
    GRADFLOW_RETURN_IF_ERROR(construction.GetAttr("Nsparse", &num_sparse_));
    GRADFLOW_RETURN_IF_ERROR(construction.GetAttr("sparse_values_types", &sparse));
    GRADFLOW_RETURN_IF_ERROR(construction.GetAttr("dense_types", &dense));
    GRADFLOW_RETURN_IF_ERROR(construction.GetAttr("input_order", &order_));
    GRADFLOW_RETURN_IF_ERROR(construction.GetAttr("num_buckets", &num_buckets));
    GRADFLOW_RETURN_IF_ERROR(construction.GetAttr("hash_key", &hash_key));
    if (splits.size() != ragged.size()) {
      return errors::InvalidArgument("ragged_splits_types must have ", ragged.size(),
                                     " elements, as ragged_values_types has, but has ",
                                     splits.size());
    }
    if (static_cast<int>(sparse.size()) != num_sparse_) {
      return errors::InvalidArgument("sparse_values_types must have Nsparse = ", num_sparse_,
                                     " elements, but has ", sparse.size());
    }
    num_ragged_ = static_cast<int>(ragged.size());
    const std::pair<char, size_t> expected[] = {
        {'R', ragged.size()}, {'S', sparse.size()}, {'D', dense.size()}};
    size_t total = 0;
    for (const auto& [letter, count] : expected) {
      total += count;
      if (static_cast<size_t>(std::count(order_.begin(), order_.end(), letter)) != count) {
        return errors::InvalidArgument("input_order must have ", count, " times the letter ",
                                       std::string(1, letter), ", but is '",
                                       errors::Printable(order_), "'");
      }
    }
    if (order_.size() != total) {
      return errors::InvalidArgument("input_order must consist of the letters R, S and D, but is '",
                                     errors::Printable(order_), "'");
    }
    how_.is_string = construction.output_type(0) == DT_STRING;
    how_.separator = kSeparator;
    how_.num_buckets = static_cast<uint64_t>(num_buckets);
    how_.has_hash_key = true;
    how_.hash_key = static_cast<uint64_t>(hash_key);
    return absl::OkStatus();
  }

  absl::Status Compute(KernelContext& ctx) const override {
    std::vector<Column> columns;
    int64_t batch = 0;
    GRADFLOW_RETURN_IF_ERROR(ReadColumns(ctx, &columns, &batch));
    Tensor* splits = nullptr;
    GRADFLOW_RETURN_IF_ERROR(ctx.AllocateOutput(1, {batch + 1}, &splits));
    // The number of combinations of each row, and later the sums of these numbers.
    Tensor sizes;
    GRADFLOW_RETURN_IF_ERROR(ctx.AllocateTemp(DT_INT64, {batch}, &sizes));
    const auto size = sizes.span<int64_t>();
    std::fill(size.begin(), size.end(), 0);
    GRADFLOW_ASSIGN_OR_RETURN(
        const Counts counts,
        Count(ctx, how_, batch, &columns, [&](int64_t row, int64_t count) { size[row] = count; }));
    if (counts.total > LargestSplit(splits->dtype())) {
      return errors::InvalidArgument("the splits of the result exceed ",
                                     DataTypeString(splits->dtype()));
    }
    int64_t sum = 0;
    WriteIndex(splits, 0, 0);
    for (int64_t row = 0; row < batch; ++row) WriteIndex(splits, row + 1, sum += size[row]);
    ctx.ExpectStringBytes(counts.bytes);
    Tensor* values = nullptr;
    GRADFLOW_RETURN_IF_ERROR(ctx.AllocateOutput(0, {counts.total}, &values));
    return Write(ctx, how_, batch, &columns, values, [](int64_t, int64_t, int64_t) {});
  }

 private:
  absl::Status ReadColumns(KernelContext& ctx, std::vector<Column>* columns, int64_t* batch) const {
    const int first_sparse = 2 * num_ragged_;
    const int first_dense = first_sparse + 3 * num_sparse_;
    int ragged = 0;
    int sparse = 0;
    int dense = 0;
    for (const char letter : order_) {
      if (letter == 'R') {
        const int splits = num_ragged_ + ragged;
        GRADFLOW_RETURN_IF_ERROR(
            ctx.CheckVector(ragged, absl::StrCat("ragged_values[", ragged, "]")));
        Column column;
        column.values = &ctx.input(ragged);
        column.splits = &ctx.input(splits);
        GRADFLOW_RETURN_IF_ERROR(CheckRowSplits(absl::StrCat("ragged_row_splits[", ragged, "]"),
                                                *column.splits, column.values->NumElements()));
        const int64_t rows = column.splits->NumElements() - 1;
        GRADFLOW_RETURN_IF_ERROR(
            AddColumn("ragged_row_splits", ragged++, rows, std::move(column), columns, batch));
      } else if (letter == 'S') {
        const int i = sparse++;
        GRADFLOW_RETURN_IF_ERROR(AddSparse(ctx, i, first_sparse + i, first_sparse + num_sparse_ + i,
                                           first_sparse + 2 * num_sparse_ + i, columns, batch));
      } else {
        GRADFLOW_RETURN_IF_ERROR(AddDense(ctx, dense, first_dense + dense, columns, batch));
        ++dense;
      }
    }
    return absl::OkStatus();
  }

  // The kind of each column: R, S or D.
  std::string order_;
  int num_ragged_ = 0;
  int num_sparse_ = 0;
  Combination how_;
};

}  // namespace

void Register(Registry& registry) {
  registry.Op("SparseCross")
      .Group("sparse_ops")
      .Input("indices: N * int64")
      .Input("values: sparse_types")
      .Input("shapes: N * int64")
      .Input("dense_inputs: dense_types")
      .Output("output_indices: int64")
      .Output("output_values: out_type")
      .Output("output_shape: int64")
      .Attr("N: int >= 0")
      .Attr("hashed_output: bool")
      .Attr("num_buckets: int >= 0")
      .Attr("hash_key: int")
      .Attr("sparse_types: list({int64, string}) >= 0")
      .Attr("dense_types: list({int64, string}) >= 0")
      .Attr("out_type: {int64, string}")
      .Attr("internal_type: {int64, string}")
      .Shape(CrossShape)
      .Doc(R"(Returns all combinations of features of the rows of sparse and dense matrices.

Use `SparseCrossV2` or `SparseCrossHashed` in new graphs.

indices: The indices of sparse matrices.
values: Their values, which are the features.
shapes: Their shapes.
dense_inputs: Dense matrices of features.
output_indices: The indices of the combinations. The first column is the row of the features.
output_values: The combinations: strings joined by "_X_", or hashes.
output_shape: The shape of the sparse matrix of combinations.
N: The number of sparse matrices.
hashed_output: Ignored: `out_type` states whether the combinations are hashes.
num_buckets: The number of different hashes, or 0 for all.
hash_key: The first number that is combined for a hash.
sparse_types: The types of the values of sparse matrices.
dense_types: The types of dense matrices.
out_type: The type of the combinations.
internal_type: If string, all features must be strings.)");
  registry.Op("SparseCrossV2")
      .Group("sparse_ops")
      .Input("indices: N * int64")
      .Input("values: sparse_types")
      .Input("shapes: N * int64")
      .Input("dense_inputs: dense_types")
      .Input("sep: string")
      .Output("output_indices: int64")
      .Output("output_values: string")
      .Output("output_shape: int64")
      .Attr("N: int >= 0")
      .Attr("sparse_types: list({int64, string}) >= 0")
      .Attr("dense_types: list({int64, string}) >= 0")
      .Shape(CrossShape)
      .Doc(R"(Returns all combinations of features of the rows of sparse and dense matrices.

indices: The indices of sparse matrices.
values: Their values, which are the features.
shapes: Their shapes.
dense_inputs: Dense matrices of features.
sep: The string between the features of a combination.
output_indices: The indices of the combinations. The first column is the row of the features.
output_values: The combinations: features joined by `sep`.
output_shape: The shape of the sparse matrix of combinations.
N: The number of sparse matrices.
sparse_types: The types of the values of sparse matrices.
dense_types: The types of dense matrices.)");
  registry.Op("SparseCrossHashed")
      .Group("sparse_ops")
      .Input("indices: N * int64")
      .Input("values: sparse_types")
      .Input("shapes: N * int64")
      .Input("dense_inputs: dense_types")
      .Input("num_buckets: int64")
      .Input("strong_hash: bool")
      .Input("salt: int64")
      .Output("output_indices: int64")
      .Output("output_values: int64")
      .Output("output_shape: int64")
      .Attr("N: int >= 0")
      .Attr("sparse_types: list({int64, string}) >= 0")
      .Attr("dense_types: list({int64, string}) >= 0")
      .Shape(CrossShape)
      .Doc(
          R"(Returns hashes of all combinations of features of the rows of sparse and dense matrices.

Integers of sparse matrices are hashed by their lowest 4 bytes, as in TensorFlow.

indices: The indices of sparse matrices.
values: Their values, which are the features.
shapes: Their shapes.
dense_inputs: Dense matrices of features.
num_buckets: The number of different hashes. If it is not positive, all are possible.
strong_hash: If true, features are hashed by SipHash with the key `salt`; by FarmHash if false.
salt: Two numbers.
output_indices: The indices of the combinations. The first column is the row of the features.
output_values: The hashes of the combinations.
output_shape: The shape of the sparse matrix of combinations.
N: The number of sparse matrices.
sparse_types: The types of the values of sparse matrices.
dense_types: The types of dense matrices.)");
  for (const char* const op : {"SparseCross", "SparseCrossV2", "SparseCrossHashed"}) {
    registry.Kernel(op, MakeKernel<CrossKernel>);
  }
  registry.Op("RaggedCross")
      .Group("array_ops")
      .Input("ragged_values: ragged_values_types")
      .Input("ragged_row_splits: ragged_splits_types")
      .Input("sparse_indices: Nsparse * int64")
      .Input("sparse_values: sparse_values_types")
      .Input("sparse_shape: Nsparse * int64")
      .Input("dense_inputs: dense_types")
      .Output("output_values: out_values_type")
      .Output("output_row_splits: out_row_splits_type")
      .Attr("Nsparse: int >= 0")
      .Attr("input_order: string")
      .Attr("hashed_output: bool")
      .Attr("num_buckets: int >= 0")
      .Attr("hash_key: int")
      .Attr("ragged_values_types: list({int64, string}) >= 0")
      .Attr("ragged_splits_types: list({int32, int64}) >= 0")
      .Attr("sparse_values_types: list({int64, string}) >= 0")
      .Attr("dense_types: list({int64, string}) >= 0")
      .Attr("out_values_type: {int64, string}")
      .Attr("out_row_splits_type: {int32, int64}")
      .Shape(RaggedCrossShape)
      .Doc(R"(Returns all combinations of features of the rows of ragged, sparse and dense matrices.

ragged_values: The features of each ragged matrix.
ragged_row_splits: Their row splits.
sparse_indices: The indices of sparse matrices.
sparse_values: Their values, which are the features.
sparse_shape: Their shapes.
dense_inputs: Dense matrices of features.
output_values: The combinations: strings joined by "_X_", or hashes.
output_row_splits: The row splits of the combinations.
Nsparse: The number of sparse matrices.
input_order: A letter for each matrix, in the order of the features of a combination: R for the next
  ragged matrix, S for the next sparse one, and D for the next dense one.
hashed_output: Ignored: `out_values_type` states whether the combinations are hashes.
num_buckets: The number of different hashes, or 0 for all.
hash_key: The first number that is combined for a hash.
ragged_values_types: The types of the values of ragged matrices.
ragged_splits_types: The types of their splits.
sparse_values_types: The types of the values of sparse matrices.
dense_types: The types of dense matrices.
out_values_type: The type of the combinations.
out_row_splits_type: The type of the splits.)");
  registry.Kernel("RaggedCross", MakeKernel<RaggedCrossKernel>);
}

}  // namespace gradflow::sparse_cross
