// Tensors, strings, statuses and buffers of the C API.
#include <cstring>
#include <string>
#include <vector>

#include "tests/c/c_api_test_util.h"

namespace gradflow::capi_test {
namespace {

void CountCall(void*, size_t, void* count) { ++*static_cast<int*>(count); }

TEST(CTensorTest, NewTensorSharesMemoryAndReleasesItOnce) {
  alignas(64) float values[] = {1, 2, 3};
  const int64_t dims[] = {3};
  int released = 0;
  TF_Tensor* const tensor =
      TF_NewTensor(TF_FLOAT, dims, 1, values, sizeof(values), &CountCall, &released);
  ASSERT_NE(tensor, nullptr);
  EXPECT_EQ(TF_TensorData(tensor), values);
  EXPECT_EQ(TF_TensorByteSize(tensor), sizeof(values));
  EXPECT_EQ(TF_TensorMaybeMove(tensor), nullptr);
  EXPECT_EQ(released, 0);
  TF_DeleteTensor(tensor);
  EXPECT_EQ(released, 1);
}

TEST(CTensorTest, NewTensorCopiesMisalignedMemory) {
  alignas(8) char bytes[9] = {};
  const float value = 2.5f;
  std::memcpy(bytes + 1, &value, sizeof(value));
  int released = 0;
  const TensorPtr tensor =
      Own(TF_NewTensor(TF_FLOAT, nullptr, 0, bytes + 1, sizeof(value), &CountCall, &released));
  EXPECT_EQ(released, 1);
  EXPECT_EQ(FloatsOf(tensor.get()), std::vector<float>{2.5f});
}

TEST(CTensorTest, WrongTensorsAreNullAndReleaseTheirMemory) {
  float value = 0;
  const int64_t two[] = {2};
  const int64_t negative[] = {-1};
  const int64_t huge[] = {int64_t{1} << 40, int64_t{1} << 40};
  int released = 0;
  const auto make = [&](TF_DataType dtype, const int64_t* dims, int rank, void* data, size_t len) {
    return TF_NewTensor(dtype, dims, rank, data, len, &CountCall, &released);
  };
  EXPECT_EQ(make(TF_FLOAT, two, 1, &value, sizeof(value)), nullptr);
  EXPECT_EQ(make(TF_FLOAT, negative, 1, &value, sizeof(value)), nullptr);
  EXPECT_EQ(make(TF_FLOAT, huge, 2, &value, SIZE_MAX), nullptr);
  EXPECT_EQ(make(TF_FLOAT, nullptr, 1, &value, sizeof(value)), nullptr);
  EXPECT_EQ(make(TF_FLOAT, nullptr, -1, &value, sizeof(value)), nullptr);
  EXPECT_EQ(make(TF_FLOAT, nullptr, 0, nullptr, sizeof(value)), nullptr);
  EXPECT_EQ(make(TF_RESOURCE, nullptr, 0, &value, sizeof(value)), nullptr);
  EXPECT_EQ(make(static_cast<TF_DataType>(63), nullptr, 0, &value, sizeof(value)), nullptr);
  EXPECT_EQ(released, 8);
  // Strings cannot be copied to aligned memory, because the memory may own their characters.
  alignas(TF_TString) char strings[sizeof(TF_TString) + 1] = {};
  EXPECT_EQ(make(TF_STRING, nullptr, 0, strings + 1, sizeof(TF_TString)), nullptr);
  EXPECT_EQ(released, 9);
  EXPECT_EQ(TF_AllocateTensor(TF_FLOAT, two, 1, 4), nullptr);
  EXPECT_EQ(TF_AllocateTensor(TF_STRING, two, 1, sizeof(TF_TString)), nullptr);
  EXPECT_EQ(TF_AllocateTensor(TF_FLOAT, huge, 2, SIZE_MAX), nullptr);
}

TEST(CTensorTest, DimensionsOutOfRangeAreMinusOne) {
  const TensorPtr tensor = Floats({1, 2}, {1, 2});
  EXPECT_EQ(TF_NumDims(tensor.get()), 2);
  EXPECT_EQ(TF_Dim(tensor.get(), 1), 2);
  EXPECT_EQ(TF_Dim(tensor.get(), 2), -1);
  EXPECT_EQ(TF_Dim(tensor.get(), -1), -1);
}

TEST(CTensorTest, SetShapeKeepsTheNumberOfElements) {
  const TensorPtr tensor = Floats({2, 3}, {1, 2, 3, 4, 5, 6});
  const int64_t wrong[] = {4};
  TF_SetShape(tensor.get(), wrong, 1);
  EXPECT_EQ(TF_Dim(tensor.get(), 0), 2);
  const int64_t flat[] = {6};
  TF_SetShape(tensor.get(), flat, 1);
  EXPECT_EQ(TF_NumDims(tensor.get()), 1);
  EXPECT_EQ(TF_Dim(tensor.get(), 0), 6);
}

TEST(CTensorTest, BitcastSharesBytes) {
  const TensorPtr from = Floats({2}, {1, 2});
  const TensorPtr to = Floats({}, {0});
  const Status status;
  const int64_t one[] = {1};
  TF_TensorBitcastFrom(from.get(), TF_INT64, to.get(), one, 1, status);
  ASSERT_EQ(status.code(), TF_OK) << status.message();
  EXPECT_EQ(TF_TensorData(from.get()), TF_TensorData(to.get()));
  EXPECT_EQ(TF_TensorType(to.get()), TF_INT64);
  const int64_t three[] = {3};
  TF_TensorBitcastFrom(from.get(), TF_FLOAT, to.get(), three, 1, status);
  EXPECT_EQ(status.code(), TF_INVALID_ARGUMENT);
}

// Returns the strings of a tensor after it was fed and fetched, which copies the strings.
std::vector<std::string> FedAndFetched(TF_Tensor* tensor) {
  const GraphPtr graph = NewGraph();
  TF_Operation* const x = Placeholder(graph.get(), "x", TF_STRING);
  const SessionOwner session(graph.get());
  const Status status;
  const TensorPtr result = RunOnce(session.get(), {{x, 0}}, {tensor}, {x, 0}, status);
  EXPECT_EQ(status.code(), TF_OK) << status.message();
  return result == nullptr ? std::vector<std::string>() : StringsOf(result.get());
}

TEST(CTensorTest, StringsMayBeOfAnyType) {
  const std::string long_text(100, 'x');
  TF_TString strings[3];
  for (TF_TString& string : strings) TF_TString_Init(&string);
  TF_TString_Copy(&strings[0], "short", 5);
  TF_TString_Copy(&strings[1], long_text.data(), long_text.size());
  TF_TString_AssignView(&strings[2], long_text.data(), 50);
  const int64_t dims[] = {3};
  int released = 0;
  {
    const TensorPtr tensor =
        Own(TF_NewTensor(TF_STRING, dims, 1, strings, sizeof(strings), &CountCall, &released));
    ASSERT_NE(tensor, nullptr);
    EXPECT_EQ(FedAndFetched(tensor.get()),
              (std::vector<std::string>{"short", long_text, long_text.substr(0, 50)}));
  }
  EXPECT_EQ(released, 1);
  for (TF_TString& string : strings) TF_TString_Dealloc(&string);
}

TEST(CTensorTest, ParsesProtos) {
  const TensorPtr tensor = Floats({}, {0});
  const Status status;
  // dtype: DT_INT32, tensor_shape { dim { size: 2 } }, int_val: [7, 8]
  const unsigned char proto[] = {0x08, 0x03, 0x12, 0x04, 0x12, 0x02,
                                 0x08, 0x02, 0x3a, 0x02, 0x07, 0x08};
  const BufferPtr buffer(TF_NewBufferFromString(proto, sizeof(proto)), &TF_DeleteBuffer);
  TF_TensorFromProto(buffer.get(), tensor.get(), status);
  ASSERT_EQ(status.code(), TF_OK) << status.message();
  EXPECT_EQ(TF_TensorType(tensor.get()), TF_INT32);
  EXPECT_EQ(static_cast<int32_t*>(TF_TensorData(tensor.get()))[1], 8);
  const BufferPtr broken(TF_NewBufferFromString("\xff", 1), &TF_DeleteBuffer);
  TF_TensorFromProto(broken.get(), tensor.get(), status);
  EXPECT_EQ(status.code(), TF_INVALID_ARGUMENT);
  EXPECT_EQ(status.message(), "1 bytes are not a valid gradflow.TensorProto");
  // dtype: DT_FLOAT, tensor_shape { dim { size: 2^40 } }, float_val: [0]
  const unsigned char huge[] = {0x08, 0x01, 0x12, 0x09, 0x12, 0x07, 0x08, 0x80, 0x80, 0x80,
                                0x80, 0x80, 0x20, 0x2a, 0x04, 0x00, 0x00, 0x00, 0x00};
  const BufferPtr repeated(TF_NewBufferFromString(huge, sizeof(huge)), &TF_DeleteBuffer);
  TF_TensorFromProto(repeated.get(), tensor.get(), status);
  EXPECT_EQ(status.code(), TF_RESOURCE_EXHAUSTED);
  EXPECT_EQ(status.message(),
            "the tensor of a message has 4398046511104 bytes, expected at most 2147483648");
}

TEST(CStringTest, GrowsAndShrinks) {
  TF_TString s;
  TF_TString_Init(&s);
  EXPECT_EQ(TF_TString_GetCapacity(&s), 22u);
  std::string expected;
  for (int i = 0; i < 200; ++i) {
    const char c = static_cast<char>('a' + i % 26);
    TF_TString_AppendN(&s, &c, 1);
    expected += c;
    ASSERT_EQ(std::string(TF_TString_GetDataPointer(&s)), expected);
  }
  EXPECT_EQ(TF_TString_GetType(&s), TF_TSTR_LARGE);
  const size_t large = TF_TString_GetCapacity(&s);
  TF_TString_ResizeUninitialized(&s, 30);
  EXPECT_LT(TF_TString_GetCapacity(&s), large);
  EXPECT_EQ(std::string(TF_TString_GetDataPointer(&s)), expected.substr(0, 30));
  TF_TString_Resize(&s, 3, 'z');
  EXPECT_EQ(TF_TString_GetType(&s), TF_TSTR_SMALL);
  EXPECT_EQ(std::string(TF_TString_GetDataPointer(&s)), "abc");
  TF_TString_Dealloc(&s);
}

TEST(CStringTest, MovesAndAssigns) {
  const std::string text(40, 'q');
  TF_TString a;
  TF_TString b;
  TF_TString_Init(&a);
  TF_TString_Init(&b);
  TF_TString_Copy(&a, text.data(), text.size());
  TF_TString_Assign(&b, &a);
  EXPECT_NE(TF_TString_GetDataPointer(&a), TF_TString_GetDataPointer(&b));
  TF_TString_Move(&b, &a);
  EXPECT_EQ(TF_TString_GetSize(&a), 0u);
  EXPECT_EQ(std::string(TF_TString_GetDataPointer(&b)), text);
  TF_TString_AssignView(&a, text.data(), 5);
  TF_TString_Assign(&b, &a);
  EXPECT_EQ(TF_TString_GetType(&b), TF_TSTR_VIEW);
  EXPECT_EQ(TF_TString_GetMutableDataPointer(&b)[5], '\0');
  EXPECT_EQ(TF_TString_GetType(&b), TF_TSTR_SMALL);
  TF_TString_Dealloc(&b);
}

TEST(CStringTest, OffsetsReadMemoryBehindTheString) {
  struct {
    TF_TString string;
    char text[32];
  } memory;
  std::memset(&memory, 0, sizeof(memory));
  std::memcpy(memory.text, "behind the string, 28 bytes.", 28);
  memory.string.u.offset.size = 28 << 2 | TF_TSTR_OFFSET;
  memory.string.u.offset.offset = sizeof(TF_TString);
  EXPECT_EQ(TF_TString_GetType(&memory.string), TF_TSTR_OFFSET);
  EXPECT_EQ(TF_TString_GetCapacity(&memory.string), 0u);
  const std::string expected = "behind the string, 28 bytes.";
  const int64_t one[] = {1};
  const TensorPtr tensor =
      Own(TF_NewTensor(TF_STRING, one, 1, &memory, sizeof(TF_TString), nullptr, nullptr));
  EXPECT_EQ(FedAndFetched(tensor.get()), std::vector<std::string>{expected});
  // A copy and a moved string are views; a written string owns its characters.
  TF_TString copy;
  TF_TString_Init(&copy);
  TF_TString_Assign(&copy, &memory.string);
  EXPECT_EQ(TF_TString_GetType(&copy), TF_TSTR_VIEW);
  EXPECT_EQ(TF_TString_GetDataPointer(&copy), memory.text);
  TF_TString_AppendN(&copy, "!", 1);
  EXPECT_EQ(TF_TString_GetType(&copy), TF_TSTR_LARGE);
  EXPECT_EQ(std::string(TF_TString_GetDataPointer(&copy)), expected + "!");
  TF_TString_Move(&copy, &memory.string);
  EXPECT_EQ(TF_TString_GetType(&copy), TF_TSTR_VIEW);
  TF_TString_GetMutableDataPointer(&memory.string)[0] = 'B';
  EXPECT_EQ(TF_TString_GetType(&memory.string), TF_TSTR_LARGE);
  EXPECT_EQ(memory.text[0], 'b');
  TF_TString_Dealloc(&memory.string);
}

TEST(CStringTest, RefusesSizesThatOverflow) {
  TF_TString s;
  TF_TString_Init(&s);
  TF_TString_Copy(&s, "abc", 3);
  EXPECT_EQ(TF_TString_ResizeUninitialized(&s, SIZE_MAX), nullptr);
  EXPECT_EQ(std::string(TF_TString_GetDataPointer(&s)), "abc");
}

TEST(CStatusTest, KeepsCodeMessageAndPayloads) {
  const Status status;
  TF_SetStatus(status, TF_CANCELLED, "stop");
  TF_SetPayload(status, "key", "value");
  EXPECT_EQ(status.code(), TF_CANCELLED);
  EXPECT_EQ(status.message(), "stop");
  std::string found;
  TF_ForEachPayload(
      status,
      [](const char* key, const char* value, void* out) {
        *static_cast<std::string*>(out) = std::string(key) + "=" + value;
      },
      &found);
  EXPECT_EQ(found, "key=value");
  TF_SetStatus(status, TF_OK, "ignored");
  EXPECT_EQ(status.message(), "");
  TF_SetStatus(status, TF_INTERNAL, nullptr);
  EXPECT_EQ(status.message(), "");
  TF_SetStatusFromIOError(status, ENOENT, "file");
  EXPECT_EQ(status.code(), TF_NOT_FOUND);
}

TEST(CStatusTest, DeletingNullIsAllowed) {
  TF_DeleteStatus(nullptr);
  TF_DeleteBuffer(nullptr);
  TF_DeleteTensor(nullptr);
  TF_DeleteGraph(nullptr);
  TF_DeleteFunction(nullptr);
  TF_DeletePRunHandle(nullptr);
  TF_DeleteImportGraphDefOptions(nullptr);
  TF_DeleteImportGraphDefResults(nullptr);
  TF_DeleteApiDefMap(nullptr);
  TF_DeleteLibraryHandle(nullptr);
  TF_DeleteDeviceList(nullptr);
}

}  // namespace
}  // namespace gradflow::capi_test
