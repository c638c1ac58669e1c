// Tests the amplification of each op: the bytes of tensors that a call takes per byte of its graph
// and inputs. The fourth column of a row in tests/data/op_rows.txt is the bound of the op. Without
// this column, the bound is kDefaultBound. An op that exceeds kDefaultBound needs an explicit bound
// and a row in docs/security.md.
//
// Each row is run unchanged, and with changes that ask for more memory: large numbers in integer
// inputs and attributes, inputs of shapes that broadcast to their product, long inputs, and long
// strings. The bound "limit" means that only the session's memory limit applies. The bound
// "product" is for ops that broadcast or multiply their inputs, whose memory may be the product of
// the sizes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <iostream>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "gradflow/core/registry.h"
#include "gradflow/proto/graph.pb.h"
#include "gradflow/proto/op_def.pb.h"
#include "gradflow/runtime/session/session.h"
#include "tests/testing/op_rows.h"
#include "tests/testing/sanitizers.h"
#include "tests/testing/subprocess.h"

namespace gradflow::amplification {
namespace {

using ::gradflow::testing::AddOpRow;
using ::gradflow::testing::Knowledge;
using ::gradflow::testing::ParseTensors;
using ::gradflow::testing::ReadFile;
using ::gradflow::testing::ReadRows;

constexpr char kOpRows[] = GRADFLOW_TEST_DATA_DIR "/op_rows.txt";
constexpr char kDocument[] = GRADFLOW_TEST_DATA_DIR "/../../docs/security.md";

// The bytes of tensors per byte of input that every op may take. They cover outputs and temporary
// tensors, each with at least a small block, and conversions of inputs to wider types.
constexpr double kDefaultBound = 16;
constexpr int64_t kMemoryLimit = int64_t{32} << 20;

// The bound of an op that only the memory limit of the session restricts, and of an op whose
// outputs have at most the product of the numbers of elements of its inputs.
constexpr double kLimit = 1e9;
constexpr double kProduct = 1e8;
// The allowed bytes per element of such a product.
constexpr double kProductBytes = 64;

struct Call {
  NodeDef node;
  std::vector<Tensor> inputs;
  // The variables that the node reads, and the nodes that initialize them.
  std::vector<NodeDef> variables;
};

bool IsInteger(DataType dtype) {
  return dtype == DT_INT16 || dtype == DT_INT32 || dtype == DT_INT64;
}

Tensor Zeros(DataType dtype, const TensorShape& shape) {
  Tensor tensor(dtype, shape);
  if (dtype != DT_STRING && tensor.NumElements() > 0) {
    std::memset(tensor.raw_data(), 0, tensor.TotalBytes());
  }
  return tensor;
}

void SetAll(int64_t value, Tensor* tensor) {
  *tensor = Zeros(tensor->dtype(), tensor->shape());
  DispatchType(TypeList<int16_t, int32_t, int64_t>(), tensor->dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    const auto narrow = static_cast<T>(std::min<int64_t>(value, std::numeric_limits<T>::max()));
    std::fill_n(tensor->flat<T>().data(), tensor->NumElements(), narrow);
  });
}

// Returns changes of a call that may need more memory. Most of them are invalid.
std::vector<Call> Changes(const Call& call) {
  std::vector<Call> changes = {call};
  constexpr int64_t kLarge[] = {100, 3000, 1 << 20, int64_t{1} << 40};
  // With one byte per element, this exceeds the session's memory.
  constexpr int64_t kHuge = int64_t{1} << 26;
  const auto add = [&](auto change) {
    Call changed = call;
    change(&changed);
    changes.push_back(std::move(changed));
  };
  const auto count = static_cast<int>(call.inputs.size());
  for (const int64_t large : kLarge) {
    for (int i = 0; i < count; ++i) {
      if (!IsInteger(call.inputs[i].dtype())) continue;
      add([&](Call* c) { SetAll(large, &c->inputs[i]); });
      // Changes only the first element.
      add([&](Call* c) {
        Tensor& input = c->inputs[i];
        const Tensor before = input;
        SetAll(large, &input);
        const size_t element = DataTypeSize(input.dtype());
        if (input.NumElements() < 2) return;
        std::memcpy(static_cast<char*>(input.raw_data()) + element,
                    static_cast<const char*>(before.raw_data()) + element,
                    (input.NumElements() - 1) * element);
      });
    }
    for (const auto& [name, value] : call.node.attr()) {
      if (value.value_case() == AttrValue::kI) {
        add([&, &n = name](Call* c) { (*c->node.mutable_attr())[n].set_i(large); });
      } else if (value.value_case() == AttrValue::kShape) {
        add([&, &n = name](Call* c) {
          TensorShape({large}).AsProto((*c->node.mutable_attr())[n].mutable_shape());
        });
      } else if (value.value_case() == AttrValue::kList && value.list().i_size() > 0) {
        add([&, &n = name](Call* c) {
          for (auto& i : *(*c->node.mutable_attr())[n].mutable_list()->mutable_i()) i = large;
        });
      }
    }
  }
  // Shapes whose broadcast or matrix product has the product of their sizes.
  constexpr int64_t kSide = 512;
  for (int i = 0; i < count; ++i) {
    for (int j = 0; j < count; ++j) {
      if (i == j) continue;
      add([&](Call* c) {
        c->inputs[i] = Zeros(c->inputs[i].dtype(), {kSide, 1});
        c->inputs[j] = Zeros(c->inputs[j].dtype(), {1, kSide});
      });
      for (const TensorShape& x : {TensorShape{kHuge, 0}, TensorShape{0, kHuge}}) {
        for (const TensorShape& y : {TensorShape{kHuge, 0}, TensorShape{0, kHuge}}) {
          add([&](Call* c) {
            c->inputs[i] = Zeros(c->inputs[i].dtype(), x);
            c->inputs[j] = Zeros(c->inputs[j].dtype(), y);
          });
        }
      }
      // The same with batches.
      add([&](Call* c) {
        c->inputs[i] = Zeros(c->inputs[i].dtype(), {1, kSide, 1});
        c->inputs[j] = Zeros(c->inputs[j].dtype(), {1, 1, kSide});
      });
    }
  }
  // Tensors without elements, whose large dimensions cost nothing. The other dimensions are 0, or
  // one of them is.
  for (int i = 0; i < count; ++i) {
    for (int d = 0; d < call.inputs[i].dims(); ++d) {
      TensorShape shape = call.inputs[i].shape();
      shape.set_dim(d, kHuge);
      for (int zero = 0; zero < shape.dims(); ++zero) {
        if (zero == d) continue;
        TensorShape one_zero = shape;
        one_zero.set_dim(zero, 0);
        add([&](Call* c) { c->inputs[i] = Zeros(c->inputs[i].dtype(), one_zero); });
      }
      if (shape.dims() < 3) continue;
      for (int other = 0; other < shape.dims(); ++other) {
        if (other != d) shape.set_dim(other, 0);
      }
      add([&](Call* c) { c->inputs[i] = Zeros(c->inputs[i].dtype(), shape); });
    }
  }
  add([&](Call* c) {
    for (Tensor& input : c->inputs) {
      TensorShape shape = input.shape();
      if (shape.dims() > 0) shape.set_dim(0, shape.dim_size(0) * 256);
      if (!IsInteger(input.dtype())) input = Zeros(input.dtype(), shape);
    }
  });
  for (int i = 0; i < count; ++i) {
    const Tensor& input = call.inputs[i];
    if (input.dims() > 0) {
      // The square of the long dimension exceeds the session's memory.
      for (const int64_t size : {1000, 10'000}) {
        TensorShape shape = input.shape();
        shape.set_dim(0, size);
        add([&](Call* c) { c->inputs[i] = Zeros(c->inputs[i].dtype(), shape); });
      }
    }
    if (input.dtype() == DT_STRING && input.NumElements() > 0) {
      add([&](Call* c) {
        c->inputs[i] = Zeros(DT_STRING, c->inputs[i].shape());
        c->inputs[i].flat<tstring>()(0) = std::string(10'000, 'x');
      });
    }
  }
  return changes;
}

// Returns the bytes of tensors that a call takes per byte of its graph and inputs, or 0 if it fails
// before it takes memory. Returns kProduct if the call takes more than kDefaultBound but at most
// the product of the sizes of its inputs, and kLimit if it exceeds the session's memory.
double Measure(const Call& call) {
  GraphDef graph;
  std::vector<std::pair<std::string, Tensor>> feeds;
  size_t input_bytes = 0;
  double product = 1;
  for (size_t i = 0; i < call.inputs.size(); ++i) {
    NodeDef* const node = graph.add_node();
    node->set_name(absl::StrCat("n/i", i));
    node->set_op("Placeholder");
    AddNodeAttr("dtype", call.inputs[i].dtype(), node);
    feeds.emplace_back(node->name(), call.inputs[i]);
    input_bytes += call.inputs[i].TotalBytes();
    product *= static_cast<double>(std::max<int64_t>(call.inputs[i].NumElements(), 1));
  }
  for (const NodeDef& variable : call.variables) *graph.add_node() = variable;
  *graph.add_node() = call.node;
  input_bytes += graph.ByteSizeLong();

  SessionOptions options;
  options.tensor_memory_limit_bytes = kMemoryLimit;
  options.pool_limit_bytes = 0;
  options.config.set_inter_op_parallelism_threads(1);
  options.config.set_intra_op_parallelism_threads(1);
  const absl::StatusOr<std::unique_ptr<Session>> session = Session::Make(options);
  if (!session.ok() || !(*session)->Create(graph).ok()) return 0;
  (*session)->ResetPeakMemory();
  RunOptions run_options;
  run_options.set_timeout_in_ms(1000);
  std::vector<Tensor> outputs;
  const std::vector<std::string> fetches = *(*session)->UnusedOutputs();
  const absl::Status status =
      (*session)->Run(run_options, feeds, fetches, {"n"}, &outputs, nullptr);
  if (absl::IsResourceExhausted(status)) return kLimit;
  EXPECT_FALSE(absl::IsInternal(status)) << status;
  const auto peak = static_cast<double>((*session)->MemoryStats().peak_bytes_in_use);
  const double factor = peak / static_cast<double>(input_bytes);
  return factor > kDefaultBound && peak <= kProductBytes * product ? kProduct : factor;
}

// Returns the bound in the fourth column of a row.
double BoundOf(const std::vector<std::string>& row) {
  if (row.size() < 4) return kDefaultBound;
  if (row[3] == "limit") return kLimit;
  if (row[3] == "product") return kProduct;
  double bound = 0;
  EXPECT_TRUE(absl::SimpleAtod(row[3], &bound) && bound > kDefaultBound)
      << row[0] << ": '" << row[3]
      << "' is neither \"limit\" nor \"product\" nor a number above the default, " << kDefaultBound;
  return bound;
}

// Tests every kParts-th row of op_rows.txt, starting with row `GetParam()`, so that tests can run
// in parallel.
constexpr int kParts = 8;
class AmplificationByOp : public ::testing::TestWithParam<int> {};

// An op may have one row or several.
TEST_P(AmplificationByOp, EveryOpStaysWithinItsBound) {
  const bool print = std::getenv("GRADFLOW_AMPLIFIERS") != nullptr;
  std::multimap<double, std::string> found;
  const std::vector<std::vector<std::string>> rows = ReadRows(kOpRows);
  ASSERT_GT(rows.size(), kParts);
  // AddressSanitizer looks at a quarter of the rows. The tests of mutations run every op as well.
  constexpr size_t kStep = ::gradflow::testing::kHasAddressSanitizer ? 4 * kParts : kParts;
  for (size_t at = GetParam(); at < rows.size(); at += kStep) {
    const std::vector<std::string>& row = rows[at];
    ASSERT_THAT(row.size(), ::testing::AnyOf(3u, 4u)) << row[0];
    Call call;
    call.inputs = ParseTensors(row[2]);
    GraphDef graph;
    std::vector<std::pair<std::string, Tensor>> feeds;
    AddOpRow("n", row[0], row[1], call.inputs, Knowledge::kNothing, &graph, &feeds);
    call.node = graph.node(graph.node_size() - 1);
    for (int i = 0; i + 1 < graph.node_size(); ++i) {
      if (graph.node(i).op() != "Placeholder") call.variables.push_back(graph.node(i));
    }
    double most = 0;
    for (const Call& change : Changes(call)) most = std::max(most, Measure(change));
    found.emplace(most, row[0]);
    const double bound = BoundOf(row);
    EXPECT_LE(most, bound) << row[0] << " takes " << most
                           << " bytes of tensors for a byte of input. Add a fourth column to its "
                              "row in op_rows.txt, "
                           << (most == kLimit     ? std::string("limit")
                               : most == kProduct ? std::string("product")
                                                  : absl::StrCat(most * 2))
                           << ", and run this program with GRADFLOW_UPDATE_GOLDEN=1";
    // A bound must not be much too large. The scratch memory of a product depends on the processor,
    // because oneDNN selects its code for it.
    if (row.size() == 4 && bound != kProduct) {
      EXPECT_GE(most, bound / 8) << row[0] << " needs no such bound";
    }
  }
  for (auto it = found.rbegin(); print && it != found.rend(); ++it) {
    std::cout << it->second << " " << it->first << "\n";
  }
}

INSTANTIATE_TEST_SUITE_P(Parts, AmplificationByOp, ::testing::Range(0, kParts));

// Returns the table of docs/security.md: the bounds that differ from the default, largest first,
// and their ops.
std::string TableOfAmplifiers() {
  std::map<std::string, double> bounds;
  for (const std::vector<std::string>& row : ReadRows(kOpRows)) {
    if (row.size() == 4) bounds[row[0]] = std::max(bounds[row[0]], BoundOf(row));
  }
  std::map<double, std::vector<std::string>, std::greater<>> ops;
  for (const auto& [op, bound] : bounds) ops[bound].push_back(absl::StrCat("`", op, "`"));
  std::string table;
  for (const auto& [bound, names] : ops) {
    absl::StrAppend(&table, "| ", absl::StrJoin(names, ", "), " | ",
                    bound == kLimit     ? "`limit`"
                    : bound == kProduct ? "`product`"
                                        : absl::StrCat(bound),
                    " |\n");
  }
  return table;
}

// GRADFLOW_UPDATE_GOLDEN=1 replaces the table.
TEST(Amplification, DocumentHasEveryBound) {
  constexpr char kHead[] = "| Ops | Bytes of tensors per byte of input |\n|---|---|\n";
  const std::string text = ReadFile(kDocument);
  const size_t head = text.find(kHead);
  ASSERT_NE(head, std::string::npos);
  const size_t table = head + std::strlen(kHead);
  const size_t end = text.find("\n\n", head) + 1;
  const std::string expected = TableOfAmplifiers();
  if (std::getenv("GRADFLOW_UPDATE_GOLDEN") != nullptr) {
    ::gradflow::testing::WriteFile(kDocument, text.substr(0, table) + expected + text.substr(end));
    return;
  }
  EXPECT_EQ(text.substr(table, end - table), expected)
      << "run again with GRADFLOW_UPDATE_GOLDEN=1 to update docs/security.md";
}

}  // namespace
}  // namespace gradflow::amplification
