#include "gradflow/core/tensor_proto.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <new>
#include <string>

#include "gradflow/core/out_parameter.h"
#include "gradflow/core/parallel.h"
#include "gradflow/core/status.h"
#include "gradflow/core/string_content.h"
#include "gradflow/core/variant.h"
#include "gradflow/core/variant_proto.h"
#include "gradflow/proto/tensor.pb.h"

namespace gradflow {
namespace {

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
              "tensor_content is little-endian and is copied without conversion");

// The typed lists of a TensorProto.
enum ListId {
  kHalfVal,
  kFloatVal,
  kDoubleVal,
  kIntVal,
  kStringVal,
  kScomplexVal,
  kInt64Val,
  kBoolVal,
  kDcomplexVal,
  kUint32Val,
  kUint64Val,
  kFloat8Val,
  kResourceHandleVal,
  kVariantVal,
  kNumLists,
};

struct ValueList {
  const char* name;
  int64_t size;
  // Null for lists of messages and strings.
  const void* data;
};

std::array<ValueList, kNumLists> Lists(const TensorProto& proto) {
  const auto list = [](const char* name, const auto& values) {
    return ValueList{name, static_cast<int64_t>(values.size()), values.data()};
  };
  return {{
      list("half_val", proto.half_val()),
      list("float_val", proto.float_val()),
      list("double_val", proto.double_val()),
      list("int_val", proto.int_val()),
      {"string_val", proto.string_val_size(), nullptr},
      list("scomplex_val", proto.scomplex_val()),
      list("int64_val", proto.int64_val()),
      list("bool_val", proto.bool_val()),
      list("dcomplex_val", proto.dcomplex_val()),
      list("uint32_val", proto.uint32_val()),
      list("uint64_val", proto.uint64_val()),
      list("float8_val", proto.float8_val()),
      {"resource_handle_val", proto.resource_handle_val_size(), nullptr},
      {"variant_val", proto.variant_val_size(), nullptr},
  }};
}

// The list that holds elements of `dtype`. REQUIRES: DataTypeCanBeTensor(dtype)
ListId ListOf(DataType dtype) {
  switch (dtype) {
    case DT_HALF:
    case DT_BFLOAT16:
      return kHalfVal;
    case DT_FLOAT:
      return kFloatVal;
    case DT_DOUBLE:
      return kDoubleVal;
    case DT_STRING:
      return kStringVal;
    case DT_COMPLEX64:
      return kScomplexVal;
    case DT_COMPLEX128:
      return kDcomplexVal;
    case DT_INT64:
      return kInt64Val;
    case DT_BOOL:
      return kBoolVal;
    case DT_UINT32:
      return kUint32Val;
    case DT_UINT64:
      return kUint64Val;
    case DT_FLOAT8_E5M2:
    case DT_FLOAT8_E4M3FN:
    case DT_FLOAT8_E4M3FNUZ:
    case DT_FLOAT8_E4M3B11FNUZ:
    case DT_FLOAT8_E5M2FNUZ:
      return kFloat8Val;
    case DT_VARIANT:
      return kVariantVal;
    default:
      return kIntVal;
  }
}

// Returns the number of list values per element.
int64_t ValuesPerElement(DataType dtype) { return DataTypeIsComplex(dtype) ? 2 : 1; }

// Allowed values in int_val and half_val, both lists of int32, for an element type.
struct IntRange {
  int32_t min;
  int32_t max;
};

template <typename T>
constexpr IntRange RangeOf() {
  return {std::numeric_limits<T>::min(), std::numeric_limits<T>::max()};
}

IntRange RangeOf(DataType dtype) {
  switch (dtype) {
    case DT_INT8:
    case DT_QINT8:
      return RangeOf<int8_t>();
    case DT_UINT8:
    case DT_QUINT8:
      return RangeOf<uint8_t>();
    case DT_INT16:
    case DT_QINT16:
      return RangeOf<int16_t>();
    case DT_UINT16:
    case DT_QUINT16:
    case DT_HALF:  // its bits
    case DT_BFLOAT16:
      return RangeOf<uint16_t>();
    case DT_INT4:
      return {-8, 7};
    case DT_UINT4:
      return {0, 15};
    case DT_INT2:
      return {-2, 1};
    case DT_UINT2:
      return {0, 3};
    default:
      return RangeOf<int32_t>();
  }
}

absl::Status CheckInts(const ValueList& list, DataType dtype) {
  const IntRange range = RangeOf(dtype);
  const auto* values = static_cast<const int32_t*>(list.data);
  const auto* end = values + list.size;
  const auto* bad =
      std::find_if(values, end, [&](int32_t v) { return v < range.min || v > range.max; });
  if (bad == end) return absl::OkStatus();
  return errors::InvalidArgument("value ", *bad, " at index ", bad - values, " of ", list.name,
                                 " does not fit type ", DataTypeString(dtype), ", whose range is [",
                                 range.min, ", ", range.max, "]");
}

absl::Status CheckContent(const TensorProto& proto, const TensorShape& shape) {
  if (proto.dtype() == DT_STRING) {
    return internal::CheckStringContent(proto.tensor_content(), shape.num_elements());
  }
  const int size = DataTypeSize(proto.dtype());
  const int64_t expected = MultiplyWithoutOverflow(shape.num_elements(), size);
  const auto found = static_cast<int64_t>(proto.tensor_content().size());
  if (found == expected) return absl::OkStatus();
  return errors::InvalidArgument("expected tensor_content of ", shape.num_elements(),
                                 " elements of ", size, " bytes (type ",
                                 DataTypeString(proto.dtype()), ", shape ", shape.DebugString(),
                                 "), but found ", found, " bytes");
}

absl::Status CheckList(const TensorProto& proto, const ValueList& list, const TensorShape& shape) {
  const DataType dtype = proto.dtype();
  const int64_t per_element = ValuesPerElement(dtype);
  if (list.size % per_element != 0) {
    return errors::InvalidArgument("expected an even number of values in ", list.name,
                                   " (real and imaginary parts), but found ", list.size);
  }
  if (list.size / per_element > shape.num_elements()) {
    return errors::InvalidArgument("expected at most ", shape.num_elements(), " elements in ",
                                   list.name, " for shape ", shape.DebugString(), ", but found ",
                                   list.size / per_element);
  }
  const ListId id = ListOf(dtype);
  return id == kIntVal || id == kHalfVal ? CheckInts(list, dtype) : absl::OkStatus();
}

absl::Status CheckVariants(const TensorProto& proto, int depth);

// The depth of a tensor whose variants are not checked.
constexpr int kUnchecked = -1;

// Returns the shape of the tensor if `proto` is valid. The tensor is in `depth` variants.
absl::StatusOr<TensorShape> CheckedShape(const TensorProto& proto, int depth = 0) {
  const DataType dtype = proto.dtype();
  if (!DataTypeCanBeTensor(dtype)) {
    return errors::InvalidArgument("no tensor can have type ", DataTypeString(dtype));
  }
  GRADFLOW_ASSIGN_OR_RETURN(TensorShape shape, TensorShape::Make(proto.tensor_shape()));
  const std::array<ValueList, kNumLists> lists = Lists(proto);
  const ValueList& own = lists[ListOf(dtype)];
  for (const ValueList& list : lists) {
    if (list.size > 0 && &list != &own) {
      return errors::InvalidArgument("expected the values of a tensor of type ",
                                     DataTypeString(dtype), " in ", own.name, ", but found ",
                                     list.size, " in ", list.name);
    }
  }
  if (proto.tensor_content().empty()) {
    GRADFLOW_RETURN_IF_ERROR(CheckList(proto, own, shape));
  } else if (own.size > 0) {
    return errors::InvalidArgument("expected values either in tensor_content or in ", own.name,
                                   ", but found both");
  } else {
    GRADFLOW_RETURN_IF_ERROR(CheckContent(proto, shape));
  }
  if (depth != kUnchecked) GRADFLOW_RETURN_IF_ERROR(CheckVariants(proto, depth));
  return shape;
}

absl::Status CheckVariants(const TensorProto& proto, int depth) {
  for (int i = 0; i < proto.variant_val_size(); ++i) {
    const auto& tensors = proto.variant_val(i).tensors();
    for (int k = 0; k < tensors.size(); ++k) {
      if (depth >= internal::kMaxVariantDepth) {
        return errors::InvalidArgument("expected at most ", internal::kMaxVariantDepth,
                                       " levels of variants in variants, but found more");
      }
      const absl::Status status = CheckedShape(tensors[k], depth + 1).status();
      if (status.ok()) continue;
      // The outermost place is enough: all of them could be long.
      if (depth > 0) return status;
      return errors::Prefix(absl::StrCat("variant_val[", i, "].tensors[", k, "]: "), status);
    }
  }
  return absl::OkStatus();
}

// Canonicalizes untrusted bytes. A bool other than 0 and 1 would be undefined behavior, so nonzero
// bytes become 1. Integers narrower than 8 bits are sign- or zero-extended from their low bits.
void NormalizeBytes(DataType dtype, int64_t size, uint8_t* bytes) {
  const auto apply = [&](auto fn) { std::transform(bytes, bytes + size, bytes, fn); };
  switch (dtype) {
    case DT_BOOL:
      return apply([](uint8_t b) { return b != 0; });
    case DT_INT4:
      return apply([](uint8_t b) { return ((b & 0xf) ^ 0x8) - 0x8; });
    case DT_UINT4:
      return apply([](uint8_t b) { return b & 0xf; });
    case DT_INT2:
      return apply([](uint8_t b) { return ((b & 0x3) ^ 0x2) - 0x2; });
    case DT_UINT2:
      return apply([](uint8_t b) { return b & 0x3; });
    default:
      return;
  }
}

// Narrows int32 values to elements of the width of Word. REQUIRES: the values fit
template <typename Word>
void NarrowInts(const ValueList& list, void* to) {
  const auto* values = static_cast<const int32_t*>(list.data);
  std::transform(values, values + list.size, static_cast<Word*>(to),
                 [](int32_t v) { return static_cast<Word>(v); });
}

// Fills elements [have, count) with copies of element have - 1, or with zeros if `have` is 0.
void FillRest(const RunContext& run, int64_t have, int64_t count, size_t element, char* data) {
  if (have == 0) std::memset(data, 0, element);
  const int64_t first = std::max<int64_t>(have, 1);
  const char* const last = data + (first - 1) * element;
  ParallelFor(run, count - first, BlockSizeForCost(0.05 * static_cast<double>(element)),
              [&](int64_t begin, int64_t end) {
                // Doubles the copied prefix each step, up to a size that stays in the cache.
                constexpr int64_t kMaxStep = 1024;
                char* const target = data + (first + begin) * element;
                std::memcpy(target, last, element);
                for (int64_t done = 1; done < end - begin;) {
                  const int64_t step = std::min({done, end - begin - done, kMaxStep});
                  std::memcpy(target + done * element, target, step * element);
                  done += step;
                }
              });
}

void CopyList(const RunContext& run, const ValueList& list, Tensor* tensor) {
  const DataType dtype = tensor->dtype();
  const size_t element = DataTypeSize(dtype);
  auto* data = static_cast<char*>(tensor->raw_data());
  const int64_t have = list.size / ValuesPerElement(dtype);
  const ListId id = ListOf(dtype);
  if ((id == kIntVal || id == kHalfVal) && element == 1) {
    NarrowInts<uint8_t>(list, data);
  } else if ((id == kIntVal || id == kHalfVal) && element == 2) {
    NarrowInts<uint16_t>(list, data);
  } else if (have > 0) {
    std::memcpy(data, list.data, have * element);
  }
  FillRest(run, have, tensor->NumElements(), element, data);
}

absl::Status CopyStrings(const RunContext& run, const TensorProto& proto, Tensor* tensor) {
  const auto& from = proto.string_val();
  const std::string& content = proto.tensor_content();
  const auto strings = tensor->flat<tstring>();
  // One long string may fill a large tensor: this copy alone can be much larger than the proto.
  size_t bytes = content.size();
  for (const std::string& s : from) bytes += s.size();
  if (!from.empty()) {
    const auto repeats = static_cast<size_t>(strings.size() - from.size());
    const size_t length = from.rbegin()->size();
    if (length > 0 && repeats > (std::numeric_limits<size_t>::max() - bytes) / length) {
      bytes = std::numeric_limits<size_t>::max();
    } else {
      bytes += repeats * length;
    }
  }
  GRADFLOW_RETURN_IF_ERROR(tensor->ChargeStrings(bytes));
  try {
    auto to = strings.begin();
    if (!content.empty()) {
      internal::ForEachString(content, strings.size(), strings.size(),
                              [&](absl::string_view s) { (to++)->assign(s.data(), s.size()); });
    } else if (!from.empty()) {
      to = std::copy(from.begin(), from.end(), to);
      const tstring& last = *from.rbegin();
      const double nanoseconds = 20 + 0.05 * static_cast<double>(last.size());
      ParallelFor(run, strings.end() - to, BlockSizeForCost(nanoseconds),
                  [&](int64_t begin, int64_t end) { std::fill(to + begin, to + end, last); });
    }
  } catch (const std::bad_alloc&) {
    return errors::ResourceExhausted("out of memory for the strings of a tensor of shape ",
                                     tensor->shape().DebugString());
  }
  return absl::OkStatus();
}

absl::Status CopyVariants(const RunContext& run, const TensorProto& proto,
                          const std::shared_ptr<Allocator>& allocator, Tensor* tensor) {
  const auto& from = proto.variant_val();
  const auto to = tensor->span<Variant>();
  // Copies of an encoded value share its message.
  size_t bytes = 0;
  for (const VariantTensorDataProto& value : from) bytes += value.SpaceUsedLong();
  GRADFLOW_RETURN_IF_ERROR(tensor->ChargeVariants(bytes));
  try {
    for (int i = 0; i < from.size(); ++i) {
      GRADFLOW_ASSIGN_OR_RETURN(to[i], internal::ReadVariant(from[i], allocator));
    }
    if (from.empty()) return absl::OkStatus();
    const Variant& last = to[from.size() - 1];
    ParallelFor(run, static_cast<int64_t>(to.size()) - from.size(), BlockSizeForCost(20),
                [&](int64_t begin, int64_t end) {
                  std::fill(to.begin() + from.size() + begin, to.begin() + from.size() + end, last);
                });
  } catch (const std::bad_alloc&) {
    return errors::ResourceExhausted("out of memory for the variants of a tensor of shape ",
                                     tensor->shape().DebugString());
  }
  return absl::OkStatus();
}

// Appends `count` values of the tensor to `field`. Storage is their type; complex elements are two
// values.
template <typename Storage, typename Field>
void AddValues(const Tensor& tensor, int64_t count, Field* field) {
  const auto* values = static_cast<const Storage*>(tensor.raw_data());
  field->Add(values, values + count * ValuesPerElement(tensor.dtype()));
}

// Writes the first `count` elements to the typed list.
// REQUIRES: 0 < count <= tensor.NumElements()
void WriteList(const Tensor& tensor, int64_t count, TensorProto* proto) {
  const DataType dtype = tensor.dtype();
  switch (ListOf(dtype)) {
    case kHalfVal:
      return AddValues<uint16_t>(tensor, count, proto->mutable_half_val());
    case kFloatVal:
      return AddValues<float>(tensor, count, proto->mutable_float_val());
    case kDoubleVal:
      return AddValues<double>(tensor, count, proto->mutable_double_val());
    case kScomplexVal:
      return AddValues<float>(tensor, count, proto->mutable_scomplex_val());
    case kDcomplexVal:
      return AddValues<double>(tensor, count, proto->mutable_dcomplex_val());
    case kInt64Val:
      return AddValues<int64_t>(tensor, count, proto->mutable_int64_val());
    case kBoolVal:
      return AddValues<bool>(tensor, count, proto->mutable_bool_val());
    case kUint32Val:
      return AddValues<uint32_t>(tensor, count, proto->mutable_uint32_val());
    case kUint64Val:
      return AddValues<uint64_t>(tensor, count, proto->mutable_uint64_val());
    case kFloat8Val:
      proto->set_float8_val(tensor.raw_data(), count);
      return;
    case kStringVal:
      for (const tstring& s : tensor.span<tstring>().first(count)) proto->add_string_val(s);
      return;
    case kResourceHandleVal:
    case kVariantVal:
      return;
    default:
      break;
  }
  const bool is_signed = RangeOf(dtype).min < 0;
  switch (DataTypeSize(dtype)) {
    case 1:
      return is_signed ? AddValues<int8_t>(tensor, count, proto->mutable_int_val())
                       : AddValues<uint8_t>(tensor, count, proto->mutable_int_val());
    case 2:
      return is_signed ? AddValues<int16_t>(tensor, count, proto->mutable_int_val())
                       : AddValues<uint16_t>(tensor, count, proto->mutable_int_val());
    default:
      return AddValues<int32_t>(tensor, count, proto->mutable_int_val());
  }
}

// Returns true if the tensor has elements and all have the same bits.
bool IsUniform(const Tensor& tensor) {
  if (!tensor.IsInitialized() || tensor.NumElements() == 0) return false;
  if (tensor.dtype() == DT_VARIANT || tensor.dtype() == DT_RESOURCE) return false;
  if (tensor.dtype() == DT_STRING) {
    const auto strings = tensor.span<tstring>();
    return std::all_of(strings.begin(), strings.end(),
                       [&](const tstring& s) { return s == strings[0]; });
  }
  // All elements are equal iff each is equal to its predecessor.
  const absl::string_view bytes = tensor.tensor_data();
  const size_t element = DataTypeSize(tensor.dtype());
  return std::memcmp(bytes.data(), bytes.data() + element, bytes.size() - element) == 0;
}

// Writes type and shape. An uninitialized tensor has nothing else.
void WriteHeader(const Tensor& tensor, TensorProto* proto) {
  proto->Clear();
  proto->set_dtype(tensor.dtype());
  tensor.shape().AsProto(proto->mutable_tensor_shape());
}

}  // namespace

