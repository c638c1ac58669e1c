// Owners of the objects of the C API, and short functions that build graphs.
#ifndef GRADFLOW_TESTS_C_C_API_TEST_UTIL_H_
#define GRADFLOW_TESTS_C_C_API_TEST_UTIL_H_

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "tensorflow/c/c_api.h"

namespace gradflow::capi_test {

// A status that converts to the argument of a function.
class Status {
 public:
  Status() : status_(TF_NewStatus(), &TF_DeleteStatus) {}
  operator TF_Status*() const { return status_.get(); }  // NOLINT: for arguments
  TF_Code code() const { return TF_GetCode(status_.get()); }
  std::string message() const { return TF_Message(status_.get()); }

 private:
  std::unique_ptr<TF_Status, decltype(&TF_DeleteStatus)> status_;
};

using TensorPtr = std::unique_ptr<TF_Tensor, decltype(&TF_DeleteTensor)>;
using BufferPtr = std::unique_ptr<TF_Buffer, decltype(&TF_DeleteBuffer)>;
using GraphPtr = std::unique_ptr<TF_Graph, decltype(&TF_DeleteGraph)>;
using FunctionPtr = std::unique_ptr<TF_Function, decltype(&TF_DeleteFunction)>;

inline TensorPtr Own(TF_Tensor* tensor) { return TensorPtr(tensor, &TF_DeleteTensor); }
inline BufferPtr NewBuffer() { return BufferPtr(TF_NewBuffer(), &TF_DeleteBuffer); }
inline GraphPtr NewGraph() { return GraphPtr(TF_NewGraph(), &TF_DeleteGraph); }

inline TensorPtr Floats(const std::vector<int64_t>& dims, const std::vector<float>& values) {
  TensorPtr tensor = Own(TF_AllocateTensor(TF_FLOAT, dims.data(), static_cast<int>(dims.size()),
                                           values.size() * sizeof(float)));
  std::memcpy(TF_TensorData(tensor.get()), values.data(), values.size() * sizeof(float));
  return tensor;
}

inline TensorPtr Strings(const std::vector<std::string>& values) {
  const int64_t dims[] = {static_cast<int64_t>(values.size())};
  TensorPtr tensor = Own(TF_AllocateTensor(TF_STRING, dims, 1, values.size() * sizeof(TF_TString)));
  auto* const strings = static_cast<TF_TString*>(TF_TensorData(tensor.get()));
  for (size_t i = 0; i < values.size(); ++i) {
    TF_TString_Copy(&strings[i], values[i].data(), values[i].size());
  }
  return tensor;
}

inline std::vector<float> FloatsOf(const TF_Tensor* tensor) {
  const auto* const data = static_cast<const float*>(TF_TensorData(tensor));
  return std::vector<float>(data, data + TF_TensorElementCount(tensor));
}

inline std::vector<std::string> StringsOf(const TF_Tensor* tensor) {
  const auto* const data = static_cast<const TF_TString*>(TF_TensorData(tensor));
  std::vector<std::string> strings;
  for (int64_t i = 0; i < TF_TensorElementCount(tensor); ++i) {
    strings.emplace_back(TF_TString_GetDataPointer(&data[i]), TF_TString_GetSize(&data[i]));
  }
  return strings;
}

inline TF_Operation* Placeholder(TF_Graph* graph, const char* name, TF_DataType dtype = TF_FLOAT) {
  TF_OperationDescription* const desc = TF_NewOperation(graph, "Placeholder", name);
  TF_SetAttrType(desc, "dtype", dtype);
  const Status status;
  TF_Operation* const result = TF_FinishOperation(desc, status);
  EXPECT_EQ(status.code(), TF_OK) << status.message();
  return result;
}

inline TF_Operation* Const(TF_Graph* graph, const char* name, const TensorPtr& value) {
  TF_OperationDescription* const desc = TF_NewOperation(graph, "Const", name);
  const Status status;
  TF_SetAttrTensor(desc, "value", value.get(), status);
  TF_SetAttrType(desc, "dtype", TF_TensorType(value.get()));
  TF_Operation* const result = TF_FinishOperation(desc, status);
  EXPECT_EQ(status.code(), TF_OK) << status.message();
  return result;
}

inline TF_Operation* Binary(TF_Graph* graph, const char* op, const char* name, TF_Operation* a,
                            TF_Operation* b) {
  TF_OperationDescription* const desc = TF_NewOperation(graph, op, name);
  TF_AddInput(desc, {a, 0});
  TF_AddInput(desc, {b, 0});
  const Status status;
  TF_Operation* const result = TF_FinishOperation(desc, status);
  EXPECT_EQ(status.code(), TF_OK) << status.message();
  return result;
}

inline TF_Operation* Unary(TF_Graph* graph, const char* op, const char* name, TF_Operation* x) {
  TF_OperationDescription* const desc = TF_NewOperation(graph, op, name);
  TF_AddInput(desc, {x, 0});
  const Status status;
  TF_Operation* const result = TF_FinishOperation(desc, status);
  EXPECT_EQ(status.code(), TF_OK) << status.message();
  return result;
}

// Runs a session once, and returns the output or an empty pointer.
inline TensorPtr RunOnce(TF_Session* session, const std::vector<TF_Output>& inputs,
                         const std::vector<TF_Tensor*>& values, TF_Output output,
                         const Status& status) {
  TF_Tensor* result = nullptr;
  TF_SessionRun(session, nullptr, inputs.data(), values.data(), static_cast<int>(inputs.size()),
                &output, &result, 1, nullptr, 0, nullptr, status);
  return Own(result);
}

// A session, which is deleted with this object.
class SessionOwner {
 public:
  explicit SessionOwner(TF_Graph* graph) {
    const Status status;
    session_ = TF_NewSession(graph, nullptr, status);
    EXPECT_EQ(status.code(), TF_OK) << status.message();
  }
  ~SessionOwner() {
    const Status status;
    TF_DeleteSession(session_, status);
  }
  SessionOwner(const SessionOwner&) = delete;
  SessionOwner& operator=(const SessionOwner&) = delete;
  TF_Session* get() const { return session_; }

 private:
  TF_Session* session_;
};

}  // namespace gradflow::capi_test

#endif  // GRADFLOW_TESTS_C_C_API_TEST_UTIL_H_
