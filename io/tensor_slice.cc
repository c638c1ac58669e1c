#include "gradflow/io/tensor_slice.h"

#include <algorithm>
#include <cstring>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
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

// Appends the number in n groups of 7 bits, where n is the smallest number of groups that hold the
// number and its sign. For a nonnegative number, the first n bits are ones and the next bit is
// zero. For a negative number, these bits are inverted.
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

// ---- Overlaps ----

// Finds two slices with a common element. Repeatedly cuts a large set of slices in two at a
// position of a dimension: one part has the slices with elements before the position, the other has
// the slices with elements after it. Two overlapping slices have a part in common. Small parts, and
// parts that no cut makes much smaller, are compared slice by slice.
class OverlapSearch {
 public:
  explicit OverlapSearch(absl::Span<const TensorSlice> slices)
      : slices_(slices), work_left_(kMinWork + kWorkPerSlice * slices.size()) {}

  // Compares the slices of these indices.
  absl::Status Run(std::vector<int32_t> members) {
    std::vector<std::vector<int32_t>> parts;
    parts.push_back(std::move(members));
    while (!parts.empty()) {
      const std::vector<int32_t> part = std::move(parts.back());
      parts.pop_back();
      Cut cut;
      if (part.size() > kMaxCompared && slices_.size() > kMaxUncut)
        GRADFLOW_RETURN_IF_ERROR(FindCut(part, &cut));
      if (cut.dimension < 0) {
        GRADFLOW_RETURN_IF_ERROR(CompareAll(part));
        continue;
      }
      std::vector<int32_t> before;
      std::vector<int32_t> behind;
      for (const int32_t i : part) {
        const TensorSlice::Extent& extent = slices_[i].extents[cut.dimension];
        if (extent.start < cut.position) before.push_back(i);
        if (extent.start + extent.length > cut.position) behind.push_back(i);
      }
      parts.push_back(std::move(behind));
      parts.push_back(std::move(before));
    }
    return absl::OkStatus();
  }

 private:
  // The approximate number of comparisons. The minimum allows comparing all pairs of kMaxUncut
  // slices.
  static constexpr size_t kMinWork = size_t{1} << 22;
  static constexpr size_t kWorkPerSlice = 256;
  // Sets up to this size are not cut.
  static constexpr size_t kMaxUncut = 1000;
  // Parts of larger sets are not cut if they have at most this size.
  static constexpr size_t kMaxCompared = 16;

  struct Cut {
    // -1 if no cut was found.
    int dimension = -1;
    int64_t position = 0;
    // The sizes of both parts together.
    size_t total = 0;
  };

  absl::Status Spend(size_t work) {
    if (work > work_left_) {
      return errors::ResourceExhausted("its ", slices_.size(), " slices are too many to compare");
    }
    work_left_ -= work;
    return absl::OkStatus();
  }

  // Finds the cut whose parts together have the fewest slices. Rejects cuts that leave almost all
  // slices in one part. Takes the first dimension that few slices cross.
  absl::Status FindCut(const std::vector<int32_t>& part, Cut* best) {
    // Sorting takes longer than a comparison.
    constexpr size_t kSortWork = 8;
    const size_t size = part.size();
    const size_t max_size = size - size / 5;
    std::vector<int64_t> starts(size);
    std::vector<int64_t> ends(size);
    const int dims = static_cast<int>(slices_[part[0]].extents.size());
    for (int d = 0; d < dims; ++d) {
      GRADFLOW_RETURN_IF_ERROR(Spend(size));
      for (size_t i = 0; i < size; ++i) {
        const TensorSlice::Extent& extent = slices_[part[i]].extents[d];
        starts[i] = extent.start;
        ends[i] = extent.start + extent.length;
      }
      if (*std::max_element(starts.begin(), starts.end()) <
          *std::min_element(ends.begin(), ends.end())) {
        continue;  // all slices have a common position
      }
      GRADFLOW_RETURN_IF_ERROR(Spend(kSortWork * size));
      std::sort(starts.begin(), starts.end());
      std::sort(ends.begin(), ends.end());
      // The number of slices that end at or before the position.
      size_t ended = 0;
      for (size_t before = 1; before <= max_size; ++before) {
        if (starts[before] == starts[before - 1]) continue;
        while (ended < size && ends[ended] <= starts[before]) ++ended;
        const size_t total = before + (size - ended);
        if (size - ended <= max_size && (best->dimension < 0 || total < best->total)) {
          *best = {d, starts[before], total};
        }
      }
      if (best->dimension >= 0 && best->total <= size + size / 8) break;
    }
    return absl::OkStatus();
  }

