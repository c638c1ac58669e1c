// LookupTable: maps keys to values of one type and shape. It is a resource of the session.
//
// A key is an int32, an int64 or a string; the keys of a dense table may also be vectors of these.
// The memory of the table is charged to the allocator that it is made with.
//
// The hash function has a random key in each table, so chosen keys do not collide.
// The order of exported entries does not depend on it.
//
// Thread safety: thread-safe. Lookups of several threads run at the same time.
#ifndef GRADFLOW_OPS_LOOKUP_TABLE_H_
#define GRADFLOW_OPS_LOOKUP_TABLE_H_

#include <cstdint>
#include <memory>
#include <shared_mutex>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "gradflow/core/allocator.h"
#include "gradflow/core/memory_reservation.h"
#include "gradflow/core/op_kernel.h"
#include "gradflow/core/tensor.h"
#include "gradflow/core/tensor_shape.h"
#include "gradflow/core/types.h"
#include "gradflow/ops/common/tensor_holder.h"
#include "gradflow/ops/lookup/key_index.h"

namespace gradflow {

class LookupTable final : public TensorHolder {
 public:
  enum class Kind {
    // Gets all of its entries once.
    kHash,
    kMutable,
    // Mutable. Two keys stand for free and for deleted places of the table and cannot be used.
    kDense,
  };

  struct Spec {
    Kind kind = Kind::kHash;
    DataType key_dtype = DT_INVALID;
    DataType value_dtype = DT_INVALID;
    // The shape of the value of a key.
    TensorShape value_shape;
    // The members below describe a dense table, whose keys have the shape of `empty_key`: a scalar
    // or a vector.
    Tensor empty_key{Tensor::Unset()};
    Tensor deleted_key{Tensor::Unset()};
    // The number of places: a power of 2, at least 4. It doubles if the entries exceed its product
    // with `max_load_factor`.
    int64_t num_buckets = 0;
    double max_load_factor = 0;
  };

  // Returns INVALID_ARGUMENT if the spec is not valid.
  static absl::StatusOr<std::shared_ptr<LookupTable>> Make(
      Spec spec, const std::shared_ptr<Allocator>& allocator);

  Kind kind() const { return spec_.kind; }
  DataType key_dtype() const { return spec_.key_dtype; }
  DataType value_dtype() const { return spec_.value_dtype; }
  const TensorShape& value_shape() const { return spec_.value_shape; }
  // "table of 3 entries, string to int64"
  std::string DebugString() const override;

  // Returns the number of entries.
  int64_t size() const;

  // The functions below return INVALID_ARGUMENT for tensors of wrong types or shapes, and for the
  // reserved keys of a dense table. If a function that changes the table returns an error, the
  // table is unchanged.

  // Makes output 0 the values of `keys`. A key that is not in the table gets the default value: one
  // value, or a value for each key. Returns FAILED_PRECONDITION if the table has no entries yet and
  // is a hash table.
  absl::Status Find(KernelContext& ctx, const Tensor& keys, const Tensor& default_value) const;
  // Adds entries and replaces the values of keys that exist.
  absl::Status Insert(const Tensor& keys, const Tensor& values);
  absl::Status Remove(const Tensor& keys);
  // Replaces all entries of a mutable table.
  absl::Status Import(const Tensor& keys, const Tensor& values);
  // Makes outputs 0 and 1 the keys and values, in the order of insertion. A dense table has the
  // layout that TensorFlow imports: one row for each place, and the empty key in free places.
  absl::Status Export(KernelContext& ctx) const;
  // Sets the entries of a hash table. Does nothing if the table has the same number of entries
  // already, as in TensorFlow. Otherwise returns FAILED_PRECONDITION if it has entries, or if a key
  // has two values.
  absl::Status Initialize(const Tensor& keys, const Tensor& values);

 private:
  struct Entries {
    explicit Entries(const KeyIndex::Secret& secret) : index(secret) {}

