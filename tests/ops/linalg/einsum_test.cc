#include <algorithm>
#include <cstdint>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_split.h"
#include "gradflow/testing/kernel_test.h"
#include "tests/ops/common/error_case.h"
#include "tests/testing/constants.h"
#include "tests/testing/op_reference.h"

namespace gradflow {
namespace testing {
namespace {

using ::testing::HasSubstr;

// Replaces "..." by the last letters of "WXYZ", one for each dimension that it stands for.
std::string WithoutEllipsis(std::string subscript, int rank) {
  const size_t at = subscript.find("...");
  if (at == std::string::npos) return subscript;
  const size_t count = rank - (subscript.size() - 3);
  return subscript.replace(at, 3, std::string("WXYZ").substr(4 - count));
}

// Sums over all label values in float64.
Tensor EinsumReference(const std::string& equation, const std::vector<Tensor>& inputs) {
  const std::vector<std::string> sides = absl::StrSplit(equation, "->");
  std::vector<std::string> subscripts = absl::StrSplit(sides[0], ',');
  std::map<char, int64_t> sizes;
  size_t ellipsis = 0;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (subscripts[i].find("...") != std::string::npos) {
      ellipsis = std::max(ellipsis, inputs[i].dims() - (subscripts[i].size() - 3));
    }
    subscripts[i] = WithoutEllipsis(subscripts[i], inputs[i].dims());
    for (int d = 0; d < inputs[i].dims(); ++d) {
      int64_t& size = sizes[subscripts[i][d]];
      size = std::max(size, inputs[i].dim_size(d));
    }
  }
  std::string output = sides[1];
  if (const size_t at = output.find("..."); at != std::string::npos) {
    output.replace(at, 3, std::string("WXYZ").substr(4 - ellipsis));
  }
  std::map<char, int64_t> index;
  int64_t total = 1;
  for (const auto& [label, size] : sizes) total *= size;
  TensorShape shape;
  for (const char label : output) shape.AddDim(sizes[label]);
  std::vector<double> sums(shape.num_elements());
  const auto offset = [&](const std::string& labels, const TensorShape& dims) {
    int64_t at = 0;
    for (int d = 0; d < dims.dims(); ++d) {
      at = at * dims.dim_size(d) + (dims.dim_size(d) == 1 ? 0 : index[labels[d]]);
    }
    return at;
  };
  for (int64_t i = 0; i < total; ++i) {
    int64_t rest = i;
    for (const auto& [label, size] : sizes) {
      index[label] = rest % size;
      rest /= size;
    }
    double product = 1;
    for (size_t k = 0; k < inputs.size(); ++k) {
      const int64_t at = offset(subscripts[k], inputs[k].shape());
      DispatchType(RealTypes(), inputs[k].dtype(), [&](auto tag) {
        product *= static_cast<double>(inputs[k].flat<typename decltype(tag)::type>()(at));
      });
    }
    sums[offset(output, shape)] += product;
  }
  return FromDoubles(inputs[0].dtype(), shape, sums);
}

OpTester Einsum(const std::string& equation, const std::vector<Tensor>& inputs) {
  return OpTester("Einsum").Inputs(inputs).Attr("equation", equation);
}

TEST(Einsum, RunsForManyEquations) {
  struct Case {
    const char* equation;
    std::vector<TensorShape> shapes;
  };
  const std::vector<Case> cases = {
      {"ij,jk->ik", {{2, 3}, {3, 4}}},
      {"ij,kj->ik", {{2, 3}, {4, 3}}},
      {"ji,jk->ki", {{3, 2}, {3, 4}}},
      {"ij,jk->ki", {{2, 3}, {3, 4}}},
      {"bij,bjk->bik", {{5, 2, 3}, {5, 3, 4}}},
      {"bij,bkj->bki", {{5, 2, 3}, {5, 4, 3}}},
      {"ibj,jkb->kbi", {{2, 5, 3}, {3, 4, 5}}},
      {"abcd,cdef->abef", {{2, 3, 4, 2}, {4, 2, 3, 2}}},
      {"abcd,dcef->efab", {{2, 3, 4, 2}, {2, 4, 3, 2}}},
      {"acbd,ecbd->aebc", {{2, 3, 4, 2}, {5, 3, 4, 2}}},
      {"i,j->ij", {{3}, {4}}},
      {"i,j->ji", {{3}, {4}}},
      {"i,i->i", {{3}, {3}}},
      {"i,i->", {{3}, {3}}},
      {"ij,ij->", {{3, 4}, {3, 4}}},
      {"ij,ij->j", {{3, 4}, {3, 4}}},
      {"i,->i", {{3}, {}}},
      {",->", {{}, {}}},
      {"->", {{}}},
      {"ij->ji", {{3, 4}}},
      {"ijk->kij", {{3, 4, 2}}},
      {"ij->", {{3, 4}}},
      {"ijk->j", {{3, 4, 2}}},
      {"ii->i", {{4, 4}}},
      {"ii->", {{4, 4}}},
      {"iij->ji", {{4, 4, 2}}},
      {"iji->j", {{4, 3, 4}}},
      {"iii->i", {{3, 3, 3}}},
      {"ii,i->i", {{3, 3}, {3}}},
      {"iij,ijj->ij", {{3, 3, 2}, {3, 2, 2}}},
      {"i->ii", {{3}}},
      {"ij->iji", {{3, 2}}},
      {"...ij,...jk->...ik", {{5, 1, 2, 3}, {4, 3, 2}}},
      {"...ij,jk->...ik", {{5, 2, 3}, {3, 2}}},
      {"ij...,jk...->ik...", {{2, 3, 5}, {3, 4, 5}}},
      {"i...j,...j->...i", {{2, 4, 3}, {4, 3}}},
      {"...,...->...", {{2, 1}, {3}}},
      {"...->...", {{2, 3}}},
      {"...i->...", {{2, 3, 4}}},
      {"...ii->...i", {{2, 3, 3}}},
      {"i...->...i", {{2, 3, 4}}},
      {"b...,b->b...", {{3, 2, 2}, {3}}},
      {"ij,jk->ik", {{1, 3}, {3, 1}}},
      {"ij,jk->ik", {{2, 1}, {1, 4}}},
      {"ij,j->i", {{2, 1}, {1}}},
      {"ab,ab,ab->ab", {{2, 3}, {2, 3}, {2, 3}}},
      {"ij,jk,kl->il", {{2, 3}, {3, 4}, {4, 2}}},
      {"ij,jk,kl->li", {{2, 3}, {3, 4}, {4, 2}}},
      {"i,ij,j->", {{2}, {2, 3}, {3}}},
      {"a,b,c,d->dbca", {{2}, {3}, {2}, {2}}},
      {"bsh,hnd->bsnd", {{2, 3, 4}, {4, 2, 5}}},
      {"btnh,bsnh->bnts", {{2, 3, 4, 2}, {2, 5, 4, 2}}},
      {"Ab,bC->AC", {{2, 3}, {3, 4}}},
      {"i j , j k -> i k", {{2, 3}, {3, 4}}},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.equation);
    std::string plain = c.equation;
    plain.erase(std::remove(plain.begin(), plain.end(), ' '), plain.end());
    for (const DataType dtype : {DT_DOUBLE, DT_INT32, DT_HALF}) {
      std::vector<Tensor> inputs;
      for (size_t i = 0; i < c.shapes.size(); ++i) {
        inputs.push_back(RandomTensor(dtype, c.shapes[i], dtype == DT_INT32 ? -5 : -1,
                                      dtype == DT_INT32 ? 5 : 1, static_cast<uint32_t>(i + 1)));
      }
      const Tensor expected = EinsumReference(plain, inputs);
      if (dtype == DT_DOUBLE) {
        EXPECT_THAT(Einsum(c.equation, inputs).RunOne(), TensorNear(expected, 1e-13, 1e-13));
      } else {
        EXPECT_THAT(Einsum(c.equation, inputs).RunOne(), TensorNear(expected, 2e-3, 2e-3));
      }
    }
  }
}

// Random equations with up to four labels. Each input and the output has a random subset of the
// labels.
TEST(Einsum, RunsForRandomEquations) {
  std::mt19937 random(6);
  for (int round = 0; round < 150; ++round) {
    const int num_inputs = 1 + random() % 3;
    const int64_t sizes[] = {2, 3, 1, 4};
    std::string equation;
    std::string all;
    std::vector<Tensor> inputs;
    for (int i = 0; i < num_inputs; ++i) {
      if (i > 0) equation += ',';
      TensorShape shape;
      for (int n = random() % 5; n > 0; --n) {
        const int label = random() % 4;
        equation += static_cast<char>('a' + label);
        all += static_cast<char>('a' + label);
        shape.AddDim(sizes[label]);
      }
      inputs.push_back(RandomTensor(DT_DOUBLE, shape, -1, 1, round * 3 + i + 1));
    }
    equation += "->";
    for (int n = random() % 4; n > 0 && !all.empty(); --n) equation += all[random() % all.size()];
    SCOPED_TRACE(equation);
    EXPECT_THAT(Einsum(equation, inputs).RunOne(),
                TensorNear(EinsumReference(equation, inputs), 1e-13, 1e-13));
  }
}

TEST(Einsum, DoesNotConjugateComplexNumbers) {
  const Tensor x = AsTensor<complex64>({{1, 2}, {0, 1}});
  EXPECT_THAT(Einsum("i,i->", {x, x}).RunOne(), TensorEq(AsScalar<complex64>({-4, 4})));
}

TEST(Einsum, TakesEmptyTensors) {
  EXPECT_THAT(Einsum("ij,jk->ik", {Tensor(DT_FLOAT, {2, 0}), Tensor(DT_FLOAT, {0, 2})}).RunOne(),
              TensorEq(AsTensor<float>({0, 0, 0, 0}, {2, 2})));
  EXPECT_THAT(Einsum("ij,jk->ik", {Tensor(DT_FLOAT, {0, 3}), Tensor(DT_FLOAT, {3, 2})}).RunOne(),
              TensorEq(Tensor(DT_FLOAT, {0, 2})));
  EXPECT_THAT(Einsum("ij->", {Tensor(DT_BFLOAT16, {0, 3})}).RunOne(),
              TensorEq(AsScalar<bfloat16>(0)));
}

TEST(Einsum, HasTheSameBitsOnAnyNumberOfThreads) {
  OpTester tester = Einsum("abc,cda->bd", {RandomTensor(DT_FLOAT, {30, 40, 50}, -1, 1, 1),
                                           RandomTensor(DT_FLOAT, {50, 60, 30}, -1, 1, 2)});
  GRADFLOW_EXPECT_OK(tester.RunEverywhere());
}

TEST(Einsum, RejectsInvalidInputs) {
  const Tensor x(DT_FLOAT, {2, 3});
  const Tensor y(DT_FLOAT, {3, 4});
  ExpectErrors({
      {"shape", Einsum("ij,jk->ik", {x, x}),
       "inputs[1] has shape [2,3], but dimension 0 must be 3, like label 'j' elsewhere"},
      {"repeated", Einsum("ii->i", {x}),
       "inputs[0] has shape [2,3], but dimension 1 must be 2, like label 'i' elsewhere"},
      {"rank", Einsum("i->i", {x}), "inputs[0] has shape [2,3], expected rank 1, by its subscript"},
      {"rank of an ellipsis", Einsum("i...jk->i...jk", {x}), "expected rank 3 at least"},
      {"ellipsis", Einsum("...i->i", {x}),
       "the ellipses of the inputs have 1 dimensions, but the output has no ellipsis"},
      {"broadcast", Einsum("...,...->...", {x, y}), "must be 2 or 1, like the ellipses"},
  });
  const auto equation_error = [&](const char* equation, const char* error) {
    EXPECT_THAT(Einsum(equation, {x}).MakeKernel(), StatusIs(kInvalidArgument, HasSubstr(error)));
    EXPECT_THAT(Einsum(equation, {x}).InferShape(), StatusIs(kInvalidArgument, HasSubstr(error)));
  };
  equation_error("ij", "equation 'ij' must have one '->'");
  equation_error("", "must have one '->'");
  equation_error("ij->i->j", "must have one '->'");
  equation_error("1j->j", "subscript '1j' must consist of letters and '...'");
  equation_error("i\x1b[j->j", "subscript 'i\\x1b[j' must consist of letters and '...'");
  equation_error("ij..->i", "subscript 'ij..' must consist of letters and '...'");
  equation_error("...i...->i", "has more than one ellipsis");
  equation_error("ij->k", "label 'k' of the output is in no input of equation 'ij->k'");
  equation_error("ij,jk->ik", "has 2 inputs, but there are 1");
  EXPECT_THAT(Einsum("ij->ij", {AsTensor<tstring>({"a"}, {1, 1})}).MakeKernel(),
              StatusIs(absl::StatusCode::kUnimplemented, HasSubstr("Einsum")));
}

}  // namespace
}  // namespace testing
}  // namespace gradflow
