// Reads tf.Example and tf.SequenceExample messages in place:
//
//   Example { Features features = 1; }
//   SequenceExample { Features context = 1; FeatureLists feature_lists = 2; }
//   Features { map<string, Feature> feature = 1; }
//   FeatureLists { map<string, FeatureList> feature_list = 1; }
//   FeatureList { repeated Feature feature = 1; }
//   Feature {
//     oneof { BytesList bytes_list = 1; FloatList float_list = 2; Int64List int64_list = 3; }
//   }
//
// Each list has the repeated field `value` = 1. The functions return false if a message is not
// valid.
#ifndef GRADFLOW_OPS_PARSING_EXAMPLE_READER_H_
#define GRADFLOW_OPS_PARSING_EXAMPLE_READER_H_

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "absl/strings/string_view.h"
#include "gradflow/core/tensor.h"
#include "gradflow/core/types.h"
#include "gradflow/ops/parsing/wire_reader.h"

namespace gradflow {

// Calls fn(key, value) for each entry of a map of messages: Features or FeatureLists.
template <typename Fn>
bool ForEachEntry(absl::string_view map, Fn&& fn) {
  return ForEachMessage(map, 1, [&](uint64_t, absl::string_view entry) {
    absl::string_view key;
    absl::string_view value;
    const bool valid = ForEachMessage(entry, 2, [&](uint64_t number, absl::string_view bytes) {
      (number == 1 ? key : value) = bytes;
      return true;
    });
    return valid && fn(key, value);
  });
}

// Calls fn(key, feature) for each feature of an example.
template <typename Fn>
bool ForEachFeature(absl::string_view example, Fn&& fn) {
  return ForEachMessage(
      example, 1, [&](uint64_t, absl::string_view features) { return ForEachEntry(features, fn); });
}

// Stores the type and the bytes of the first list of a feature; DT_INVALID if it has no list.
inline bool FindList(absl::string_view feature, DataType* dtype, absl::string_view* list) {
  *dtype = DT_INVALID;
  WireReader reader(feature);
  while (!reader.done()) {
    uint64_t tag = 0;
    if (!reader.ReadTag(&tag)) return false;
    if (tag != BytesTag(1) && tag != BytesTag(2) && tag != BytesTag(3)) {
      if (!reader.Skip(tag)) return false;
      continue;
    }
    if (!reader.ReadBytes(list)) return false;
    *dtype = tag == BytesTag(1) ? DT_STRING : tag == BytesTag(2) ? DT_FLOAT : DT_INT64;
    return true;
  }
  return true;
}

// Calls fn(value) for each value of a list, which has the type of `dtype`. Numbers may be packed.
template <typename T, typename Fn>
bool ForEachValue(absl::string_view list, Fn&& fn) {
  WireReader reader(list);
  while (!reader.done()) {
    uint64_t tag = 0;
    absl::string_view bytes;
    if (!reader.ReadTag(&tag)) return false;
    if (tag >> 3 != 1) {
      if (!reader.Skip(tag)) return false;
    } else if constexpr (std::is_same_v<T, tstring>) {
      if (tag != BytesTag(1) || !reader.ReadBytes(&bytes)) return false;
      fn(bytes);
    } else if constexpr (std::is_same_v<T, float>) {
      constexpr uint64_t kFixedTag = 8 + 5;
      const bool packed = tag == BytesTag(1);
      if (!packed && tag != kFixedTag) return false;
      if (packed ? !reader.ReadBytes(&bytes) : !reader.ReadFixed(sizeof(float), &bytes)) {
        return false;
      }
      if (bytes.size() % sizeof(float) != 0) return false;
      for (size_t at = 0; at < bytes.size(); at += sizeof(float)) {
        uint32_t bits = 0;
        for (size_t b = sizeof(float); b > 0; --b) {
          bits = bits << 8 | static_cast<uint8_t>(bytes[at + b - 1]);
        }
        float value;
        std::memcpy(&value, &bits, sizeof(value));
        fn(value);
      }
    } else {
      constexpr uint64_t kVarintTag = 8;
      uint64_t value = 0;
      if (tag == kVarintTag) {
        if (!reader.ReadVarint(&value)) return false;
        fn(static_cast<int64_t>(value));
        continue;
      }
      if (tag != BytesTag(1) || !reader.ReadBytes(&bytes)) return false;
      WireReader packed(bytes);
      while (!packed.done()) {
        if (!packed.ReadVarint(&value)) return false;
        fn(static_cast<int64_t>(value));
      }
    }
  }
  return true;
}

using FeatureTypes = TypeList<float, int64_t, tstring>;

// Returns the number of values, or -1 if the list is not valid.
inline int64_t CountValues(absl::string_view list, DataType dtype) {
  int64_t count = 0;
  bool valid = false;
  DispatchType(FeatureTypes(), dtype, [&](auto tag) {
    valid = ForEachValue<typename decltype(tag)::type>(list, [&](const auto&) { ++count; });
  });
  return valid ? count : -1;
}

// Writes the values to elements from `at` on.
inline void WriteValues(absl::string_view list, Tensor* to, int64_t at) {
  DispatchType(FeatureTypes(), to->dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    auto out = to->span<T>().begin() + at;
    ForEachValue<T>(list, [&](const auto& value) { *out++ = T(value); });
  });
}

}  // namespace gradflow

#endif  // GRADFLOW_OPS_PARSING_EXAMPLE_READER_H_
