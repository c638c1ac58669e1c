#include "gradflow/ops/lookup/table.h"

#include <algorithm>
#include <cstring>
#include <mutex>
#include <random>
#include <type_traits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "gradflow/core/resource_handle.h"
#include "gradflow/core/status.h"
#include "gradflow/core/stop_token.h"
#include "gradflow/core/variable.h"
#include "gradflow/core/variant.h"
#include "gradflow/ops/common/element_copy.h"
#include "gradflow/ops/common/hash64.h"
#include "gradflow/ops/common/indices.h"

namespace gradflow {
namespace {

// The memory that a string has outside of its object.
int64_t HeapBytes(size_t size) {
  constexpr size_t kInline = 15;
  return size > kInline ? static_cast<int64_t>(size) + 1 : 0;
}

int64_t HeapBytesOfStrings(const Tensor& tensor) {
  int64_t bytes = 0;
  for (const tstring& s : tensor.span<tstring>()) bytes += HeapBytes(s.size());
  return bytes;
}

uint64_t RandomSeed() {
  std::random_device device;
  return uint64_t{device()} << 32 | device();
}

// Copies a value. Most values have the size of a number.
void CopyBytes(const char* from, int64_t bytes, char* to) {
  switch (bytes) {
    case 4:
      std::memcpy(to, from, 4);
      break;
    case 8:
      std::memcpy(to, from, 8);
      break;
    default:
      std::memcpy(to, from, static_cast<size_t>(bytes));
  }
}

// Returns the types of a table as text: "string to int64".
std::string TypesText(DataType key, DataType value) {
  return absl::StrCat(DataTypeString(key), " to ", DataTypeString(value));
}

}  // namespace

// Reads the keys of a tensor. A vector is read as bytes: integers in 8 bytes each, strings after
// their length.
class LookupTable::KeyReader {
 public:
  // `keys` must outlive the reader and the views that it returns.
  KeyReader(const LookupTable& table, const Tensor& keys)
      : keys_(keys),
        ints_(keys),
        has_strings_(table.HasStringKeys()),
        elements_(table.KeyElements()),
        is_vector_(table.HasVectorKeys()) {}

  bool has_strings() const { return has_strings_; }
  int64_t Int(int64_t i) const { return ints_[i]; }
  // `buffer` is used for vectors.
  absl::string_view String(int64_t i, std::string* buffer) const {
    if (!is_vector_) return keys_.span<tstring>()[i];
    buffer->clear();
    for (int64_t k = i * elements_; k < (i + 1) * elements_; ++k) {
      if (keys_.dtype() == DT_STRING) {
        const tstring& part = keys_.span<tstring>()[k];
        AppendInt(static_cast<int64_t>(part.size()), buffer);
        buffer->append(part);
      } else {
        AppendInt(ints_[k], buffer);
      }
    }
    return *buffer;
  }

 private:
  static void AppendInt(int64_t value, std::string* buffer) {
    buffer->append(reinterpret_cast<const char*>(&value), sizeof(value));
  }