  absl::Status CompareAll(const std::vector<int32_t>& part) {
    for (size_t i = 0; i < part.size(); ++i) {
      GRADFLOW_RETURN_IF_ERROR(Spend(i));
      for (size_t k = 0; k < i; ++k) {
        const TensorSlice& a = slices_[part[k]];
        const TensorSlice& b = slices_[part[i]];
        if (!Overlap(a, b)) continue;
        return errors::InvalidArgument("slices '", a.DebugString(), "' and '", b.DebugString(),
                                       "' overlap");
      }
    }
    return absl::OkStatus();
  }

  static bool Overlap(const TensorSlice& a, const TensorSlice& b) {
    for (size_t d = 0; d < a.extents.size(); ++d) {
      const TensorSlice::Extent& x = a.extents[d];
      const TensorSlice::Extent& y = b.extents[d];
      if (x.start + x.length <= y.start || y.start + y.length <= x.start) return false;
    }
    return true;
  }

  const absl::Span<const TensorSlice> slices_;
  size_t work_left_;
};

// Returns an element of `whole` that no slice has. REQUIRES: the slices are disjoint and have fewer
// elements of `whole` than it has
std::vector<int64_t> UncoveredElement(absl::Span<const TensorSlice> slices,
                                      const TensorSlice& whole) {
  TensorSlice region = whole;
  for (size_t d = 0; d < region.extents.size(); ++d) {
    TensorSlice::Extent& extent = region.extents[d];
    while (extent.length > 1) {
      const TensorSlice::Extent both = extent;
      extent.length /= 2;
      int64_t covered = 0;
      for (const TensorSlice& slice : slices) covered += NumCommonElements(slice, region);
      if (covered == region.Shape().num_elements()) {
        extent = {both.start + extent.length, both.length - extent.length};
      }
    }
  }
  std::vector<int64_t> element;
  for (const TensorSlice::Extent& extent : region.extents) element.push_back(extent.start);
  return element;
}

// Texts of many dimensions are cut.
constexpr size_t kMaxTextBytes = 200;

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

std::string TensorSlice::DebugString() const {
  std::string text = absl::StrJoin(extents, ":", [](std::string* out, const Extent& extent) {
    if (extent.length < 0) {
      out->push_back('-');
    } else {
      absl::StrAppend(out, extent.start, ",", extent.length);
    }
  });
  return errors::Printable(text, kMaxTextBytes);
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

absl::Status CheckDisjoint(absl::Span<const TensorSlice> slices) {
  std::vector<int32_t> members;
  for (size_t i = 0; i < slices.size(); ++i) {
    // Slices without elements overlap nothing.
    const bool is_empty =
        std::any_of(slices[i].extents.begin(), slices[i].extents.end(),
                    [](const TensorSlice::Extent& extent) { return extent.length == 0; });
    if (!is_empty) members.push_back(static_cast<int32_t>(i));
  }
  return OverlapSearch(slices).Run(std::move(members));
}

absl::Status CheckTiling(absl::Span<const TensorSlice> slices, const TensorSlice& whole) {
  GRADFLOW_RETURN_IF_ERROR(CheckDisjoint(slices));
  // The sum proves the coverage because no element is counted twice.
  int64_t covered = 0;
  for (const TensorSlice& slice : slices) covered += NumCommonElements(slice, whole);
  if (covered == whole.Shape().num_elements()) return absl::OkStatus();
  const std::string element = absl::StrJoin(UncoveredElement(slices, whole), ",");
  return errors::InvalidArgument("the slices do not cover element [",
                                 errors::Printable(element, kMaxTextBytes), "]");
}

int64_t CopySlice(const Tensor& from, const TensorSlice& from_slice, const TensorSlice& to_slice,
                  Tensor* to) {
  const size_t dims = to_slice.extents.size();
  // For each dimension, the first common index and the number of common indexes.
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