namespace {

// Returns the tensor of a message that is valid and has this shape.
absl::StatusOr<Tensor> Decode(const TensorProto& proto, const TensorShape& shape,
                              const std::shared_ptr<Allocator>& allocator, StopToken* stop) {
  GRADFLOW_ASSIGN_OR_RETURN(Tensor tensor, Tensor::Allocate(allocator, proto.dtype(), shape));
  if (tensor.NumElements() == 0) return tensor;
  RunContext run;
  run.stop = stop;
  // Runs loops on the calling thread, because the caller may not be in a run.
  run.max_loop_threads = 1;
  if (tensor.dtype() == DT_STRING) {
    GRADFLOW_RETURN_IF_ERROR(CopyStrings(run, proto, &tensor));
  } else if (tensor.dtype() == DT_VARIANT) {
    GRADFLOW_RETURN_IF_ERROR(CopyVariants(run, proto, allocator, &tensor));
  } else if (const std::string& content = proto.tensor_content(); !content.empty()) {
    std::memcpy(tensor.raw_data(), content.data(), content.size());
    NormalizeBytes(tensor.dtype(), content.size(), static_cast<uint8_t*>(tensor.raw_data()));
  } else {
    CopyList(run, Lists(proto)[ListOf(tensor.dtype())], &tensor);
  }
  // A stopped loop leaves elements unset.
  if (run.ShouldStop()) return absl::CancelledError("the run has been stopped");
  return tensor;
}

}  // namespace