    // The rows of the keys. The bytes of vectors are strings.
    KeyIndex index;
    // [rows, elements of a value]
    Tensor values{Tensor::Unset()};
    // Rows [0, num_rows) are used, except for the free ones.
    int64_t num_rows = 0;
    std::vector<int64_t> free_rows;
    // The memory of the strings in keys and values.
    int64_t string_bytes = 0;
  };
  struct AddOptions {
    // If true, a key with two different values is an error.
    bool unique = false;
    // If true, leaves out the reserved keys of a dense table.
    bool skips_reserved = false;
    // Bytes to charge in addition.
    double other_bytes = 0;
  };
  class KeyReader;
  // The number of keys whose searches overlap.
  static constexpr int64_t kBatch = 32;

  LookupTable(Spec spec, const std::shared_ptr<Allocator>& allocator,
              const KeyIndex::Secret& secret);

  // The caller of the functions below holds the mutex if they use entries_.

  int64_t SizeLocked() const { return entries_.index.size(); }
  bool HasVectorKeys() const { return spec_.empty_key.dims() == 1; }
  int64_t KeyElements() const { return HasVectorKeys() ? spec_.empty_key.NumElements() : 1; }
  // True if keys are stored as strings.
  bool HasStringKeys() const { return spec_.key_dtype == DT_STRING || HasVectorKeys(); }
  // Returns the shape of `keys` without the dimension of a key.
  TensorShape BatchOf(const Tensor& keys) const;
  absl::Status CheckKeys(const Tensor& keys) const;
  absl::Status CheckEntries(const Tensor& keys, const Tensor& values) const;
  absl::Status CheckNotReserved(const Tensor& keys, int64_t count) const;
  bool IsReserved(const KeyReader& keys, int64_t i) const;

  // Stores the rows of keys [first, first + count), or -1 for keys that are not in the table.
  // `count` is at most kBatch.
  void FindRows(const KeyReader& keys, int64_t first, int64_t count, std::string* buffer,
                int64_t* rows) const;
  // Calls fn(key, row) for each entry, in any order.
  template <typename Fn>
  void ForEach(Fn&& fn) const;

  // Returns the memory of `entries` without the values, with room for `more` new keys.
  double BytesOf(const Entries& entries, int64_t more) const;
  // Returns true if the value of row `row` is value i of `values`.
  bool IsValue(const Tensor& values, int64_t i, int64_t row, const Entries& entries) const;
  void SetValue(const Tensor& values, int64_t i, int64_t row, Entries* entries) const;
  // Adds entries and charges their memory to *memory. If it returns RESOURCE_EXHAUSTED, it has
  // added nothing.
  absl::Status Add(const Tensor& keys, const Tensor& values, const AddOptions& options,
                   Entries* entries, MemoryReservation* memory) const;
  absl::Status Replace(const Tensor& keys, const Tensor& values, AddOptions options);
  // Doubles the number of places until `entries` fit.
  void GrowBuckets(int64_t entries);

  absl::Status AllocateExport(KernelContext& ctx, int64_t rows, Tensor** keys,
                              Tensor** values) const;
  absl::Status ExportDense(KernelContext& ctx) const;
  // Returns the number of used rows before each row, or -1 for a free row.
  absl::StatusOr<Tensor> PlacesOfRows(KernelContext& ctx) const;
  void WriteKey(absl::string_view key, int64_t at, Tensor* keys) const;
  // Return TensorFlow's hash of a key.
  uint64_t TensorFlowHash(int64_t key) const { return static_cast<uint64_t>(key); }
  uint64_t TensorFlowHash(absl::string_view key) const;

  const Spec spec_;
  const int64_t value_elements_;
  const std::shared_ptr<Allocator> allocator_;
  const KeyIndex::Secret secret_;
  // Guards the rest. core/mutex.h has no lock that readers share.
  mutable std::shared_mutex mutex_;
  bool initialized_ = false;
  int64_t num_buckets_;
  Entries entries_;
  MemoryReservation memory_;
};

// Returns the types that values may have.
DataTypeVector TableValueTypes();

// Returns the table of input `i`. Returns NOT_FOUND with the name of the table if it does not
// exist, INVALID_ARGUMENT if the resource is not a table.
absl::StatusOr<std::shared_ptr<LookupTable>> TableOf(const KernelContext& ctx, int i);

}  // namespace gradflow

#endif  // GRADFLOW_OPS_LOOKUP_TABLE_H_
