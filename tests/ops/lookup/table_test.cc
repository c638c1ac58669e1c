// Tests of tables: lookups, changes, initialization, export, and their errors.
#include "gradflow/ops/lookup/table.h"

#include <atomic>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "gradflow/core/resource_handle.h"
#include "gradflow/core/variant.h"
#include "gradflow/graph/node_builder.h"
#include "gradflow/graph/scope.h"
#include "gradflow/ops/standard_ops.h"
#include "gradflow/runtime/session/client_session.h"
#include "gradflow/runtime/session/options.h"
#include "gradflow/testing/kernel_test.h"
#include "tests/testing/constants.h"

namespace gradflow {
namespace testing {
namespace {

using ::testing::HasSubstr;

constexpr auto kFailed = absl::StatusCode::kFailedPrecondition;

OpTester MakeTable(const char* op, DataType key, DataType value) {
  return OpTester(op).Attr("key_dtype", key).Attr("value_dtype", value);
}
// Runs a node once and returns its output.
Tensor HandleFrom(OpTester tester) {
  const auto outputs = tester.RunOnThreads(1);
  GRADFLOW_EXPECT_OK(outputs.status());
  return outputs.ok() ? (*outputs)[0] : Tensor(ResourceHandle());
}
Tensor HashTable(DataType key, DataType value) {
  return HandleFrom(MakeTable("AnonymousHashTable", key, value));
}
Tensor MutableTable(DataType key, DataType value) {
  return HandleFrom(MakeTable("AnonymousMutableHashTable", key, value));
}
Tensor TableOfVectors(DataType key, DataType value, int64_t size) {
  return HandleFrom(MakeTable("AnonymousMutableHashTableOfTensors", key, value)
                        .Attr("value_shape", TensorShape({size})));
}
OpTester MakeDense(const Tensor& empty, const Tensor& deleted, DataType value, int64_t buckets,
                   const TensorShape& value_shape = {}) {
  return OpTester("AnonymousMutableDenseHashTable")
      .Input(empty)
      .Input(deleted)
      .Attr("value_dtype", value)
      .Attr("value_shape", value_shape)
      .Attr("initial_num_buckets", buckets);
}

OpTester Call(const char* op, const Tensor& table, const std::vector<Tensor>& inputs) {
  OpTester tester(op);
  tester.Input(table).Inputs(inputs).ShapeIsData();
  return tester;
}
absl::Status Change(const char* op, const Tensor& table, const std::vector<Tensor>& inputs) {
  return Call(op, table, inputs).RunOnThreads(1).status();
}
absl::Status Initialize(const Tensor& table, const Tensor& keys, const Tensor& values) {
  return Change("InitializeTableV2", table, {keys, values});
}
absl::Status Insert(const Tensor& table, const Tensor& keys, const Tensor& values) {
  return Change("LookupTableInsertV2", table, {keys, values});
}
absl::StatusOr<Tensor> Find(const Tensor& table, const Tensor& keys, const Tensor& default_value) {
  return Call("LookupTableFindV2", table, {keys, default_value}).RunOne();
}
int64_t SizeOf(const Tensor& table) {
  const auto size = Call("LookupTableSizeV2", table, {}).RunOne();
  return size.ok() ? size->span<int64_t>()[0] : -1;
}
absl::StatusOr<std::vector<Tensor>> Export(const Tensor& table, DataType key, DataType value) {
  return Call("LookupTableExportV2", table, {}).Attr("Tkeys", key).Attr("Tvalues", value).Run();
}

Tensor Ints(std::initializer_list<int64_t> values) { return AsTensor<int64_t>(values); }
Tensor Strings(const std::vector<std::string>& values) {
  Tensor tensor(DT_STRING, {static_cast<int64_t>(values.size())});
  std::copy(values.begin(), values.end(), tensor.flat<tstring>().begin());
  return tensor;
}

TEST(HashTable, GetsItsEntriesOnce) {
  const Tensor table = HashTable(DT_STRING, DT_INT64);
  EXPECT_EQ(SizeOf(table), 0);
  EXPECT_THAT(Find(table, Strings({"a"}), AsScalar<int64_t>(-1)),
              StatusIs(kFailed, "the table has not been initialized"));
  EXPECT_THAT(Export(table, DT_STRING, DT_INT64),
              StatusIs(kFailed, "the table has not been initialized"));
  EXPECT_THAT(Initialize(table, Strings({"a", "b", "a"}), Ints({1, 2, 3})),
              StatusIs(kFailed, "key 'a' has two different values"));
  EXPECT_EQ(SizeOf(table), 0);
  GRADFLOW_EXPECT_OK(Initialize(table, Strings({"a", "b", "a"}), Ints({1, 2, 1})));
  EXPECT_EQ(SizeOf(table), 2);
  EXPECT_THAT(Find(table, Strings({"b", "c", "a"}), AsScalar<int64_t>(-1)),
              TensorEq(Ints({2, -1, 1})));
  // The number of entries decides, as in TensorFlow.
  GRADFLOW_EXPECT_OK(Initialize(table, Strings({"x", "y"}), Ints({1, 2})));
  EXPECT_THAT(Initialize(table, Strings({"x"}), Ints({1})),
              StatusIs(kFailed, "the table has been initialized with 2 entries, and now with 1"));
  const auto entries = Export(table, DT_STRING, DT_INT64);
  GRADFLOW_ASSERT_OK(entries.status());
  EXPECT_THAT((*entries)[0], TensorEq(Strings({"a", "b"})));
  EXPECT_THAT((*entries)[1], TensorEq(Ints({1, 2})));
  // A default value for each key: a hash table uses the first, as in TensorFlow.
  EXPECT_THAT(Find(table, Strings({"p", "q"}), Ints({-1, -2})), TensorEq(Ints({-1, -1})));
  for (const char* const op : {"LookupTableInsertV2"}) {
    EXPECT_THAT(Change(op, table, {Strings({"c"}), Ints({1})}),
                StatusIs(absl::StatusCode::kUnimplemented,
                         "the entries of a hash table cannot change; use a mutable table"));
  }
  EXPECT_THAT(Change("LookupTableRemoveV2", table, {Strings({"a"})}),
              StatusIs(absl::StatusCode::kUnimplemented, HasSubstr("cannot change")));
  const Tensor imported = HashTable(DT_STRING, DT_INT64);
  GRADFLOW_EXPECT_OK(Change("LookupTableImportV2", imported, {Strings({"z"}), Ints({9})}));
  EXPECT_THAT(Find(imported, Strings({"z"}), AsScalar<int64_t>(-1)), TensorEq(Ints({9})));
}

TEST(HashTable, ChecksItsInputs) {
  const Tensor table = HashTable(DT_STRING, DT_INT64);
  const struct {
    Tensor keys;
    Tensor values;
    const char* error;
  } cases[] = {
      {Strings({"a", "b"}), Ints({1}), "values must have shape [2], but have shape [1]"},
      {Tensor(tstring("a")), AsScalar<int64_t>(1),
       "Shape must be rank 1 but is rank 0: keys has shape []"},
      {Strings({}), Ints({}), "keys must not be empty"},
      {Ints({1}), Ints({1}), "keys must be of type string, the type of the table's keys"},
      {Strings({"a"}), AsTensor<float>({1}), "values must be of type int64"},
  };
  for (const auto& c : cases) {
    EXPECT_THAT(Initialize(table, c.keys, c.values),
                StatusIs(kInvalidArgument, HasSubstr(c.error)));
  }
  GRADFLOW_ASSERT_OK(Initialize(table, Strings({"a"}), Ints({1})));
  EXPECT_THAT(
      Find(table, Strings({"a", "b"}), Ints({1})),
      StatusIs(kInvalidArgument, "default_value must have shape [] or [2], but has shape [1]"));
  EXPECT_THAT(Find(table, Ints({1}), AsScalar<int64_t>(1)),
              StatusIs(kInvalidArgument, HasSubstr("keys must be of type string")));
  EXPECT_THAT(Find(table, Strings({"a"}), Tensor(1.f)),
              StatusIs(kInvalidArgument, HasSubstr("default_value must be of type int64")));
  EXPECT_THAT(
      Export(table, DT_INT64, DT_INT64),
      StatusIs(kInvalidArgument, "the table has types string to int64, expected int64 to int64"));
  EXPECT_THAT(Find(Tensor(ResourceHandle("", "none")), Strings({"a"}), AsScalar<int64_t>(1)),
              StatusIs(kFailed, "tables need a session"));
  EXPECT_THAT(Initialize(MutableTable(DT_STRING, DT_INT64), Strings({"a"}), Ints({1})),
              StatusIs(kInvalidArgument, "a mutable table cannot be initialized"));
  EXPECT_THAT(MakeTable("HashTableV2", DT_STRING, DT_INT64).RunOnThreads(1),
              StatusIs(kFailed, "tables need a session"));
  EXPECT_THAT(
      MakeTable("HashTableV2", DT_STRING, DT_INT64).Attr("container", "_tensorflow").MakeKernel(),
      StatusIs(kInvalidArgument, "container '_tensorflow' is reserved"));
}

TEST(MutableHashTable, InsertsReplacesRemovesAndImports) {
  const Tensor table = MutableTable(DT_INT64, DT_STRING);
  Tensor keys = AsTensor<int64_t>({5, 3, 5, 9}, {2, 2});
  Tensor values(DT_STRING, {2, 2});
  const std::string long_text(100, 'x');
  for (int i = 0; i < 4; ++i) values.flat<tstring>()(i) = long_text + std::to_string(i);
  GRADFLOW_EXPECT_OK(Insert(table, keys, values));
  GRADFLOW_EXPECT_OK(Insert(table, AsScalar<int64_t>(7), Tensor(tstring("z"))));
  EXPECT_EQ(SizeOf(table), 4);
  EXPECT_THAT(Find(table, Ints({5, 1, 7}), Strings({"p", "q", "r"})),
              TensorEq(Strings({long_text + "2", "q", "z"})));
  GRADFLOW_EXPECT_OK(Change("LookupTableRemoveV2", table, {Ints({5, 1, 3, 5})}));
  EXPECT_EQ(SizeOf(table), 2);
  // The place of a removed entry is used again.
  GRADFLOW_EXPECT_OK(Insert(table, Ints({4}), Strings({"new"})));
  const auto entries = Export(table, DT_INT64, DT_STRING);
  GRADFLOW_ASSERT_OK(entries.status());
  EXPECT_EQ((*entries)[0].NumElements(), 3);
  EXPECT_THAT(Find(table, (*entries)[0], Tensor(tstring(""))), TensorEq((*entries)[1]));
  GRADFLOW_EXPECT_OK(Change("LookupTableImportV2", table, {Ints({2, 2}), Strings({"x", "y"})}));
  const auto imported = Export(table, DT_INT64, DT_STRING);
  GRADFLOW_ASSERT_OK(imported.status());
  EXPECT_THAT((*imported)[0], TensorEq(Ints({2})));
  EXPECT_THAT((*imported)[1], TensorEq(Strings({"y"})));
  EXPECT_THAT(Insert(table, Ints({1, 2}), Strings({"a"})),
              StatusIs(kInvalidArgument, "values must have shape [2], but have shape [1]"));
}

// Compares a table with a std::map after random changes.
TEST(MutableHashTable, AgreesWithAMap) {
  const Tensor table = MutableTable(DT_INT32, DT_DOUBLE);
  const Tensor texts = MutableTable(DT_STRING, DT_INT32);
  std::map<int32_t, double> expected;
  std::mt19937 random(1);
  for (int step = 0; step < 300; ++step) {
    const int32_t count = static_cast<int32_t>(random() % 20);
    Tensor keys(DT_INT32, {count});
    Tensor names(DT_STRING, {count});
    Tensor values(DT_DOUBLE, {count});
    Tensor numbers(DT_INT32, {count});
    const bool removes = random() % 3 == 0;
    for (int32_t i = 0; i < count; ++i) {
      const auto key = static_cast<int32_t>(random() % 100);
      keys.flat<int32_t>()(i) = key;
      names.flat<tstring>()(i) = "a name that takes memory of its own " + std::to_string(key);
      values.flat<double>()(i) = step + 0.001 * i;
      numbers.flat<int32_t>()(i) = step * 1000 + i;
      if (removes) {
        expected.erase(key);
      } else {
        expected[key] = step + 0.001 * i;
      }
    }
    if (removes) {
      GRADFLOW_ASSERT_OK(Change("LookupTableRemoveV2", table, {keys}));
      GRADFLOW_ASSERT_OK(Change("LookupTableRemoveV2", texts, {names}));
    } else {
      GRADFLOW_ASSERT_OK(Insert(table, keys, values));
      GRADFLOW_ASSERT_OK(Insert(texts, names, numbers));
    }
  }
  ASSERT_EQ(SizeOf(table), static_cast<int64_t>(expected.size()));
  ASSERT_EQ(SizeOf(texts), static_cast<int64_t>(expected.size()));
  for (int32_t key = 0; key < 100; ++key) {
    const auto found = expected.find(key);
    const double value = found == expected.end() ? -1 : found->second;
    EXPECT_THAT(Find(table, AsScalar<int32_t>(key), AsScalar<double>(-1)),
                TensorEq(AsScalar<double>(value)));
    const Tensor name(tstring("a name that takes memory of its own " + std::to_string(key)));
    const double step = std::floor(value);
    EXPECT_THAT(
        Find(texts, name, AsScalar<int32_t>(-1)),
        TensorEq(AsScalar<int32_t>(
            value < 0 ? -1
                      : static_cast<int32_t>(step * 1000 + std::lround((value - step) * 1000)))));
  }
}

TEST(MutableHashTableOfTensors, HasVectorsAsValues) {
  const Tensor table = TableOfVectors(DT_STRING, DT_FLOAT, 2);
  GRADFLOW_EXPECT_OK(Insert(table, Strings({"a", "b"}), AsTensor<float>({1, 2, 3, 4}, {2, 2})));
  EXPECT_THAT(Find(table, Strings({"b", "c"}), AsTensor<float>({-1, -2})),
              TensorEq(AsTensor<float>({3, 4, -1, -2}, {2, 2})));
  EXPECT_THAT(Find(table, Strings({"c", "d"}), AsTensor<float>({-1, -2, -3, -4}, {2, 2})),
              TensorEq(AsTensor<float>({-1, -2, -3, -4}, {2, 2})));
  EXPECT_THAT(
      Find(table, Strings({"b"}), Tensor(1.f)),
      StatusIs(kInvalidArgument, "default_value must have shape [2] or [1,2], but has shape []"));
  const auto make = [](const PartialTensorShape& shape) {
    return MakeTable("AnonymousMutableHashTableOfTensors", DT_INT64, DT_INT64)
        .Attr("value_shape", shape)
        .MakeKernel();
  };
  EXPECT_THAT(make(TensorShape()), StatusIs(kInvalidArgument,
                                            "value_shape must be the shape of a vector, but is "
                                            "[]"));
  EXPECT_THAT(make(PartialTensorShape({-1})),
              StatusIs(kInvalidArgument, "value_shape must be fully defined, but is [?]"));
}

TEST(MutableHashTable, StoresVariants) {
  const Tensor table = MutableTable(DT_INT64, DT_VARIANT);
  Tensor value(DT_VARIANT, {1});
  value.span<Variant>()[0] = Variant(7);
  GRADFLOW_EXPECT_OK(Insert(table, Ints({1}), value));
  const auto found =
      Call("LookupTableFindV2", table, {Ints({1}), Tensor(DT_VARIANT, {})}).RunOnThreads(1);
  GRADFLOW_ASSERT_OK(found.status());
  const int* const number = (*found)[0].span<Variant>()[0].get<int>();
  ASSERT_NE(number, nullptr);
  EXPECT_EQ(*number, 7);
}

// The layouts are TensorFlow's.
TEST(MutableDenseHashTable, ExportsPlaces) {
  const Tensor table =
      HandleFrom(MakeDense(AsScalar<int64_t>(-1), AsScalar<int64_t>(-2), DT_INT64, 4));
  const auto expect = [&](const std::vector<int64_t>& keys, const std::vector<int64_t>& values) {
    const auto entries = Export(table, DT_INT64, DT_INT64);
    GRADFLOW_ASSERT_OK(entries.status());
    const TensorShape shape({static_cast<int64_t>(keys.size()), 1});
    EXPECT_THAT((*entries)[0], TensorEq(AsTensor<int64_t>(keys, shape)));
    EXPECT_THAT((*entries)[1], TensorEq(AsTensor<int64_t>(values, shape)));
  };
  GRADFLOW_EXPECT_OK(Insert(table, Ints({10, 2, 6}), Ints({1, 2, 3})));
  expect({-1, 6, 10, 2}, {0, 3, 1, 2});
  GRADFLOW_EXPECT_OK(Insert(table, Ints({14}), Ints({4})));
  expect({-1, -1, 10, 2, -1, -1, 6, 14}, {0, 0, 1, 2, 0, 0, 3, 4});
  EXPECT_EQ(SizeOf(table), 4);
  GRADFLOW_EXPECT_OK(Change("LookupTableRemoveV2", table, {Ints({10, 99})}));
  EXPECT_EQ(SizeOf(table), 3);
  EXPECT_THAT(Find(table, Ints({2, 7}), Ints({0, 4})), TensorEq(Ints({2, 4})));
  for (const int64_t reserved : {-1, -2}) {
    const Tensor key = Ints({reserved});
    for (const absl::Status& status :
         {Insert(table, key, Ints({1})), Change("LookupTableRemoveV2", table, {key}),
          Find(table, key, AsScalar<int64_t>(0)).status()}) {
      EXPECT_THAT(status, StatusIs(kInvalidArgument,
                                   "key 0 is the table's empty_key or deleted_key, which must not "
                                   "be used as a key"));
    }
  }
  // Exported entries can be imported.
  const auto entries = Export(table, DT_INT64, DT_INT64);
  GRADFLOW_ASSERT_OK(entries.status());
  GRADFLOW_EXPECT_OK(Change("LookupTableImportV2", table, *entries));
  EXPECT_EQ(SizeOf(table), 3);
  EXPECT_THAT(Find(table, Ints({14, 10}), AsScalar<int64_t>(0)), TensorEq(Ints({4, 0})));
}

TEST(MutableDenseHashTable, HasVectorsAsKeys) {
  const Tensor table =
      HandleFrom(MakeDense(Ints({-1, 0}), Ints({-2, 0}), DT_INT64, 4, TensorShape({2})));
  GRADFLOW_EXPECT_OK(Insert(table, AsTensor<int64_t>({1, 2, 3, 4}, {2, 2}),
                            AsTensor<int64_t>({1, 2, 3, 4}, {2, 2})));
  EXPECT_THAT(Find(table, AsTensor<int64_t>({1, 2, 2, 1}, {2, 2}), Ints({0, 0})),
              TensorEq(AsTensor<int64_t>({1, 2, 0, 0}, {2, 2})));
  const auto entries = Export(table, DT_INT64, DT_INT64);
  GRADFLOW_ASSERT_OK(entries.status());
  EXPECT_THAT((*entries)[0], TensorEq(AsTensor<int64_t>({3, 4, -1, 0, -1, 0, 1, 2}, {4, 2})));
  EXPECT_THAT((*entries)[1], TensorEq(AsTensor<int64_t>({3, 4, 0, 0, 0, 0, 1, 2}, {4, 2})));
  EXPECT_THAT(Find(table, Ints({1, 2, 3}), Ints({0, 0})),
              StatusIs(kInvalidArgument,
                       "the last dimension of keys must be 2, the size of a key of the table, but "
                       "keys have shape [3]"));
  const Tensor texts =
      HandleFrom(MakeDense(Tensor(tstring("")), Tensor(tstring("-")), DT_INT64, 8));
  GRADFLOW_EXPECT_OK(Insert(texts, Strings({"a", "b", "cc"}), Ints({1, 2, 3})));
  const auto text_entries = Export(texts, DT_STRING, DT_INT64);
  GRADFLOW_ASSERT_OK(text_entries.status());
  Tensor expected = Strings({"", "", "b", "", "a", "", "", "cc"});
  EXPECT_THAT((*text_entries)[0], TensorEq(*expected.Reshaped({8, 1})));
}

TEST(MutableDenseHashTable, ChecksItsAttributesAndKeys) {
  const Tensor a = AsScalar<int64_t>(-1);
  const Tensor b = AsScalar<int64_t>(-2);
  const struct {
    OpTester tester;
    const char* error;
  } cases[] = {
      {MakeDense(a, a, DT_INT64, 4), "empty_key and deleted_key must not be equal"},
      {MakeDense(a, b, DT_INT64, 3),
       "initial_num_buckets must be a power of 2 and at least 4, but is 3"},
      {MakeDense(a, b, DT_INT64, 4).Attr("max_load_factor", 1.f),
       "max_load_factor must be between 0 and 1, but is 1"},
      {MakeDense(Ints({-1}), b, DT_INT64, 4), "must be scalars, or vectors of one size"},
      {MakeDense(Ints({}), Ints({}), DT_INT64, 4), "empty_key must not be an empty vector"},
      {MakeDense(a, b, DT_INT64, 4, TensorShape({2, 2})),
       "value_shape must be the shape of a scalar or a vector, but is [2,2]"},
  };
  for (const auto& c : cases) {
    EXPECT_THAT(OpTester(c.tester).RunOnThreads(1), StatusIs(kInvalidArgument, HasSubstr(c.error)));
  }
}

// Many keys with one hash would take quadratic time to export.
TEST(MutableDenseHashTable, LimitsTheTimeOfExports) {
  const Tensor table =
      HandleFrom(MakeDense(AsScalar<int64_t>(-1), AsScalar<int64_t>(-2), DT_INT64, 4));
  constexpr int64_t kKeys = 100'000;
  Tensor keys(DT_INT64, {kKeys});
  for (int64_t i = 0; i < kKeys; ++i) keys.flat<int64_t>()(i) = i << 20;
  GRADFLOW_ASSERT_OK(Insert(table, keys, keys));
  EXPECT_THAT(Export(table, DT_INT64, DT_INT64),
              StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("collide too often")));
}

// Tables that hold each other would never be freed.
TEST(MutableDenseHashTable, HoldsOnlyHandlesOfYoungerTables) {
  const auto make = [] {
    return HandleFrom(MakeDense(AsScalar<int64_t>(-1), AsScalar<int64_t>(-2), DT_RESOURCE, 4));
  };
  const Tensor older = make();
  const Tensor table = make();
  const Tensor younger = make();
  Tensor handles(DT_RESOURCE, {1});
  handles.span<ResourceHandle>()[0] = table.span<ResourceHandle>()[0];
  EXPECT_THAT(Insert(table, Ints({1}), handles),
              StatusIs(kInvalidArgument, HasSubstr("cannot hold the handle of itself")));
  handles.span<ResourceHandle>()[0] = older.span<ResourceHandle>()[0];
  EXPECT_THAT(Insert(table, Ints({1}), handles),
              StatusIs(kInvalidArgument,
                       HasSubstr("cannot hold the handle of a resource that was made before it")));
  handles.span<ResourceHandle>()[0] = younger.span<ResourceHandle>()[0];
  GRADFLOW_EXPECT_OK(Insert(table, Ints({1}), handles));
  handles.span<ResourceHandle>()[0] = ResourceHandle("", "name");
  GRADFLOW_EXPECT_OK(Insert(table, Ints({1}), handles));
}

// No table has as many places as this load factor asks for.
TEST(MutableDenseHashTable, HasAnyLoadFactor) {
  const Tensor table =
      HandleFrom(MakeDense(AsScalar<int64_t>(-1), AsScalar<int64_t>(-2), DT_INT64, 4)
                     .Attr("max_load_factor", 1e-30f));
  GRADFLOW_ASSERT_OK(Insert(table, Ints({1, 2}), Ints({3, 4})));
  EXPECT_THAT(Find(table, Ints({2}), AsScalar<int64_t>(0)), TensorEq(Ints({4})));
  EXPECT_THAT(Export(table, DT_INT64, DT_INT64), StatusIs(absl::StatusCode::kResourceExhausted));
}

// Keys for which absl::Hash has one value for every seed: the first eight bytes make a factor zero,
// and the next eight are free. They would take quadratic time.
TEST(MutableHashTable, TakesLinearTimeForHostileKeys) {
  const uint64_t zero_factor = 0x13198A2E03707344;
  constexpr int64_t kKeys = 300'000;
  Tensor keys(DT_STRING, {kKeys});
  for (int64_t i = 0; i < kKeys; ++i) {
    std::string key(32, 'x');
    std::memcpy(&key[0], &zero_factor, sizeof(zero_factor));
    std::memcpy(&key[sizeof(zero_factor)], &i, sizeof(i));
    keys.span<tstring>()[i] = key;
  }
  const Tensor values = Iota<int64_t>({kKeys});
  const Tensor table = MutableTable(DT_STRING, DT_INT64);
  GRADFLOW_ASSERT_OK(Insert(table, keys, values));
  EXPECT_THAT(Find(table, keys, AsScalar<int64_t>(-1)), TensorEq(values));
  // Integers whose low bits are equal.
  Tensor numbers(DT_INT64, {kKeys});
  for (int64_t i = 0; i < kKeys; ++i) numbers.span<int64_t>()[i] = i << 44;
  const Tensor of_numbers = MutableTable(DT_INT64, DT_INT64);
  GRADFLOW_ASSERT_OK(Insert(of_numbers, numbers, values));
  EXPECT_THAT(Find(of_numbers, numbers, AsScalar<int64_t>(-1)), TensorEq(values));
}

// ---- Text files ----

class TextFileTable : public ::testing::Test {
 protected:
  TextFileTable()
      : path_(::testing::TempDir() + "/gradflow_table_" +
              std::to_string(reinterpret_cast<uintptr_t>(this))) {}
  ~TextFileTable() override { std::filesystem::remove(path_); }

