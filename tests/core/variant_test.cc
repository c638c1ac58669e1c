#include "gradflow/core/variant.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "gradflow/core/tensor_list.h"
#include "gradflow/core/tensor_proto.h"
#include "gradflow/core/variant_registry.h"
#include "gradflow/proto/tensor.pb.h"
#include "gradflow/testing/status_matchers.h"

namespace gradflow {
namespace {

using ::gradflow::testing::IsOk;
using ::gradflow::testing::StatusIs;
using ::testing::HasSubstr;

// Counts the values that exist.
template <size_t Bytes>
struct Counted {
  explicit Counted(int n) : value(n) { ++count; }
  Counted(const Counted& other) : value(other.value) { ++count; }
  Counted(Counted&& other) noexcept : value(other.value) { ++count; }
  Counted& operator=(const Counted&) = default;
  ~Counted() { --count; }
  std::string TypeName() const { return absl::StrCat("Counted", Bytes); }

  int value;
  char bytes[Bytes] = {};
  static inline int count = 0;
};

template <typename T>
class Values : public ::testing::Test {};
using CountedTypes = ::testing::Types<Counted<1>, Counted<200>>;
TYPED_TEST_SUITE(Values, CountedTypes);

TYPED_TEST(Values, AreCopiedMovedAndDestroyed) {
  {
    Variant a = TypeParam(1);
    EXPECT_EQ(TypeParam::count, 1);
    Variant b = a;
    EXPECT_EQ(TypeParam::count, 2);
    b.get<TypeParam>()->value = 2;
    EXPECT_EQ(a.get<TypeParam>()->value, 1);
    Variant c = std::move(b);
    EXPECT_TRUE(b.is_empty());  // NOLINT: the test reads a moved value
    EXPECT_EQ(TypeParam::count, 2);
    EXPECT_EQ(c.get<TypeParam>()->value, 2);
    a.swap(c);
    EXPECT_EQ(a.get<TypeParam>()->value, 2);
    EXPECT_EQ(c.get<TypeParam>()->value, 1);
    a = *&a;
    EXPECT_EQ(a.get<TypeParam>()->value, 2);
    a = 5;
    EXPECT_EQ(TypeParam::count, 1);
    c.template emplace<TypeParam>(7);
    EXPECT_EQ(c.get<TypeParam>()->value, 7);
    c.clear();
    EXPECT_EQ(TypeParam::count, 0);
    c = TypeParam(1);
  }
  EXPECT_EQ(TypeParam::count, 0);
}

TEST(Variant, KnowsTheTypeOfItsValue) {
  Variant v;
  EXPECT_TRUE(v.is_empty());
  EXPECT_EQ(v.get<void>(), nullptr);
  EXPECT_EQ(v.TypeName(), "");
  EXPECT_EQ(v.TypeId(), TypeIndex::Make<void>());
  EXPECT_EQ(v.DebugString(), "Variant<type:  value: >");
  v = 3;
  EXPECT_EQ(v.get<float>(), nullptr);
  EXPECT_EQ(*v.get<int>(), 3);
  EXPECT_EQ(v.get<void>(), v.get<int>());
  EXPECT_EQ(v.TypeId(), TypeIndex::Make<int>());
  EXPECT_EQ(v.DebugString(), "Variant<type: int value: 3>");
  v = std::string("text");
  EXPECT_EQ(v.SummarizeValue(), "text");
  v = std::vector<int>{1};
  EXPECT_EQ(v.SummarizeValue(), "?");
  v = Counted<1>(1);
  EXPECT_EQ(v.DebugString(), "Variant<type: Counted1 value: ?>");
  v = Tensor(2.f);
  EXPECT_EQ(v.DebugString(),
            "Variant<type: tensorflow::Tensor value: Tensor<type: float shape: [] values: 2>>");
  TensorProto proto;
  proto.set_dtype(DT_FLOAT);
  v = proto;
  EXPECT_EQ(v.TypeName(), "tensorflow.TensorProto");
  GRADFLOW_ASSERT_OK(TensorList::Make(DT_INT8, {}).status());
  v = *TensorList::Make(DT_INT8, {});
  EXPECT_EQ(v.DebugString(),
            "Variant<type: tensorflow::TensorList value: 0 elements of type int8>");
}

TEST(Variant, EncodesAndDecodesItsValue) {
  const auto decoded = [](const Variant& from, Variant to) {
    VariantTensorData data;
    from.Encode(&data);
    EXPECT_EQ(data.type_name(), from.TypeName());
    EXPECT_TRUE(to.Decode(data));
    return to;
  };
  EXPECT_EQ(*decoded(7, 0).get<int>(), 7);
  EXPECT_EQ(*decoded(std::string("abc"), std::string()).get<std::string>(), "abc");
  EXPECT_EQ(decoded(Tensor(7.f), Tensor()).get<Tensor>()->span<float>()[0], 7);
  TensorProto proto;
  proto.set_version_number(9);
  EXPECT_EQ(decoded(proto, TensorProto()).get<TensorProto>()->version_number(), 9);

  VariantTensorData data;
  Variant(int64_t{7}).Encode(&data);
  EXPECT_FALSE(Variant(int32_t{0}).Decode(data));
  EXPECT_FALSE(Variant(Tensor()).Decode(data));
  EXPECT_FALSE(Variant().Decode(data));
  // Any byte but 0 is true: a bool may have no other bits.
  data.metadata_string() = "-";
  bool flag = false;
  EXPECT_TRUE(data.get_metadata(&flag));
  EXPECT_EQ(static_cast<int>(flag), 1);
}

TEST(Variant, SharesAnEncodedValueUntilItIsWritten) {
  VariantTensorDataProto proto;
  proto.set_type_name("Mine");
  Variant a = proto;
  Variant b = a;
  EXPECT_EQ(a.TypeName(), "Mine");
  EXPECT_EQ(std::as_const(a).get<VariantTensorDataProto>(),
            std::as_const(b).get<VariantTensorDataProto>());
  b.get<VariantTensorDataProto>()->set_type_name("Other");
  EXPECT_EQ(a.TypeName(), "Mine");
  EXPECT_EQ(b.TypeName(), "Other");
}

TEST(Variant, DecodesAndCopies) {
  VariantTensorData data;
  Variant(42).Encode(&data);
  VariantTensorDataProto proto;
  data.ToProto(&proto);
  int value = 0;
  EXPECT_TRUE(Variant(proto).MaybeDecodeAndCopy(&value));
  EXPECT_EQ(value, 42);
  EXPECT_TRUE(Variant(43).MaybeDecodeAndCopy(&value));
  EXPECT_EQ(value, 43);
  double other = 1;
  EXPECT_FALSE(Variant(proto).MaybeDecodeAndCopy(&other));
  EXPECT_FALSE(Variant().MaybeDecodeAndCopy(&other));
  EXPECT_EQ(other, 1);
}

// ---- Tensors of variants ----

TEST(TensorsOfVariants, ConstructShareCopyAndDestroyTheirElements) {
  using Value = Counted<200>;
  {
    Tensor t(DT_VARIANT, {2, 3});
    EXPECT_TRUE(t.IsInitialized());
    EXPECT_TRUE(t.flat<Variant>()(5).is_empty());
    EXPECT_EQ(t.TotalBytes(), 6 * sizeof(Variant));
    t.matrix<Variant>()(1, 2) = Value(3);
    const Tensor shared = t;
    EXPECT_EQ(Value::count, 1);
    EXPECT_EQ(shared.flat<Variant>()(5).get<Value>()->value, 3);
    EXPECT_EQ(t.SubSlice(1).vec<Variant>()(2).get<Value>()->value, 3);
    const absl::StatusOr<Tensor> copy = t.DeepCopy();
    GRADFLOW_ASSERT_OK(copy.status());
    EXPECT_EQ(Value::count, 2);
    EXPECT_FALSE(copy->SharesBufferWith(t));
    EXPECT_EQ(copy->span<Variant>()[5].get<Value>()->value, 3);
  }
  EXPECT_EQ(Value::count, 0);
  EXPECT_EQ(Tensor(Variant(5)).scalar<Variant>()().SummarizeValue(), "5");
  EXPECT_EQ(Tensor(Variant(5)).DebugString(), "Tensor<type: variant shape: [] values: <5>>");
  int bytes[64] = {};
  EXPECT_THAT(Tensor::FromMemory(DT_VARIANT, {1}, bytes, true, nullptr).status(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       "a tensor of type variant cannot be made over plain memory"));
}

// The destructor of a tensor must not recurse with the depth of what it holds.
TEST(TensorsOfVariants, HoldTensorsToAnyDepth) {
  Tensor tensors(DT_VARIANT, {});
  for (int i = 0; i < 1'000'000; ++i) {
    Tensor outer(DT_VARIANT, {});
    outer.scalar<Variant>()() = std::move(tensors);
    tensors = std::move(outer);
  }
  Tensor lists(DT_VARIANT, {});
  for (int i = 0; i < 200'000; ++i) {
    TensorList list = *TensorList::Make(DT_VARIANT, {});
    GRADFLOW_ASSERT_OK(list.PushBack(std::move(lists)));
    lists = Tensor(DT_VARIANT, {});
    lists.scalar<Variant>()() = std::move(list);
  }
}

// ---- Messages ----

Tensor ListTensor(TensorList list) {
  Tensor tensor(DT_VARIANT, {});
  tensor.scalar<Variant>()() = std::move(list);
  return tensor;
}

TEST(VariantProtos, RoundTripTensorsOfVariants) {
  TensorList list = *TensorList::Make(DT_FLOAT, {-1, 2}, 9);
  GRADFLOW_ASSERT_OK(list.Resize(5));
  GRADFLOW_ASSERT_OK(list.Set(1, Tensor(DT_FLOAT, {1, 2})));
  Tensor two(DT_FLOAT, {2, 2});
  two.flat<float>().setConstant(3);
  GRADFLOW_ASSERT_OK(list.Set(3, two));
  Tensor tensor(DT_VARIANT, {4});
  tensor.vec<Variant>()(0) = list;
  tensor.vec<Variant>()(1) = 7;
  tensor.vec<Variant>()(2) = Counted<1>(1);

  TensorProto proto;
  tensor.AsProtoField(&proto);
  TensorProto content;
  tensor.AsProtoTensorContent(&content);
  EXPECT_EQ(proto.SerializeAsString(), content.SerializeAsString());
  EXPECT_EQ(proto.variant_val(0).type_name(), "tensorflow::TensorList");
  EXPECT_EQ(proto.variant_val(0).tensors_size(), 2);

  const absl::StatusOr<Tensor> read = TensorFromProto(proto);
  GRADFLOW_ASSERT_OK(read.status());
  const auto values = read->vec<Variant>();
  const auto* const got = values(0).get<TensorList>();
  ASSERT_NE(got, nullptr);
  EXPECT_EQ(got->element_dtype(), DT_FLOAT);
  EXPECT_EQ(got->element_shape(), PartialTensorShape({-1, 2}));
  EXPECT_EQ(got->max_num_elements(), 9);
  ASSERT_EQ(got->size(), 5);
  for (int i = 0; i < 5; ++i) EXPECT_EQ(got->IsSet(i), i == 1 || i == 3);
  EXPECT_EQ(got->elements()[3].flat<float>()(3), 3);
  EXPECT_EQ(*values(1).get<int>(), 7);
  // The type has no decoder.
  ASSERT_NE(values(2).get<VariantTensorDataProto>(), nullptr);
  EXPECT_EQ(values(2).TypeName(), "Counted1");
  EXPECT_TRUE(values(3).is_empty());
}

TEST(VariantProtos, RepeatTheirLastValue) {
  TensorProto proto;
  proto.set_dtype(DT_VARIANT);
  proto.mutable_tensor_shape()->add_dim()->set_size(1000);
  proto.add_variant_val()->set_type_name("unknown");
  proto.mutable_variant_val(0)->set_metadata(std::string(100'000, 'x'));
  const absl::StatusOr<Tensor> read = TensorFromProto(proto);
  GRADFLOW_ASSERT_OK(read.status());
  const Tensor& tensor = *read;
  EXPECT_EQ(tensor.vec<Variant>()(999).get<VariantTensorDataProto>(),
            tensor.vec<Variant>()(0).get<VariantTensorDataProto>());
  proto.clear_variant_val();
  EXPECT_TRUE(TensorFromProto(proto)->vec<Variant>()(999).is_empty());
}

// Returns `depth` levels of lists.
TensorProto Nested(int depth) {
  TensorProto proto;
  proto.set_dtype(DT_VARIANT);
  TensorProto* inner = &proto;
  for (int i = 0; i < depth; ++i) {
    VariantTensorDataProto* const value = inner->add_variant_val();
    value->set_type_name("tensorflow::TensorList");
    value->set_metadata(std::string("\x00\x15\x01", 3));
    inner = value->add_tensors();
    inner->set_dtype(DT_VARIANT);
  }
  return proto;
}

TEST(VariantProtos, AreCheckedBeforeTheyAreDecoded) {
  const absl::StatusOr<Tensor> deep = TensorFromProto(Nested(64));
  GRADFLOW_ASSERT_OK(deep.status());
  EXPECT_EQ(deep->scalar<Variant>()().get<TensorList>()->size(), 1);
  for (const TensorProto& proto : {Nested(65)}) {
    EXPECT_THAT(ValidateTensorProto(proto),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         HasSubstr("expected at most 64 levels of variants in variants")));
    EXPECT_EQ(TensorFromProto(proto).status(), ValidateTensorProto(proto));
  }
  TensorProto proto = Nested(1);
  proto.mutable_variant_val(0)->mutable_tensors(0)->add_float_val(1);
  EXPECT_THAT(TensorFromProto(proto).status(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       "variant_val[0].tensors[0]: expected the values of a tensor of type variant "
                       "in variant_val, but found 1 in float_val"));
  proto = Nested(1);
  proto.set_tensor_content("x");
  EXPECT_THAT(TensorFromProto(proto).status(), StatusIs(absl::StatusCode::kInvalidArgument));
}

// A list in a message may have other metadata than lists write. It stays encoded then.
TEST(VariantProtos, KeepListsThatAreNotValid) {
  const std::string kMax = "\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01";
  const std::string cases[] = {
      "",
      std::string("\x00", 1),
      std::string("\x00\x01", 2),
      std::string("\x01\x02\x01\x01", 4),      // an index past the end
      std::string("\x02\x01\x01\x01\x01", 5),  // an index twice
      std::string("\x00\x00\x01", 3),          // no element type
      std::string("\x00\x4d\x01", 3),
      std::string("\x00\x03\x01", 3),                  // elements of another type
      std::string("\x00\x01\x01\x12\x02\x08", 6),      // not a shape
      std::string("\x00\x01\x01\x12\x02\x08\x05", 7),  // elements of another shape
      kMax + "\x01\x01",                               // more unset elements than bytes
      std::string("\x00", 1) + kMax + "\x01",
  };
  for (const std::string& metadata : cases) {
    SCOPED_TRACE(absl::CEscape(metadata));
    TensorProto proto;
    proto.set_dtype(DT_VARIANT);
    VariantTensorDataProto* const value = proto.add_variant_val();
    value->set_type_name("tensorflow::TensorList");
    value->set_metadata(metadata);
    value->add_tensors()->set_dtype(DT_FLOAT);
    const absl::StatusOr<Tensor> read = TensorFromProto(proto);
    GRADFLOW_ASSERT_OK(read.status());
    EXPECT_NE(read->scalar<Variant>()().get<VariantTensorDataProto>(), nullptr);
  }
}

// Each list holds the next twice.
TEST(VariantProtos, AreLimitedWhereListsShareLists) {
  TensorList list = *TensorList::Make(DT_FLOAT, {});
  for (int depth = 0; depth < 10; ++depth) {
    TensorList outer = *TensorList::Make(DT_VARIANT, {});
    GRADFLOW_ASSERT_OK(outer.PushBack(ListTensor(list)));
    GRADFLOW_ASSERT_OK(outer.PushBack(ListTensor(list)));
    list = outer;
  }
  TensorProto small;
  TensorToProto(ListTensor(list), &small);
  EXPECT_THAT(TensorFromProto(small), IsOk());
  EXPECT_GT(small.ByteSizeLong(), 1 << 10);

  // Deeper than a message can be.
  list = *TensorList::Make(DT_FLOAT, {});
  for (int depth = 0; depth < 1000; ++depth) {
    TensorList outer = *TensorList::Make(DT_VARIANT, {});
    GRADFLOW_ASSERT_OK(outer.PushBack(ListTensor(list)));
    list = outer;
  }
  TensorProto deep;
  TensorToProto(ListTensor(list), &deep);
  GRADFLOW_EXPECT_OK(ValidateTensorProto(deep));
}

TEST(VariantProtos, BytesIncludeTheTensorsOfVariants) {
  TensorProto proto = Nested(1);
  TensorProto* const inner = proto.mutable_variant_val(0)->mutable_tensors(0);
  inner->set_dtype(DT_DOUBLE);
  inner->mutable_tensor_shape()->add_dim()->set_size(1 << 20);
  EXPECT_GE(TensorProtoBytes(proto), 8 << 20);
  EXPECT_LT(TensorProtoBytes(proto), 9 << 20);
  inner->mutable_tensor_shape()->add_dim()->set_size(int64_t{1} << 42);
  EXPECT_EQ(TensorProtoBytes(proto), -1);
}

// ---- VariantRegistry ----

struct Registered {
  int value = 0;
  std::string TypeName() const { return "Registered"; }
};

TEST(VariantRegistry, DecodesRegisteredTypes) {
  VariantRegistry& registry = VariantRegistry::Global();
  EXPECT_EQ(registry.FindDecode("Registered"), nullptr);
  GRADFLOW_ASSERT_OK(registry.RegisterDecode<Registered>("Registered"));
  EXPECT_THAT(
      registry.RegisterDecode<Registered>("Registered"),
      StatusIs(absl::StatusCode::kAlreadyExists,
               "a function that decodes variants of type 'Registered' is already registered"));
  TensorProto proto;
  TensorToProto(Tensor(Variant(Registered{7})), &proto);
  const absl::StatusOr<Tensor> read = TensorFromProto(proto);
  GRADFLOW_ASSERT_OK(read.status());
  ASSERT_NE(read->scalar<Variant>()().get<Registered>(), nullptr);
  EXPECT_EQ(read->scalar<Variant>()().get<Registered>()->value, 7);
  // Metadata that no Registered has.
  proto.mutable_variant_val(0)->set_metadata("too long to be one");
  EXPECT_NE(TensorFromProto(proto)->scalar<Variant>()().get<VariantTensorDataProto>(), nullptr);
}

}  // namespace
}  // namespace gradflow
