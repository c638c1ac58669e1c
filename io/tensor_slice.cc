#include "gradflow/io/tensor_slice.h"

#include <algorithm>
#include <cstring>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "gradflow/core/status.h"
#include "gradflow/proto/tensor_slice.pb.h"

namespace gradflow::internal {
namespace {

// ---- The order-preserving code of keys ----

void AppendNumber(uint64_t value, std::string* out) {
  std::string digits;
  for (; value > 0; value >>= 8) digits.push_back(static_cast<char>(value));
  out->push_back(static_cast<char>(digits.size()));
  out->append(digits.rbegin(), digits.rend());
}

void AppendString(absl::string_view text, std::string* out) {
  for (const char c : text) {
    out->push_back(c);
    if (c == '\0') out->push_back('\xff');
    if (c == '\xff') out->push_back('\0');
  }
  out->push_back('\0');
  out->push_back('\1');
}

// Appends the number in the least number n of groups of 7 bits that hold it and its sign. The first
// n bits are ones, and the next a zero, for a nonnegative number, and inverted for a negative one.
void AppendSigned(int64_t value, std::string* out) {
  const uint64_t magnitude = value < 0 ? ~static_cast<uint64_t>(value) : value;
  int bits = 1;
  while (bits < 64 && magnitude >> (bits - 1) != 0) ++bits;
  const int bytes = (bits + 6) / 7;
  unsigned char code[10];
  for (int i = 0; i < bytes; ++i) {
    const int shift = 8 * (bytes - 1 - i);
    code[i] = static_cast<unsigned char>(shift < 64 ? value >> shift : (value < 0 ? -1 : 0));
  }
  for (int i = 0; i < bytes; ++i) code[i / 8] ^= static_cast<unsigned char>(0x80 >> i % 8);
  out->append(reinterpret_cast<const char*>(code), bytes);
}

}  // namespace

absl::StatusOr<TensorSlice> TensorSlice::FromProto(const TensorSliceProto& proto) {
  TensorSlice slice;
  for (const TensorSliceProto::Extent& extent : proto.extent()) {
    Extent& added = slice.extents.emplace_back();
    if (extent.has_length_case() != TensorSliceProto::Extent::kLength) continue;
    added = {extent.start(), extent.length()};
    if (added.start < 0 || added.length < 0) {
      return errors::InvalidArgument("a slice has the range [", added.start, ", ", added.start,
                                     " + ", added.length, ")");
    }
  }
  return slice;
}

void TensorSlice::ToProto(TensorSliceProto* proto) const {
  proto->Clear();
  for (const Extent& extent : extents) {
    TensorSliceProto::Extent* const added = proto->add_extent();
    if (extent.length < 0) continue;
    added->set_start(extent.start);
    added->set_length(extent.length);
  }
}

absl::StatusOr<TensorSlice> TensorSlice::Resolve(const TensorShape& shape) const {
  if (static_cast<int>(extents.size()) != shape.dims()) {
    return errors::InvalidArgument("a slice of ", extents.size(), " dimensions is not of shape ",
                                   shape.DebugString());
  }
  TensorSlice resolved = *this;
  for (int d = 0; d < shape.dims(); ++d) {
    Extent& extent = resolved.extents[d];
    const int64_t size = shape.dim_size(d);
    if (extent.length < 0) {
      extent = {0, size};
    } else if (extent.start < 0 || extent.start > size || extent.length > size - extent.start) {
      return errors::InvalidArgument("dimension ", d, " of a slice, [", extent.start, ", ",
                                     extent.start, " + ", extent.length, "), is not within shape ",
                                     shape.DebugString());
    }
  }
  return resolved;
}

TensorShape TensorSlice::Shape() const {
  DimVector dims;
  for (const Extent& extent : extents) dims.push_back(extent.length);
  return TensorShape(dims);
}

absl::StatusOr<ShapeAndSlice> ParseShapeAndSlice(absl::string_view text) {
  const auto fault = [&](absl::string_view what) {
    return errors::InvalidArgument("shape_and_slice '", errors::Printable(text), "': ", what);
  };
  std::vector<absl::string_view> parts = absl::StrSplit(text, ' ');
  if (parts.size() < 2) return fault("expected the dimensions and a slice");
  const absl::string_view slice_text = parts.back();
  parts.pop_back();
  DimVector dims;
  for (const absl::string_view part : parts) {
    int64_t size = 0;
    if (!absl::SimpleAtoi(part, &size)) return fault("a dimension is not a number");
    dims.push_back(size);
  }
  absl::StatusOr<TensorShape> shape = TensorShape::Make(dims);
  if (!shape.ok()) return fault(shape.status().message());
  ShapeAndSlice result = {*std::move(shape), {}};
  for (const absl::string_view part : absl::StrSplit(slice_text, ':')) {
    TensorSlice::Extent& extent = result.slice.extents.emplace_back();
    if (part == "-") continue;
    const std::vector<absl::string_view> numbers = absl::StrSplit(part, ',');
    if (numbers.size() != 2 || !absl::SimpleAtoi(numbers[0], &extent.start) ||
        !absl::SimpleAtoi(numbers[1], &extent.length) || extent.start < 0 || extent.length <= 0) {
      return fault("expected '-' or 'start,length' for each dimension of the slice");
    }
  }
  const absl::Status fits = result.slice.Resolve(result.shape).status();
  if (!fits.ok()) return fault(fits.message());
  return result;
}

std::string EncodeSliceKey(absl::string_view name, const TensorSlice& slice) {
  std::string key;
  AppendNumber(0, &key);
  AppendString(name, &key);
  AppendNumber(slice.extents.size(), &key);
  for (const TensorSlice::Extent& extent : slice.extents) {
    AppendSigned(extent.length < 0 ? 0 : extent.start, &key);
    AppendSigned(extent.length < 0 ? -1 : extent.length, &key);
  }
  return key;
}

int64_t NumCommonElements(const TensorSlice& a, const TensorSlice& b) {
  // Unsigned: an empty intersection of huge slices overflows before its empty dimension.
  uint64_t count = 1;
  for (size_t d = 0; d < a.extents.size(); ++d) {
    const TensorSlice::Extent& x = a.extents[d];
    const TensorSlice::Extent& y = b.extents[d];
    const int64_t size =
        std::min(x.start + x.length, y.start + y.length) - std::max(x.start, y.start);
    if (size <= 0) return 0;
    count *= static_cast<uint64_t>(size);
  }
  return static_cast<int64_t>(count);
}

int64_t CopySlice(const Tensor& from, const TensorSlice& from_slice, const TensorSlice& to_slice,
                  Tensor* to) {
  const size_t dims = to_slice.extents.size();
  // The first and the number of the common elements of each dimension.
  std::vector<int64_t> start(dims);
  std::vector<int64_t> size(dims);
  int64_t count = 1;
  for (size_t d = 0; d < dims; ++d) {
    const TensorSlice::Extent& a = from_slice.extents[d];
    const TensorSlice::Extent& b = to_slice.extents[d];
    start[d] = std::max(a.start, b.start);
    size[d] = std::min(a.start + a.length, b.start + b.length) - start[d];
    if (size[d] <= 0) return 0;
    count *= size[d];
  }
  const int64_t run = dims == 0 ? 1 : size[dims - 1];
  std::vector<int64_t> at(dims);
  for (int64_t done = 0; done < count; done += run) {
    int64_t from_index = 0;
    int64_t to_index = 0;
    for (size_t d = 0; d < dims; ++d) {
      const TensorSlice::Extent& a = from_slice.extents[d];
      const TensorSlice::Extent& b = to_slice.extents[d];
      from_index = from_index * a.length + start[d] + at[d] - a.start;
      to_index = to_index * b.length + start[d] + at[d] - b.start;
    }
    if (from.dtype() == DT_STRING) {
      std::copy_n(from.span<tstring>().begin() + from_index, run,
                  to->span<tstring>().begin() + to_index);
    } else {
      const int64_t bytes = DataTypeSize(from.dtype());
      std::memcpy(static_cast<char*>(to->raw_data()) + to_index * bytes,
                  static_cast<const char*>(from.raw_data()) + from_index * bytes, run * bytes);
    }
    for (size_t d = dims < 2 ? 0 : dims - 1; d-- > 0;) {
      if (++at[d] < size[d]) break;
      at[d] = 0;
    }
  }
  return count;
}

}  // namespace gradflow::internal