  // Returns the entries of a table made from a file, or the error.
  absl::StatusOr<std::vector<Tensor>> Load(const std::string& text, DataType key, DataType value,
                                           int64_t key_index, int64_t value_index,
                                           int64_t vocab_size = -1, int64_t offset = 0,
                                           const std::string& delimiter = "\t") {
    std::ofstream(path_, std::ios::binary) << text;
    const Tensor table = HashTable(key, value);
    const absl::Status status = OpTester("InitializeTableFromTextFileV2")
                                    .Input(table)
                                    .Input(Tensor(tstring(path_)))
                                    .Attr("key_index", key_index)
                                    .Attr("value_index", value_index)
                                    .Attr("vocab_size", vocab_size)
                                    .Attr("offset", offset)
                                    .Attr("delimiter", delimiter)
                                    .Run()
                                    .status();
    if (!status.ok()) return status;
    return Export(table, key, value);
  }

  const std::string path_;
};

TEST_F(TextFileTable, HasTheLinesAndTheirNumbers) {
  const auto expect = [](const absl::StatusOr<std::vector<Tensor>>& entries, const Tensor& keys,
                         const Tensor& values) {
    GRADFLOW_ASSERT_OK(entries.status());
    EXPECT_THAT((*entries)[0], TensorEq(keys));
    EXPECT_THAT((*entries)[1], TensorEq(values));
  };
  expect(Load("a\nb\r\nc\rd\n", DT_STRING, DT_INT64, -2, -1), Strings({"a", "b", "c\rd"}),
         Ints({0, 1, 2}));
  expect(Load("a\nb", DT_STRING, DT_INT64, -2, -1), Strings({"a", "b"}), Ints({0, 1}));
  expect(Load("a\nb\n", DT_INT64, DT_STRING, -1, -2), Ints({0, 1}), Strings({"a", "b"}));
  expect(Load("a\nb\nc\n", DT_STRING, DT_INT64, -2, -1, 2, 5), Strings({"a", "b"}), Ints({5, 6}));
  expect(Load("a\t1\tq\nb\t 2 \n", DT_STRING, DT_INT64, 0, 1), Strings({"a", "b"}), Ints({1, 2}));
  expect(Load("x,7,-1e400\n", DT_INT32, DT_DOUBLE, 1, 2, -1, 0, ","), AsTensor<int32_t>({7}),
         AsTensor<double>({-HUGE_VAL}));
  expect(Load("12\n", DT_INT64, DT_FLOAT, -2, -2), Ints({12}), AsTensor<float>({12}));
  expect(Load("a\t\n", DT_STRING, DT_STRING, 0, 1), Strings({"a"}), Strings({""}));
}

TEST_F(TextFileTable, ReportsTheLineOfAnError) {
  const struct {
    absl::StatusOr<std::vector<Tensor>> entries;
    const char* error;
  } cases[] = {
      {Load("a\n\nb\n", DT_STRING, DT_INT64, -2, -1), "line 1 is empty"},
      {Load("a\t1\nb\n", DT_STRING, DT_INT64, 0, 1),
       "line 1 must have at least 2 columns, but has 1"},
      {Load("a\tx\n", DT_STRING, DT_INT64, 0, 1), "'x' in line 0 must be a number of type int64"},
      {Load("1\t3000000000\n", DT_INT32, DT_INT32, 0, 1),
       "'3000000000' in line 0 must be a number of type int32"},
      {Load("a\nb\n", DT_STRING, DT_INT64, -2, -1, 3), "vocab_size is 3, but the file has 2 lines"},
      {Load("a\n", DT_STRING, DT_INT32, -2, -1),
       "value_index is -1, the number of a line, so the table's values must be int64, but are "
       "int32"},
      {Load("a\tb\n", DT_STRING, DT_BOOL, 0, 1), "values of type bool cannot be read from a file"},
      {Load("a", DT_STRING, DT_INT64, -2, -1, -1, 0, ",,"),
       "delimiter must be one character, but is ',,'"},
  };
  for (const auto& c : cases) {
    EXPECT_THAT(c.entries, StatusIs(kInvalidArgument, HasSubstr(c.error)));
  }
  EXPECT_THAT(Load("", DT_STRING, DT_INT64, -2, -1),
              StatusIs(absl::StatusCode::kOutOfRange, HasSubstr("the file is empty")));
  EXPECT_THAT(Load("a\na\n", DT_STRING, DT_INT64, -2, -1),
              StatusIs(kFailed, HasSubstr("key 'a' has two different values")));
  const auto read = [](const Tensor& path) {
    return Call("InitializeTableFromTextFileV2", HashTable(DT_STRING, DT_INT64), {path})
        .Attr("key_index", -2)
        .Attr("value_index", -1)
        .Run();
  };
  EXPECT_THAT(read(Tensor(tstring("/none/file"))),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("'/none/file': ")));
  EXPECT_THAT(read(Tensor(tstring())),
              StatusIs(kInvalidArgument, "filename must be a path, but is ''"));
  EXPECT_THAT(read(Strings({"a"})),
              StatusIs(kInvalidArgument,
                       HasSubstr("Shape must be rank 0 but is rank 1: filename has shape [1]")));
}

// ---- In a session ----

class TablesInSessions : public ::testing::Test {
 protected:
  Scope scope_ = Scope::NewRootScope();
};

TEST_F(TablesInSessions, LiveByNameAndNode) {
  const Output keys = ops::Const(scope_, {tstring("a"), tstring("b")});
  const Output values = ops::Const(scope_, {int64_t{1}, int64_t{2}});
  const auto shared = ops::HashTable::SharedName("t");
  const ops::HashTable a(scope_, DT_STRING, DT_INT64, shared);
  const ops::HashTable same(scope_, DT_STRING, DT_INT64, shared);
  const ops::HashTable own(scope_, DT_STRING, DT_INT64);
  const ops::HashTable wrong(scope_, DT_STRING, DT_FLOAT, shared);
  const ops::InitializeTable init(scope_, a, keys, values);
  const Output missing = ops::Const(scope_, int64_t{-1});
  const ops::LookupTableFind find(scope_, same, keys, missing);
  const ops::LookupTableFind find_own(scope_, own, keys, missing);
  const ops::LookupTableSize size(scope_, same);
  const ops::LookupTableExport all(scope_, same, DT_STRING, DT_INT64);
  const ops::LookupTableSize size_wrong(scope_, wrong);
  GRADFLOW_ASSERT_OK(scope_.status());
  EXPECT_EQ(find.node()->type_string(), "LookupTableFindV2");
  EXPECT_EQ(find.node()->output_shape(0).DebugString(), "[2]");
  EXPECT_EQ(all.keys.node()->output_shape(1).DebugString(), "[?]");
  ClientSession session(scope_);
  std::vector<Tensor> outputs;
  EXPECT_THAT(session.Run({find}, &outputs), StatusIs(kFailed, HasSubstr("not been initialized")));
  GRADFLOW_ASSERT_OK(session.Run({}, {}, {init.operation}, nullptr));
  GRADFLOW_ASSERT_OK(session.Run({find, size, all.keys, all.values}, &outputs));
  EXPECT_THAT(outputs[0], TensorEq(Ints({1, 2})));
  EXPECT_THAT(outputs[1], TensorEq(AsScalar<int64_t>(2)));
  EXPECT_THAT(outputs[2], TensorEq(Strings({"a", "b"})));
  EXPECT_THAT(session.Run({find_own}, &outputs),
              StatusIs(kFailed, HasSubstr("not been initialized")));
  EXPECT_THAT(session.Run({size_wrong}, &outputs),
              StatusIs(kInvalidArgument, HasSubstr("the resource of this name is another table: "
                                                   "table of 2 entries, string to int64")));
}

TEST_F(TablesInSessions, AreDestroyed) {
  const ops::MutableHashTable table(scope_, DT_INT64, DT_INT64);
  const Output one = ops::Const(scope_, {int64_t{1}});
  const ops::LookupTableInsert insert(scope_, table, one, one);
  const ops::LookupTableRemove remove(scope_, table, one);
  const ops::LookupTableImport import(scope_, table, one, one);
  const ops::LookupTableSize size(scope_, table);
  const ops::DestroyResourceOp destroy(scope_, table);
  GRADFLOW_ASSERT_OK(scope_.status());
  ClientSession session(scope_);
  std::vector<Tensor> outputs;
  const auto size_after = [&](const Operation& operation) {
    GRADFLOW_EXPECT_OK(session.Run({}, {}, {operation}, nullptr));
    GRADFLOW_EXPECT_OK(session.Run({size}, &outputs));
    return outputs[0].span<int64_t>()[0];
  };
  EXPECT_EQ(size_after(insert.operation), 1);
  EXPECT_EQ(size_after(remove.operation), 0);
  EXPECT_EQ(size_after(import.operation), 1);
  EXPECT_EQ(size_after(destroy.operation), 0);
}

// The ops whose handles are references.
TEST_F(TablesInSessions, AreReferencesInOldGraphs) {
  const auto node = [&](const std::string& op, const std::vector<Output>& inputs,
                        const std::vector<std::pair<std::string, DataType>>& types) {
    OpBuilder builder(scope_, op);
    for (const Output& input : inputs) builder.Input(input);
    for (const auto& [name, type] : types) builder.Attr(name, type);
    return builder.Finish();
  };
  const Output keys = ops::Const(scope_, {tstring("a"), tstring("b")});
  const Output values = ops::Const(scope_, {int64_t{1}, int64_t{2}});
  const Output missing = ops::Const(scope_, int64_t{-1});
  using Types = std::vector<std::pair<std::string, DataType>>;
  const Types types = {{"key_dtype", DT_STRING}, {"value_dtype", DT_INT64}};
  const Types in_out = {{"Tin", DT_STRING}, {"Tout", DT_INT64}};
  for (const char* const op : {"HashTable", "MutableHashTable"}) {
    const bool is_hash = op == absl::string_view("HashTable");
    const Output table = Output(node(op, {}, types).node(), 0);
    const Operation fill = is_hash ? node("InitializeTable", {table, keys, values},
                                          {{"Tkey", DT_STRING}, {"Tval", DT_INT64}})
                                   : node("LookupTableInsert", {table, keys, values}, in_out);
    const Operation import = node("LookupTableImport", {table, keys, values}, in_out);
    const Output find(node("LookupTableFind", {table, keys, missing}, in_out).node(), 0);
    const Output size(node("LookupTableSize", {table}, {}).node(), 0);
    const Output all(
        node("LookupTableExport", {table}, {{"Tkeys", DT_STRING}, {"Tvalues", DT_INT64}}).node(),
        1);
    GRADFLOW_ASSERT_OK(scope_.status());
    EXPECT_EQ(table.node()->output_shape(0).DebugString(), "[2]");
    ClientSession session(scope_);
    GRADFLOW_ASSERT_OK(session.Run({}, {}, {fill}, nullptr));
    GRADFLOW_ASSERT_OK(session.Run({}, {}, {import}, nullptr));
    std::vector<Tensor> outputs;
    GRADFLOW_ASSERT_OK(session.Run({find, size, all}, &outputs));
    EXPECT_THAT(outputs[0], TensorEq(Ints({1, 2})));
    EXPECT_THAT(outputs[1], TensorEq(AsScalar<int64_t>(2)));
    EXPECT_THAT(outputs[2], TensorEq(Ints({1, 2})));
  }
  // Other forms of the ops.
  const struct {
    const char* op;
    bool has_shape;
  } forms[] = {{"MutableHashTableOfTensors", true},
               {"MutableHashTableOfTensorsV2", true},
               {"MutableHashTableV2", false}};
  for (const auto& form : forms) {
    OpTester tester = MakeTable(form.op, DT_STRING, DT_INT64);
    if (form.has_shape) tester.Attr("value_shape", TensorShape({2}));
    GRADFLOW_EXPECT_OK(tester.MakeKernel());
  }
  GRADFLOW_EXPECT_OK(OpTester("MutableDenseHashTableV2")
                         .Input(AsScalar<int64_t>(1))
                         .Input(AsScalar<int64_t>(2))
                         .Attr("value_dtype", DT_INT64)
                         .MakeKernel());
  EXPECT_TRUE(GlobalRegistry().LookUpOp("InitializeTableFromTextFile").ok());
}

// Lookups see the values of one insertion, old or new.
TEST(Tables, AreChangedAndReadByManyThreads) {
  const Tensor table = MutableTable(DT_INT64, DT_INT64);
  constexpr int64_t kKeys = 1000;
  const Tensor keys = Iota<int64_t>({kKeys});
  const auto values = [&](int64_t round) {
    Tensor tensor(DT_INT64, {kKeys});
    for (int64_t i = 0; i < kKeys; ++i) tensor.flat<int64_t>()(i) = i + kKeys * round;
    return tensor;
  };
  GRADFLOW_ASSERT_OK(Insert(table, keys, values(0)));
  std::atomic<int> readers{4};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int round = 0; round < 30; ++round) {
        const auto found =
            Call("LookupTableFindV2", table, {keys, AsScalar<int64_t>(-1)}).RunOnThreads(1);
        GRADFLOW_EXPECT_OK(found.status());
        if (!found.ok()) break;
        for (int64_t i = 0; i < kKeys; ++i) {
          EXPECT_EQ((*found)[0].span<int64_t>()[i] % kKeys, i);
        }
      }
      --readers;
    });
  }
  for (int64_t round = 1; readers > 0; ++round) {
    GRADFLOW_EXPECT_OK(Insert(table, keys, values(round)));
    const Tensor others = AsTensor<int64_t>({kKeys + round % 5000});
    GRADFLOW_EXPECT_OK(Insert(table, others, others));
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(Tables, ChargeTheirMemory) {
  SessionOptions options;
  options.tensor_memory_limit_bytes = 1 << 20;
  const Scope scope = Scope::NewRootScope();
  const ops::MutableHashTable table(scope, DT_INT64, DT_INT64);
  const Output keys = ops::Placeholder(scope, DT_INT64);
  const ops::LookupTableInsert insert(scope, table, keys, keys);
  const ops::LookupTableSize size(scope, table);
  GRADFLOW_ASSERT_OK(scope.status());
  ClientSession session(scope, options);
  GRADFLOW_EXPECT_OK(session.Run({{keys, Iota<int64_t>({1000})}}, {}, {insert.operation}, nullptr));
  EXPECT_THAT(session.Run({{keys, Iota<int64_t>({100'000})}}, {}, {insert.operation}, nullptr),
              StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("the entries of a table")));
  std::vector<Tensor> outputs;
  GRADFLOW_EXPECT_OK(session.Run({size}, &outputs));
  EXPECT_THAT(outputs[0], TensorEq(AsScalar<int64_t>(1000)));
}

}  // namespace
}  // namespace testing
}  // namespace gradflow