absl::StatusOr<Tensor> TensorFromProto(const TensorProto& proto,
                                       const std::shared_ptr<Allocator>& allocator,
                                       StopToken* stop) {
  GRADFLOW_ASSIGN_OR_RETURN(const TensorShape shape, CheckedShape(proto));
  return Decode(proto, shape, allocator, stop);
}

absl::StatusOr<Tensor> internal::ReadTensor(const TensorProto& proto,
                                            const std::shared_ptr<Allocator>& allocator) {
  GRADFLOW_ASSIGN_OR_RETURN(const TensorShape shape, CheckedShape(proto, kUnchecked));
  return Decode(proto, shape, allocator, nullptr);
}

absl::Status ValidateTensorProto(const TensorProto& proto) { return CheckedShape(proto).status(); }

int64_t TensorProtoBytes(const TensorProto& proto) {
  const absl::StatusOr<TensorShape> shape = TensorShape::Make(proto.tensor_shape());
  if (!shape.ok()) return -1;
  int64_t element = DataTypeSize(proto.dtype());
  double more = 0;
  if (proto.dtype() == DT_STRING) {
    // The last string of the list fills the rest.
    element = sizeof(tstring);
    if (proto.string_val_size() > 0) {
      element += static_cast<int64_t>(proto.string_val().rbegin()->size());
    }
  } else if (proto.dtype() == DT_VARIANT) {
    element = sizeof(Variant);
    for (const VariantTensorDataProto& value : proto.variant_val()) {
      // A byte may stand for an element of a list that is not set.
      more += static_cast<double>(value.metadata().size() * sizeof(Tensor));
      for (const TensorProto& tensor : value.tensors()) {
        const int64_t bytes = TensorProtoBytes(tensor);
        if (bytes < 0) return -1;
        more += static_cast<double>(bytes);
      }
    }
  }
  const int64_t bytes = MultiplyWithoutOverflow(shape->num_elements(), element);
  const double total = static_cast<double>(bytes) + more;
  // Less than 2^63, and exact if there are no variants.
  if (bytes < 0 || total > 9e18) return -1;
  return bytes + static_cast<int64_t>(more);
}

