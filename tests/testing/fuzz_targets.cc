#include "tests/testing/fuzz_targets.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <google/protobuf/stubs/logging.h>
#include <gtest/gtest.h>

#include <memory>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "gradflow/core/allocator.h"
#include "gradflow/core/attributes.h"
#include "gradflow/core/op_def_builder.h"
#include "gradflow/core/op_def_util.h"
#include "gradflow/core/tensor_proto.h"
#include "gradflow/graph/export.h"
#include "gradflow/graph/graph.h"
#include "gradflow/graph/import.h"
#include "gradflow/io/npy.h"
#include "gradflow/proto/graph.pb.h"
#include "gradflow/proto/op_def.pb.h"
#include "tests/testing/file_fuzz_targets.h"
#include "tests/testing/hostile_graph.h"
#include "tests/testing/http_fuzz_target.h"

namespace gradflow::testing {
namespace {

// The memory limit. It is small enough for thousands of runs per second, and the copies that a
// target makes stay within the limit of a fuzzer.
constexpr int64_t kMemory = 4 << 20;

// Imports a file into a graph twice, the second time with a prefix. The limits are so low that
// small files reach them.
void ImportTwice(absl::string_view bytes) {
  ImportGraphDefOptions options;
  options.limits.max_nodes = 32;
  options.limits.max_functions = 4;
  options.limits.max_inputs = 16;
  options.limits.max_attrs = 12;
  options.limits.max_list_outputs = 32;
  options.limits.max_name_bytes = 64;
  options.limits.max_list_length = 32;
  options.limits.max_constant_bytes = kMemory;
  const absl::StatusOr<GraphDef> def = ParseGraphDef(bytes, options.limits);
  Graph graph;
  if (!def.ok() || !ImportGraphDef(options, *def, &graph).ok()) return;
  const int nodes = graph.num_nodes();
  options.prefix = "p";
  const bool has_both = ImportGraphDef(options, *def, &graph).ok();
  EXPECT_EQ(graph.num_nodes(), has_both ? 2 * nodes : nodes);
}

void RunGraphDef(absl::string_view bytes) {
  ImportTwice(bytes);
  HostileOptions options;
  options.memory_bytes = kMemory;
  options.timeout_ms = 200;
  (void)RunHostileGraph(bytes, options);
}

// An allocator limited to kMemory.
class SmallAllocator final : public Allocator {
 public:
  void* Allocate(size_t bytes) override {
    return bytes > static_cast<size_t>(kMemory) ? nullptr : SystemAllocator()->Allocate(bytes);
  }
  void Deallocate(void* block, size_t bytes) override {
    SystemAllocator()->Deallocate(block, bytes);
  }
};

void RunTensorProto(absl::string_view bytes) {
  const google::protobuf::LogSilencer silencer;
  TensorProto proto;
  if (!proto.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) return;
  const absl::Status valid = ValidateTensorProto(proto);
  // Strings allocate their characters separately, and AddressSanitizer adds at least 64 bytes to
  // each of five copies.
  if (proto.dtype() == DT_STRING && valid.ok() && proto.string_val_size() > 0) {
    const TensorShape shape = TensorShape::Make(proto.tensor_shape()).value_or(TensorShape());
    if (shape.num_elements() > kMemory / 256) return;
  }
  static const auto* const allocator =
      new std::shared_ptr<Allocator>(std::make_shared<SmallAllocator>());
  const absl::StatusOr<Tensor> tensor = TensorFromProto(proto, *allocator);
  if (!tensor.ok()) {
    EXPECT_TRUE(tensor.status() == valid ||
                (valid.ok() && tensor.status().code() == absl::StatusCode::kResourceExhausted))
        << tensor.status() << " and " << valid;
    return;
  }
  EXPECT_TRUE(valid.ok()) << valid;
  EXPECT_FALSE(tensor->DebugString().empty());
  TensorProto again;
  TensorToProto(*tensor, &again);
  const absl::StatusOr<Tensor> copy = TensorFromProto(again, *allocator);
  ASSERT_TRUE(copy.ok()) << copy.status();
  EXPECT_EQ(copy->dtype(), tensor->dtype());
  EXPECT_EQ(copy->shape(), tensor->shape());
  if (tensor->dtype() != DT_STRING) {
    EXPECT_EQ(copy->tensor_data(), tensor->tensor_data());
  }
  AttrValue a;
  AttrValue b;
  *a.mutable_tensor() = proto;
  *b.mutable_tensor() = again;
  EXPECT_TRUE(AreAttrValuesEqual(a, b));
  EXPECT_FALSE(SummarizeAttrValue(a).empty());
}

void RunTextFormat(absl::string_view text) {
  const google::protobuf::LogSilencer silencer;
  const absl::StatusOr<GraphDef> graph = ParseGraphDefText(text);
  if (graph.ok()) {
    const std::string first = GraphDefToText(*graph);
    const absl::StatusOr<GraphDef> again = ParseGraphDefText(first);
    ASSERT_TRUE(again.ok()) << again.status();
    EXPECT_EQ(GraphDefToText(*again), first);
    EXPECT_TRUE(ParseGraphDef(graph->SerializeAsString()).ok());
  }
  for (const char* type : {"int", "list(int)", "string", "tensor", "shape", "list(func)", "type"}) {
    AttrValue value;
    if (!ParseAttrValue(type, text, &value)) continue;
    EXPECT_TRUE(AttrValueHasType(value, type).ok());
    EXPECT_FALSE(SummarizeAttrValue(value).empty());
  }
}

void RunNpy(absl::string_view bytes) {
  const absl::StatusOr<Tensor> tensor = ParseNpy(bytes);
  if (!tensor.ok()) return;
  const absl::StatusOr<std::string> header = FormatNpyHeader(*tensor);
  ASSERT_TRUE(header.ok()) << header.status();
  const absl::StatusOr<Tensor> again = ParseNpy(absl::StrCat(*header, tensor->tensor_data()));
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(again->dtype(), tensor->dtype());
  EXPECT_EQ(again->shape(), tensor->shape());
  EXPECT_EQ(again->tensor_data(), tensor->tensor_data());
}

void RunOpSpec(absl::string_view text) {
  const google::protobuf::LogSilencer silencer;
  OpDefBuilder builder("Fuzz");
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    if (line.size() < 2) continue;
    const absl::string_view spec = line.substr(2);
    switch (line[0]) {
      case 'i':
        builder.Input(spec);
        break;
      case 'o':
        builder.Output(spec);
        break;
      case 'd':
        builder.Doc(spec);
        break;
      default:
        builder.Attr(spec);
    }
  }
  OpDef op_def;
  const absl::Status status = builder.Finalize(&op_def);
  if (!status.ok()) {
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
    return;
  }
  EXPECT_TRUE(ValidateOpDef(op_def).ok());
  EXPECT_FALSE(OpDefSignature(op_def).empty());
  NodeDef node;
  node.set_name("n");
  node.set_op("Fuzz");
  AddDefaultsToNodeDef(op_def, &node);
  (void)ValidateNodeDef(node, op_def);
  DataTypeVector inputs;
  DataTypeVector outputs;
  (void)InOutTypesForNode(node, op_def, &inputs, &outputs);
}

template <typename Message, typename Mutate>
bool MutateProto(MutationRandom* random, std::string* bytes, Mutate mutate) {
  const google::protobuf::LogSilencer silencer;
  Message message;
  if (!message.ParseFromString(*bytes)) return false;
  for (int64_t i = random->Below(3); i >= 0; --i) mutate(random, &message);
  bytes->clear();
  google::protobuf::io::StringOutputStream stream(bytes);
  google::protobuf::io::CodedOutputStream coded(&stream);
  // Deterministic for a given seed.
  coded.SetSerializationDeterministic(true);
  return message.SerializePartialToCodedStream(&coded);
}

bool MutateGraphDef(MutationRandom* random, std::string* bytes) {
  return MutateProto<GraphDef>(random, bytes, MutateGraph);
}
bool MutateTensorProto(MutationRandom* random, std::string* bytes) {
  return MutateProto<TensorProto>(random, bytes, MutateMessage);
}

// The vocabulary of graphs and attribute values.
constexpr absl::string_view kTextWords =
    "node name op input device attr key value type shape tensor list func placeholder versions dim "
    "size library function s i f b { } < > : [ ] , ; # #? \n \" ' \\ DT_FLOAT DT_INT32 dtype "
    "tensor_shape float_val int_val string_val tensor_content nan -inf true false 1e40 0x1f - "
    "\\377 unknown_rank [foo.bar]";

bool MutateText(MutationRandom* random, std::string* text) {
  if (random->OneIn(2)) {
    const absl::StatusOr<GraphDef> parsed = ParseGraphDefText(*text);
    if (parsed.ok()) {
      GraphDef graph = *parsed;
      MutateGraph(random, &graph);
      *text = GraphDefToText(graph);
      return true;
    }
  }
  for (int64_t i = random->Below(3); i >= 0; --i) MutateWords(random, kTextWords, text);
  return true;
}

constexpr absl::string_view kNpyWords =
    "'descr' 'fortran_order' 'shape' True False ( ) () (3,) , : { } [ ' \" < > | = - L \n b1 i1 i2 "
    "i4 i8 u1 u4 u8 f2 f4 f8 c8 c16 S3 O";

// Mutates the words of the header, mostly correcting its length, or the bytes after it.
bool MutateNpy(MutationRandom* random, std::string* bytes) {
  if (bytes->size() < 12) return false;
  const bool is_version1 = (*bytes)[6] == 1;
  const size_t begin = is_version1 ? 10 : 12;
  size_t length = 0;
  for (size_t i = begin; i-- > 8;) length = length << 8 | static_cast<unsigned char>((*bytes)[i]);
  if (length > bytes->size() - begin) return false;
  std::string header = bytes->substr(begin, length);
  std::string data = bytes->substr(begin + length);
  bytes->resize(begin);
  if (random->OneIn(4)) {
    data.resize(random->Below(64));
  } else {
    MutateWords(random, kNpyWords, &header);
  }
  if (!random->OneIn(8)) {
    size_t rest = header.size();
    for (size_t i = 8; i < begin; ++i, rest >>= 8) (*bytes)[i] = static_cast<char>(rest);
  }
  absl::StrAppend(bytes, header, data);
  return true;
}

constexpr absl::string_view kSpecWords =
    "\ni \no \na \nd x: y: T: int float bool string shape tensor func type list numbertype "
    "realnumbertype quantizedtype Ref ( ) { } [ ] , : = >= * ~ ' \" DT_FLOAT half bfloat16 N T "
    "true false -1 1e-3";

bool MutateSpec(MutationRandom* random, std::string* text) {
  for (int64_t i = random->Below(3); i >= 0; --i) MutateWords(random, kSpecWords, text);
  return true;
}

constexpr FuzzTarget kTargets[] = {{"graph_def", RunGraphDef, MutateGraphDef},
                                   {"tensor_proto", RunTensorProto, MutateTensorProto},
                                   {"text_format", RunTextFormat, MutateText},
                                   {"npy", RunNpy, MutateNpy},
                                   {"op_spec", RunOpSpec, MutateSpec},
                                   {"checkpoint", RunCheckpoint, MutateCheckpoint},
                                   {"old_checkpoint", RunOldCheckpoint, MutateOldCheckpoint},
                                   {"idx", RunIdx, MutateIdx},
                                   {"image", RunImage, MutateImage},
                                   {"http_head", RunHttpHead, MutateHttpHead}};

}  // namespace

absl::Span<const FuzzTarget> FuzzTargets() { return kTargets; }

const FuzzTarget* FindFuzzTarget(absl::string_view name) {
  for (const FuzzTarget& target : kTargets) {
    if (target.name == name) return &target;
  }
  return nullptr;
}

}  // namespace gradflow::testing
