// Matchers for tests of SavedModels.
#ifndef GRADFLOW_COMPAT_CC_SAVED_MODEL_TEST_UTILS_H_
#define GRADFLOW_COMPAT_CC_SAVED_MODEL_TEST_UTILS_H_

#include <gmock/gmock.h>

#include <ostream>
#include <string>

#include "tensorflow/core/platform/protobuf.h"

namespace tensorflow::saved_model {

// The matcher of EqualsProto().
class ProtoStringMatcher {
 public:
  explicit ProtoStringMatcher(const protobuf::Message& expected)
      : expected_(expected.DebugString()) {}

  bool MatchAndExplain(const protobuf::Message& message, ::testing::MatchResultListener*) const {
    return message.DebugString() == expected_;
  }
  void DescribeTo(std::ostream* out) const { *out << "is " << expected_; }
  void DescribeNegationTo(std::ostream* out) const { *out << "is not " << expected_; }

 private:
  const std::string expected_;
};

// Matches messages with the same text.
inline ::testing::PolymorphicMatcher<ProtoStringMatcher> EqualsProto(
    const protobuf::Message& expected) {
  return ::testing::MakePolymorphicMatcher(ProtoStringMatcher(expected));
}

}  // namespace tensorflow::saved_model

#endif  // GRADFLOW_COMPAT_CC_SAVED_MODEL_TEST_UTILS_H_