  const Tensor& keys_;
  const IndexReader ints_;
  const bool has_strings_;
  const int64_t elements_;
  const bool is_vector_;
};

absl::StatusOr<std::shared_ptr<LookupTable>> LookupTable::Make(
    Spec spec, const std::shared_ptr<Allocator>& allocator) {
  const DataType key = spec.key_dtype;
  if (key != DT_INT32 && key != DT_INT64 && key != DT_STRING) {
    return errors::InvalidArgument("keys must be int32, int64 or string, but are ",
                                   DataTypeString(key));
  }
  if (!DataTypeCanBeTensor(spec.value_dtype) && spec.value_dtype != DT_RESOURCE) {
    return errors::InvalidArgument("a table cannot have values of type ",
                                   DataTypeString(spec.value_dtype));
  }
  if (spec.kind == Kind::kDense) {
    const Tensor& empty = spec.empty_key;
    const Tensor& deleted = spec.deleted_key;
    if (empty.dtype() != key || deleted.dtype() != key) {
      return errors::InvalidArgument(
          "empty_key and deleted_key must be of type ", DataTypeString(key), ", but are ",
          DataTypeString(empty.dtype()), " and ", DataTypeString(deleted.dtype()));
    }
    if (empty.dims() > 1 || empty.shape() != deleted.shape()) {
      return errors::InvalidArgument(
          "empty_key and deleted_key must be scalars, or vectors of one size, but have shapes ",
          empty.shape().DebugString(), " and ", deleted.shape().DebugString());
    }
    if (empty.dims() == 1 && empty.NumElements() == 0) {
      return errors::InvalidArgument("empty_key must not be an empty vector");
    }
    if (spec.num_buckets < 4 || (spec.num_buckets & (spec.num_buckets - 1)) != 0) {
      return errors::InvalidArgument("initial_num_buckets must be a power of 2 and at least 4, ",
                                     "but is ", spec.num_buckets);
    }
    if (!(spec.max_load_factor > 0 && spec.max_load_factor < 1)) {
      return errors::InvalidArgument("max_load_factor must be between 0 and 1, but is ",
                                     spec.max_load_factor);
    }
  }
  // The constructor is private.
  std::shared_ptr<LookupTable> table(
      new LookupTable(std::move(spec), allocator, KeyIndex::Secret{{RandomSeed(), RandomSeed()}}));
  if (table->kind() == Kind::kDense) {
    const KeyReader empty(*table, table->spec_.empty_key);
    const KeyReader deleted(*table, table->spec_.deleted_key);
    std::string a;
    std::string b;
    const bool equal = table->HasStringKeys() ? empty.String(0, &a) == deleted.String(0, &b)
                                              : empty.Int(0) == deleted.Int(0);
    if (equal) return errors::InvalidArgument("empty_key and deleted_key must not be equal");
  }
  return table;
}

LookupTable::LookupTable(Spec spec, const std::shared_ptr<Allocator>& allocator,
                         const KeyIndex::Secret& secret)
    : spec_(std::move(spec)),
      value_elements_(spec_.value_shape.num_elements()),
      allocator_(allocator),
      secret_(secret),
      num_buckets_(spec_.num_buckets),
      entries_(secret),
      memory_(allocator_.get()) {}

std::string LookupTable::DebugString() const {
  return absl::StrCat("table of ", size(), " entries, ",
                      TypesText(spec_.key_dtype, spec_.value_dtype));
}

int64_t LookupTable::size() const {
  std::shared_lock lock(mutex_);
  return SizeLocked();
}

// ---- Checks ----

absl::Status LookupTable::CheckKeys(const Tensor& keys) const {
  if (keys.dtype() != spec_.key_dtype) {
    return errors::InvalidArgument("keys must be of type ", DataTypeString(spec_.key_dtype),
                                   ", the type of the table's keys, but are ",
                                   DataTypeString(keys.dtype()));
  }
  if (HasVectorKeys()) {
    const int64_t size = spec_.empty_key.NumElements();
    if (keys.dims() == 0 || keys.dim_size(keys.dims() - 1) != size) {
      return errors::InvalidArgument("the last dimension of keys must be ", size,
                                     ", the size of a key of the table, but keys have shape ",
                                     keys.shape().DebugString());
    }
  }
  return absl::OkStatus();
}

TensorShape LookupTable::BatchOf(const Tensor& keys) const {
  TensorShape shape = keys.shape();
  if (HasVectorKeys()) shape.RemoveLastDims(1);
  return shape;
}

absl::Status LookupTable::CheckEntries(const Tensor& keys, const Tensor& values) const {
  GRADFLOW_RETURN_IF_ERROR(CheckKeys(keys));
  if (values.dtype() != spec_.value_dtype) {
    return errors::InvalidArgument("values must be of type ", DataTypeString(spec_.value_dtype),
                                   ", the type of the table's values, but are ",
                                   DataTypeString(values.dtype()));
  }
  TensorShape expected = BatchOf(keys);
  GRADFLOW_RETURN_IF_ERROR(expected.AppendShapeWithStatus(spec_.value_shape));
  if (values.shape() != expected) {
    return errors::InvalidArgument("values must have shape ", expected.DebugString(),
                                   ", but have shape ", values.shape().DebugString());
  }
  return CheckHandles(values);
}

absl::Status LookupTable::CheckNotReserved(const Tensor& keys, int64_t count) const {
  if (kind() != Kind::kDense) return absl::OkStatus();
  const KeyReader reader(*this, keys);
  for (int64_t i = 0; i < count; ++i) {
    if (IsReserved(reader, i)) {
      return errors::InvalidArgument("key ", i, " is the table's empty_key or deleted_key, which ",
                                     "must not be used as a key");
    }
  }
  return absl::OkStatus();
}

bool LookupTable::IsReserved(const KeyReader& keys, int64_t i) const {
  if (kind() != Kind::kDense) return false;
  const KeyReader empty(*this, spec_.empty_key);
  const KeyReader deleted(*this, spec_.deleted_key);
  if (!keys.has_strings()) return keys.Int(i) == empty.Int(0) || keys.Int(i) == deleted.Int(0);
  std::string buffers[3];
  const absl::string_view key = keys.String(i, &buffers[0]);
  return key == empty.String(0, &buffers[1]) || key == deleted.String(0, &buffers[2]);
}

// ---- Reading ----

void LookupTable::FindRows(const KeyReader& keys, int64_t first, int64_t count, std::string* buffer,
                           int64_t* rows) const {
  // Each step loads what the next step of several keys needs, so the loads overlap.
  const KeyIndex& index = entries_.index;
  uint64_t hashes[kBatch];
  if (!keys.has_strings()) {
    for (int64_t k = 0; k < count; ++k) {
      hashes[k] = index.HashOf(keys.Int(first + k));
      index.PrefetchSlot(hashes[k]);
    }
    for (int64_t k = 0; k < count; ++k) rows[k] = index.Find(keys.Int(first + k), hashes[k]);
    return;
  }
  for (int64_t k = 0; k < count; ++k) {
    hashes[k] = index.HashOf(keys.String(first + k, buffer));
    index.PrefetchSlot(hashes[k]);
  }
  for (int64_t k = 0; k < count; ++k) index.PrefetchString(hashes[k]);
  for (int64_t k = 0; k < count; ++k) {
    rows[k] = index.Find(keys.String(first + k, buffer), hashes[k]);
  }
}

absl::Status LookupTable::Find(KernelContext& ctx, const Tensor& keys,
                               const Tensor& default_value) const {
  GRADFLOW_RETURN_IF_ERROR(CheckKeys(keys));
  if (default_value.dtype() != spec_.value_dtype) {
    return errors::InvalidArgument(
        "default_value must be of type ", DataTypeString(spec_.value_dtype),
        ", the type of the table's values, but is ", DataTypeString(default_value.dtype()));
  }
  const TensorShape batch = BatchOf(keys);
  TensorShape shape = batch;
  GRADFLOW_RETURN_IF_ERROR(shape.AppendShapeWithStatus(spec_.value_shape));
  const bool one_default = default_value.shape() == spec_.value_shape;
  if (!one_default && default_value.shape() != shape) {
    return errors::InvalidArgument("default_value must have shape ",
                                   spec_.value_shape.DebugString(), " or ", shape.DebugString(),
                                   ", but has shape ", default_value.shape().DebugString());
  }
  const int64_t count = batch.num_elements();
  GRADFLOW_RETURN_IF_ERROR(CheckNotReserved(keys, count));
  const KeyReader reader(*this, keys);
  // A hash table uses the first value, as in TensorFlow.
  const int64_t default_step = one_default || kind() == Kind::kHash ? 0 : value_elements_;
  const auto uninitialized = [] {
    return errors::FailedPrecondition("the table has not been initialized");
  };
  Tensor* output = nullptr;
  if (DataTypeIsPlainBytes(spec_.value_dtype)) {
    {
      std::shared_lock lock(mutex_);
      if (kind() == Kind::kHash && !initialized_) return uninitialized();
    }
    GRADFLOW_RETURN_IF_ERROR(ctx.AllocateOutput(0, shape, &output));
    if (output->NumElements() == 0) return absl::OkStatus();
    const int64_t element = DataTypeSize(spec_.value_dtype);
    const int64_t bytes = value_elements_ * element;
    char* const out = static_cast<char*>(output->raw_data());
    const auto* const defaults = static_cast<const char*>(default_value.raw_data());
    constexpr double kNanosecondsPerKey = 40;
    ParallelFor(ctx, count, BlockSizeForCost(kNanosecondsPerKey), [&](int64_t begin, int64_t end) {
      std::string buffer;
      std::shared_lock lock(mutex_);
      const auto* const values = static_cast<const char*>(entries_.values.raw_data());
      int64_t rows[kBatch];
      for (int64_t first = begin; first < end; first += kBatch) {
        const int64_t size = std::min(kBatch, end - first);
        FindRows(reader, first, size, &buffer, rows);
        for (int64_t k = 0; k < size; ++k) {
          if (rows[k] >= 0) __builtin_prefetch(values + rows[k] * bytes);
        }
        for (int64_t k = 0; k < size; ++k) {
          const int64_t i = first + k;
          const char* const from =
              rows[k] >= 0 ? values + rows[k] * bytes : defaults + i * default_step * element;
          CopyBytes(from, bytes, out + i * bytes);
        }
      }
    });
    return absl::OkStatus();
  }
  // The characters are counted before the strings are made, so one lock covers both loops.
  Tensor rows;
  GRADFLOW_RETURN_IF_ERROR(ctx.AllocateTemp(DT_INT64, {count}, &rows));
  std::string buffer;
  std::shared_lock lock(mutex_);
  if (kind() == Kind::kHash && !initialized_) return uninitialized();
  double bytes = 0;
  for (int64_t i = 0; i < count; ++i) {
    constexpr int64_t kBetweenChecks = 4096;
    if (i % kBetweenChecks == 0 && ctx.ShouldStop()) return StoppedError();
    if (i % kBatch == 0) {
      FindRows(reader, i, std::min(kBatch, count - i), &buffer, &rows.span<int64_t>()[i]);
    }
    const int64_t row = rows.span<int64_t>()[i];
    if (spec_.value_dtype != DT_STRING) continue;
    const Tensor& source = row >= 0 ? entries_.values : default_value;
    const int64_t at = row >= 0 ? row * value_elements_ : i * default_step;
    for (int64_t k = at; k < at + value_elements_; ++k) {
      bytes += static_cast<double>(source.span<tstring>()[k].size());
    }
  }
  ctx.ExpectStringBytes(bytes);
  GRADFLOW_RETURN_IF_ERROR(ctx.AllocateOutput(0, shape, &output));
  for (int64_t i = 0; i < count; ++i) {
    const int64_t row = rows.span<int64_t>()[i];
    CopyElements(row >= 0 ? entries_.values : default_value,
                 row >= 0 ? row * value_elements_ : i * default_step, value_elements_, output,
                 i * value_elements_);
  }
  return absl::OkStatus();
}

// ---- Changing ----

double LookupTable::BytesOf(const Entries& entries, int64_t more) const {
  return entries.index.Bytes(more, HasStringKeys()) +
         8.0 * static_cast<double>(entries.free_rows.capacity()) +
         static_cast<double>(entries.string_bytes);
}

bool LookupTable::IsValue(const Tensor& values, int64_t i, int64_t row,
                          const Entries& entries) const {
  if (spec_.value_dtype == DT_VARIANT || spec_.value_dtype == DT_RESOURCE) return false;
  if (spec_.value_dtype == DT_STRING) {
    const auto a = values.span<tstring>().begin() + i * value_elements_;
    return std::equal(a, a + value_elements_,
                      entries.values.span<tstring>().begin() + row * value_elements_);
  }
  const size_t bytes = value_elements_ * DataTypeSize(spec_.value_dtype);
  return std::memcmp(static_cast<const char*>(values.raw_data()) + i * bytes,
                     static_cast<const char*>(entries.values.raw_data()) + row * bytes, bytes) == 0;
}

void LookupTable::SetValue(const Tensor& values, int64_t i, int64_t row, Entries* entries) const {
  if (spec_.value_dtype == DT_STRING) {
    for (int64_t k = 0; k < value_elements_; ++k) {
      const auto size = [k](const Tensor& t, int64_t at) {
        return HeapBytes(t.span<tstring>()[at + k].size());
      };
      entries->string_bytes +=
          size(values, i * value_elements_) - size(entries->values, row * value_elements_);
    }
  }
  CopyElements(values, i * value_elements_, value_elements_, &entries->values,
               row * value_elements_);
}

absl::Status LookupTable::Add(const Tensor& keys, const Tensor& values, const AddOptions& options,
                              Entries* entries, MemoryReservation* memory) const {
  const int64_t count = BatchOf(keys).num_elements();
  const KeyReader reader(*this, keys);
  // Charges and allocates for `count` new keys, so that nothing fails later.
  double added = 0;
  std::string buffer;
  if (reader.has_strings()) {
    for (int64_t i = 0; i < count; ++i) {
      added += static_cast<double>(HeapBytes(reader.String(i, &buffer).size()));
    }
  }
  if (spec_.value_dtype == DT_STRING) added += static_cast<double>(HeapBytesOfStrings(values));
  const size_t before = memory->bytes();
  GRADFLOW_RETURN_IF_ERROR(memory->Set(BytesOf(*entries, count) + added + options.other_bytes,
                                       "the entries of a table"));
  const int64_t capacity = entries->values.dtype() == DT_INVALID ? 0 : entries->values.dim_size(0);
  const int64_t needed =
      entries->num_rows + std::max<int64_t>(count - entries->free_rows.size(), 0);
  if (needed > capacity || entries->values.dtype() == DT_INVALID) {
    absl::StatusOr<Tensor> grown = absl::ResourceExhaustedError("");
    for (const int64_t rows : {std::max(needed, 2 * capacity), needed}) {
      const absl::StatusOr<TensorShape> shape = TensorShape::Make({rows, value_elements_});
      grown = shape.ok() ? Tensor::Allocate(allocator_, spec_.value_dtype, *shape)
                         : absl::StatusOr<Tensor>(shape.status());
      if (grown.ok()) break;
    }
    if (!grown.ok()) {
      memory->Set(before);
      return grown.status();
    }
    if (spec_.value_dtype == DT_STRING) {
      std::move(entries->values.span<tstring>().begin(), entries->values.span<tstring>().end(),
                grown->span<tstring>().begin());
    } else if (entries->num_rows > 0) {
      CopyElements(entries->values, 0, entries->num_rows * value_elements_, &*grown, 0);
    }
    entries->values = *std::move(grown);
  }
  const auto add = [&](auto key, int64_t i) {
    const uint64_t hash = entries->index.HashOf(key);
    int64_t row = entries->index.Find(key, hash);
    if (row < 0) {
      if (entries->free_rows.empty()) {
        row = entries->num_rows++;
      } else {
        row = entries->free_rows.back();
        entries->free_rows.pop_back();
      }
      entries->index.Insert(key, hash, row);
      if constexpr (!std::is_integral_v<decltype(key)>) {
        entries->string_bytes += HeapBytes(key.size());
      }
    } else if (options.unique && !IsValue(values, i, row, *entries)) {
      return false;
    }
    SetValue(values, i, row, entries);
    return true;
  };
  entries->index.Reserve(count);
  for (int64_t i = 0; i < count; ++i) {
    if (options.skips_reserved && IsReserved(reader, i)) continue;
    const bool added_entry =
        reader.has_strings() ? add(reader.String(i, &buffer), i) : add(reader.Int(i), i);
    if (!added_entry) {
      memory->Set(before);
      const std::string key = reader.has_strings() ? errors::Printable(reader.String(i, &buffer))
                                                   : absl::StrCat(reader.Int(i));
      return errors::FailedPrecondition("key '", key, "' has two different values");
    }
  }
  return memory->Set(BytesOf(*entries, 0) + options.other_bytes, "the entries of a table");
}

absl::Status LookupTable::Insert(const Tensor& keys, const Tensor& values) {
  GRADFLOW_RETURN_IF_ERROR(CheckEntries(keys, values));
  const int64_t count = BatchOf(keys).num_elements();
  GRADFLOW_RETURN_IF_ERROR(CheckNotReserved(keys, count));
  std::unique_lock lock(mutex_);
  // As in TensorFlow, the number of places grows as if all keys were new.
  const int64_t most = SizeLocked() + count;
  GRADFLOW_RETURN_IF_ERROR(Add(keys, values, {}, &entries_, &memory_));
  if (kind() == Kind::kDense) GrowBuckets(most);
  return absl::OkStatus();
}

void LookupTable::GrowBuckets(int64_t entries) {
  // A tiny load factor needs more places than any memory has. Exports of so many are errors.
  constexpr int64_t kMost = int64_t{1} << 48;
  while (num_buckets_<kMost&& static_cast<double>(entries)> static_cast<double>(num_buckets_) *
         spec_.max_load_factor) {
    num_buckets_ *= 2;
  }
}

absl::Status LookupTable::Remove(const Tensor& keys) {
  GRADFLOW_RETURN_IF_ERROR(CheckKeys(keys));
  const int64_t count = BatchOf(keys).num_elements();
  GRADFLOW_RETURN_IF_ERROR(CheckNotReserved(keys, count));
  const KeyReader reader(*this, keys);
  std::string buffer;
  std::unique_lock lock(mutex_);
  const auto remove = [&](auto key) {
    const int64_t row = entries_.index.Remove(key, entries_.index.HashOf(key));
    if (row < 0) return;
    if constexpr (!std::is_integral_v<decltype(key)>) {
      entries_.string_bytes -= HeapBytes(key.size());
    }
    entries_.free_rows.push_back(row);
    for (int64_t k = row * value_elements_; k < (row + 1) * value_elements_; ++k) {
      if (spec_.value_dtype == DT_STRING) {
        tstring& value = entries_.values.span<tstring>()[k];
        entries_.string_bytes -= HeapBytes(value.size());
        tstring().swap(value);
      } else if (spec_.value_dtype == DT_VARIANT) {
        entries_.values.span<Variant>()[k].clear();
      } else if (spec_.value_dtype == DT_RESOURCE) {
        entries_.values.span<ResourceHandle>()[k] = ResourceHandle();
      }
    }
  };
  for (int64_t i = 0; i < count; ++i) {
    if (reader.has_strings()) {
      remove(reader.String(i, &buffer));
    } else {
      remove(reader.Int(i));
    }
  }
  return memory_.Set(BytesOf(entries_, 0), "the entries of a table");
}

absl::Status LookupTable::Replace(const Tensor& keys, const Tensor& values, AddOptions options) {
  Entries fresh(secret_);
  const size_t before = memory_.bytes();
  options.other_bytes = static_cast<double>(before);
  if (absl::Status status = Add(keys, values, options, &fresh, &memory_); !status.ok()) {
    memory_.Set(before);
    return status;
  }
  entries_ = std::move(fresh);
  return memory_.Set(BytesOf(entries_, 0), "the entries of a table");
}

absl::Status LookupTable::Import(const Tensor& keys, const Tensor& values) {
  if (kind() != Kind::kDense) {
    GRADFLOW_RETURN_IF_ERROR(CheckEntries(keys, values));
    std::unique_lock lock(mutex_);
    return Replace(keys, values, {});
  }
  // Exported keys and values have a dimension of size 1 for scalars.
  Tensor flat_keys = keys;
  Tensor flat_values = values;
  const auto drop_last = [](Tensor* tensor) {
    if (tensor->dims() != 2 || tensor->dim_size(1) != 1) return;
    tensor->CopyFrom(Tensor(*tensor), {tensor->dim_size(0)});
  };
  if (spec_.empty_key.dims() == 0) drop_last(&flat_keys);
  if (spec_.value_shape.dims() == 0) drop_last(&flat_values);
  GRADFLOW_RETURN_IF_ERROR(CheckEntries(flat_keys, flat_values));
  AddOptions options;
  options.skips_reserved = true;
  std::unique_lock lock(mutex_);
  GRADFLOW_RETURN_IF_ERROR(Replace(flat_keys, flat_values, options));
  // Every place was exported.
  const int64_t rows = BatchOf(flat_keys).num_elements();
  if (rows >= 4 && (rows & (rows - 1)) == 0) num_buckets_ = rows;
  GrowBuckets(SizeLocked());
  return absl::OkStatus();
}

absl::Status LookupTable::Initialize(const Tensor& keys, const Tensor& values) {
  GRADFLOW_RETURN_IF_ERROR(CheckEntries(keys, values));
  if (kind() != Kind::kHash) {
    return errors::InvalidArgument("a mutable table cannot be initialized");
  }
  if (keys.NumElements() == 0) {
    return errors::InvalidArgument("a hash table cannot be initialized without entries");
  }
  std::unique_lock lock(mutex_);
  if (initialized_) {
    if (keys.NumElements() == SizeLocked()) return absl::OkStatus();
    return errors::FailedPrecondition("the table has been initialized with ", SizeLocked(),
                                      " entries, and now with ", keys.NumElements());
  }
  AddOptions options;
  options.unique = true;
  GRADFLOW_RETURN_IF_ERROR(Replace(keys, values, options));
  initialized_ = true;
  return absl::OkStatus();
}

// ---- Exporting ----

template <typename Fn>
void LookupTable::ForEach(Fn&& fn) const {
  if (HasStringKeys()) {
    entries_.index.ForEachString(fn);
  } else {
    entries_.index.ForEachInt(fn);
  }
}

void LookupTable::WriteKey(absl::string_view key, int64_t at, Tensor* keys) const {
  if (!HasVectorKeys()) {
    keys->span<tstring>()[at] = tstring(key);
    return;
  }
  const auto read_int = [&key] {
    int64_t value;
    std::memcpy(&value, key.data(), sizeof(value));
    key.remove_prefix(sizeof(value));
    return value;
  };
  const int64_t elements = KeyElements();
  for (int64_t k = at * elements; k < (at + 1) * elements; ++k) {
    const int64_t value = read_int();
    if (spec_.key_dtype == DT_STRING) {
      keys->span<tstring>()[k] = tstring(key.substr(0, value));
      key.remove_prefix(value);
    } else {
      WriteIndex(keys, k, value);
    }
  }
}

absl::Status LookupTable::AllocateExport(KernelContext& ctx, int64_t rows, Tensor** keys,
                                         Tensor** values) const {
  TensorShape key_shape({rows});
  TensorShape value_shape({rows});
  if (kind() == Kind::kDense) {
    GRADFLOW_RETURN_IF_ERROR(key_shape.AddDimWithStatus(KeyElements()));
  }
  if (kind() == Kind::kDense && spec_.value_shape.dims() == 0) {
    GRADFLOW_RETURN_IF_ERROR(value_shape.AddDimWithStatus(1));
  } else {
    GRADFLOW_RETURN_IF_ERROR(value_shape.AppendShapeWithStatus(spec_.value_shape));
  }
  if (ctx.expected_output_dtype(0) != spec_.key_dtype ||
      ctx.expected_output_dtype(1) != spec_.value_dtype) {
    return errors::InvalidArgument(
        "the table has types ", TypesText(spec_.key_dtype, spec_.value_dtype), ", expected ",
        TypesText(ctx.expected_output_dtype(0), ctx.expected_output_dtype(1)));
  }
  double key_bytes = 0;
  ForEach([&](const auto& key, int64_t) {
    if constexpr (!std::is_integral_v<std::decay_t<decltype(key)>>) {
      key_bytes += static_cast<double>(key.size());
    }
  });
  if (kind() == Kind::kDense && spec_.key_dtype == DT_STRING) {
    key_bytes += static_cast<double>(rows) * static_cast<double>(spec_.empty_key.StringBytes());
  }
  ctx.ExpectStringBytes(key_bytes);
  GRADFLOW_RETURN_IF_ERROR(ctx.AllocateOutput(0, key_shape, keys));
  if (spec_.value_dtype == DT_STRING && entries_.values.dtype() == DT_STRING) {
    ctx.ExpectStringBytes(static_cast<double>(entries_.values.StringBytes()));
  }
  return ctx.AllocateOutput(1, value_shape, values);
}

absl::Status LookupTable::Export(KernelContext& ctx) const {
  std::shared_lock lock(mutex_);
  if (kind() == Kind::kHash && !initialized_) {
    return errors::FailedPrecondition("the table has not been initialized");
  }
  if (kind() == Kind::kDense) return ExportDense(ctx);
  Tensor* keys = nullptr;
  Tensor* values = nullptr;
  GRADFLOW_RETURN_IF_ERROR(AllocateExport(ctx, SizeLocked(), &keys, &values));
  GRADFLOW_ASSIGN_OR_RETURN(const Tensor places, PlacesOfRows(ctx));
  ForEach([&](const auto& key, int64_t row) {
    const int64_t place = places.span<int64_t>()[row];
    if constexpr (std::is_integral_v<std::decay_t<decltype(key)>>) {
      WriteIndex(keys, place, key);
    } else {
      WriteKey(key, place, keys);
    }
    CopyElements(entries_.values, row * value_elements_, value_elements_, values,
                 place * value_elements_);
  });
  return absl::OkStatus();
}

absl::StatusOr<Tensor> LookupTable::PlacesOfRows(KernelContext& ctx) const {
  Tensor places;
  GRADFLOW_RETURN_IF_ERROR(ctx.AllocateTemp(DT_INT64, {entries_.num_rows}, &places));
  const auto place = places.span<int64_t>();
  std::fill(place.begin(), place.end(), 0);
  for (const int64_t row : entries_.free_rows) place[row] = -1;
  int64_t next = 0;
  for (int64_t& p : place) {
    if (p == 0) p = next++;
  }
  return places;
}

uint64_t LookupTable::TensorFlowHash(absl::string_view key) const {
  if (!HasVectorKeys()) return Hash64(key);
  // A vector of one element has the hash of the element.
  const int64_t elements = KeyElements();
  uint64_t hash = 0;
  for (int64_t k = 0; k < elements; ++k) {
    uint64_t part;
    std::memcpy(&part, key.data(), sizeof(part));
    key.remove_prefix(sizeof(part));
    if (spec_.key_dtype == DT_STRING) {
      const absl::string_view text = key.substr(0, part);
      key.remove_prefix(part);
      part = Hash64(text);
    }
    if (elements == 1) return part;
    hash ^= part + 0x9e3779b97f4a7800 + (hash << 10) + (hash >> 4);
  }
  return hash;
}

absl::Status LookupTable::ExportDense(KernelContext& ctx) const {
  Tensor* keys = nullptr;
  Tensor* values = nullptr;
  GRADFLOW_RETURN_IF_ERROR(AllocateExport(ctx, num_buckets_, &keys, &values));
  const int64_t key_elements = KeyElements();
  for (int64_t b = 0; b < num_buckets_; ++b) {
    if (b % 4096 == 0 && ctx.ShouldStop()) return StoppedError();
    CopyElements(spec_.empty_key, 0, key_elements, keys, b * key_elements);
  }
  if (DataTypeIsPlainBytes(spec_.value_dtype) && values->TotalBytes() > 0) {
    std::memset(values->raw_data(), 0, values->TotalBytes());
  }
  // The entries in the order of their rows, and the places that they have taken.
  GRADFLOW_ASSIGN_OR_RETURN(const Tensor order, PlacesOfRows(ctx));
  Tensor taken;
  Tensor row_of;
  Tensor hash_of;
  GRADFLOW_RETURN_IF_ERROR(ctx.AllocateTemp(DT_BOOL, {num_buckets_}, &taken));
  GRADFLOW_RETURN_IF_ERROR(ctx.AllocateTemp(DT_INT64, {entries_.num_rows}, &row_of));
  GRADFLOW_RETURN_IF_ERROR(ctx.AllocateTemp(DT_UINT64, {entries_.num_rows}, &hash_of));
  std::fill(taken.span<bool>().begin(), taken.span<bool>().end(), false);
  ForEach(
      [&](const auto& key, int64_t row) { hash_of.span<uint64_t>()[row] = TensorFlowHash(key); });
  // Many keys with one hash would take quadratic time.
  double steps = 0;
  for (int64_t row = 0; row < entries_.num_rows; ++row) {
    if (order.span<int64_t>()[row] < 0) continue;
    uint64_t place = hash_of.span<uint64_t>()[row] & (num_buckets_ - 1);
    for (int64_t probe = 1; taken.span<bool>()[place]; ++probe) {
      place = (place + probe) & (num_buckets_ - 1);
      constexpr double kStepsPerBucket = 64;
      if (++steps > kStepsPerBucket * static_cast<double>(num_buckets_)) {
        return errors::ResourceExhausted(
            "the places of the keys in TensorFlow's layout collide too often");
      }
    }
    taken.span<bool>()[place] = true;
    row_of.span<int64_t>()[row] = static_cast<int64_t>(place);
    CopyElements(entries_.values, row * value_elements_, value_elements_, values,
                 static_cast<int64_t>(place) * value_elements_);
  }
  ForEach([&](const auto& key, int64_t row) {
    const int64_t place = row_of.span<int64_t>()[row];
    if constexpr (std::is_integral_v<std::decay_t<decltype(key)>>) {
      WriteIndex(keys, place, key);
    } else {
      WriteKey(key, place, keys);
    }
  });
  return absl::OkStatus();
}

DataTypeVector TableValueTypes() {
  DataTypeVector types = AllDataTypes();
  if (std::find(types.begin(), types.end(), DT_RESOURCE) == types.end()) {
    types.push_back(DT_RESOURCE);
  }
  return types;
}

absl::StatusOr<std::shared_ptr<LookupTable>> TableOf(const KernelContext& ctx, int i) {
  GRADFLOW_ASSIGN_OR_RETURN(const ResourceHandle handle, HandleOf(ctx, i));
  if (handle.resource() != nullptr) {
    if (auto table = std::dynamic_pointer_cast<LookupTable>(handle.resource())) return table;
    return errors::InvalidArgument(handle.DebugString(), " is not a table");
  }
  if (ctx.resource_manager() == nullptr) {
    return errors::FailedPrecondition("tables need a session");
  }
  return ctx.resource_manager()->Lookup<LookupTable>(handle.container(), handle.name());
}

}  // namespace gradflow