void TensorToProto(const Tensor& tensor, TensorProto* proto) {
  internal::RequireOut(proto, "TensorToProto", "proto");
  internal::EncodingLimits limits;
  internal::WriteTensor(tensor, proto, &limits);
}

void internal::WriteTensor(const Tensor& tensor, TensorProto* proto, EncodingLimits* limits) {
  limits->bytes -= sizeof(TensorProto) + tensor.TotalBytes();
  if (tensor.dtype() == DT_VARIANT) {
    WriteHeader(tensor, proto);
    for (const Variant& variant : tensor.span<Variant>()) {
      WriteVariant(variant, proto->add_variant_val(), limits);
      if (limits->bytes < 0) break;
    }
    return;
  }
  if (!IsUniform(tensor)) return tensor.AsProtoTensorContent(proto);
  WriteHeader(tensor, proto);
  WriteList(tensor, 1, proto);
}

void Tensor::AsProtoField(TensorProto* proto) const {
  internal::RequireOut(proto, "Tensor::AsProtoField", "proto");
  // The size of a repeated field must fit in an int.
  const int64_t values = MultiplyWithoutOverflow(NumElements(), ValuesPerElement(dtype_));
  if (values > std::numeric_limits<int>::max() || dtype_ == DT_VARIANT) {
    return AsProtoTensorContent(proto);
  }
  WriteHeader(*this, proto);
  if (IsInitialized() && NumElements() > 0) WriteList(*this, NumElements(), proto);
}

void Tensor::AsProtoTensorContent(TensorProto* proto) const {
  internal::RequireOut(proto, "Tensor::AsProtoTensorContent", "proto");
  if (dtype_ == DT_VARIANT) return TensorToProto(*this, proto);
  WriteHeader(*this, proto);
  if (!IsInitialized() || NumElements() == 0) return;
  if (dtype_ == DT_STRING) return WriteList(*this, NumElements(), proto);
  // A resource exists in its process alone.
  if (dtype_ == DT_RESOURCE) return;
  const absl::string_view bytes = tensor_data();
  proto->set_tensor_content(bytes.data(), bytes.size());
}

bool Tensor::FromProto(const TensorProto& proto) {
  absl::StatusOr<Tensor> tensor = TensorFromProto(proto);
  if (!tensor.ok()) return false;
  *this = *std::move(tensor);
  return true;
}

}  // namespace gradflow
