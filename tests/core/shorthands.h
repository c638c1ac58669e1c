// Helpers for tests of core.
#ifndef GRADFLOW_TESTS_CORE_SHORTHANDS_H_
#define GRADFLOW_TESTS_CORE_SHORTHANDS_H_

#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "gradflow/core/op_def_builder.h"
#include "gradflow/proto/op_def.pb.h"
#include "gradflow/testing/status_matchers.h"

namespace gradflow::testing {

// Parses a message from `text`. The test fails if the text is invalid.
template <typename Proto>
Proto FromText(const std::string& text) {
  Proto proto;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &proto)) << text;
  return proto;
}

// Returns the definition that `builder` makes. The test fails on errors.
inline OpDef Finalized(const OpDefBuilder& builder) {
  OpDef op_def;
  GRADFLOW_EXPECT_OK(builder.Finalize(&op_def));
  return op_def;
}

// Returns the bytes of the elements in memory order.
template <typename T>
std::string BytesOf(const std::vector<T>& values) {
  return std::string(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T));
}

}  // namespace gradflow::testing

#endif  // GRADFLOW_TESTS_CORE_SHORTHANDS_H_
