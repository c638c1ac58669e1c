// Compares random programs of calls, branches and loops with a plain interpreter, on several
// numbers of threads. The environment variable GRADFLOW_RANDOM_FUNCTIONS sets the number of
// programs.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/runtime/graph_maker.h"
#include "tests/runtime/random_programs.h"

namespace gradflow {
namespace {

using ::gradflow::testing::AttrOf;
using ::gradflow::testing::BinaryOp;
using ::gradflow::testing::Compute;
using ::gradflow::testing::GraphMaker;
using ::gradflow::testing::Numbers;

enum class Kind { kConst, kBinary, kCall, kNamedCall, kIf, kCase, kWhile, kFor };

// A statement of a function. It appends its results to the values of the function.
struct Statement {
  Kind kind;
  // A constant, or the number of iterations of a loop.
  int64_t number = 0;
  // Indexes of the values that the statement reads. The first value of kIf and kCase selects the
  // branch.
  std::vector<int> inputs;
  // Indexes of the functions that the statement calls.
  std::vector<int> functions;
  BinaryOp binary = BinaryOp::kAdd;
};

// The values of a function are its arguments, followed by the results of its statements. A loop can
// only call a function that returns as many values as it takes. kFor adds the index of the
// iteration to the first value.
struct Function {
  int num_args = 0;
  std::vector<Statement> statements;
  std::vector<int> results;
};

class Program {
 public:
  explicit Program(uint32_t seed) : random_(seed) {
    const int count = 1 + Random(6);
    for (int i = 0; i < count; ++i) AddFunction();
  }

  // Functions only call functions with smaller indexes. The last function is the program.
  int num_args() const { return functions_.back().num_args; }
  // The names of the results.
  std::vector<std::string> fetches() const {
    std::vector<std::string> names;
    for (size_t i = 0; i < functions_.back().results.size(); ++i) {
      names.push_back(absl::StrCat("call:", i));
    }
    return names;
  }

  Numbers Interpret(const Numbers& args) const {
    return Interpret(static_cast<int>(functions_.size()) - 1, args);
  }

  void Make(GraphMaker* maker) const {
    for (size_t i = 0; i < functions_.size(); ++i) {
      const Function& function = functions_[i];
      GraphMaker::Body& body =
          maker->Function(absl::StrCat("f", i), DataTypeVector(function.num_args, DT_INT64),
                          DataTypeVector(function.results.size(), DT_INT64));
      std::vector<std::string> names;
      for (int a = 0; a < function.num_args; ++a) names.push_back(absl::StrCat("a", a));
      MakeBody(function, &body, maker, static_cast<int>(i), &names);
      body.Return(Pick(names, function.results));
    }
    std::vector<std::string> inputs;
    for (int a = 0; a < num_args(); ++a) {
      inputs.push_back(absl::StrCat("x", a));
      maker->main().AddPlaceholder(inputs.back());
    }
    maker->main().AddCall("call", absl::StrCat("f", functions_.size() - 1), inputs);
  }

 private:
  int Random(int bound) { return static_cast<int>(random_() % bound); }

  void AddFunction() {
    Function function;
    function.num_args = 1 + Random(4);
    int num_values = function.num_args;
    const int num_statements = 1 + Random(7);
    for (int i = 0; i < num_statements; ++i) {
      Statement statement = MakeStatement(num_values);
      num_values += NumResults(statement);
      function.statements.push_back(std::move(statement));
    }
    // Usually equals the number of arguments, so that loops can call the function.
    const int num_results = Random(3) == 0 ? 1 + Random(4) : function.num_args;
    for (int i = 0; i < num_results; ++i) function.results.push_back(Random(num_values));
    functions_.push_back(std::move(function));
  }

  Statement MakeStatement(int num_values) {
    const auto inputs = [&](int count) {
      std::vector<int> indexes;
      for (int i = 0; i < count; ++i) indexes.push_back(Random(num_values));
      return indexes;
    };
    const int kind = functions_.empty() ? Random(5) : Random(14);
    if (kind == 0) return {Kind::kConst, static_cast<int64_t>(random_()) - (1 << 20), {}, {}};
    if (kind < 5) {
      return {Kind::kBinary, 0, inputs(2), {}, static_cast<BinaryOp>(kind - 1)};
    }
    const int f = Random(static_cast<int>(functions_.size()));
    const int args = functions_[f].num_args;
    const auto results = static_cast<int>(functions_[f].results.size());
    if (kind < 7) {
      return {kind == 5 ? Kind::kCall : Kind::kNamedCall, 0, inputs(args), {f}};
    }
    if (kind < 10) {
      // All branches have the same signature.
      std::vector<int> like;
      for (size_t g = 0; g < functions_.size(); ++g) {
        if (functions_[g].num_args == args &&
            static_cast<int>(functions_[g].results.size()) == results) {
          like.push_back(static_cast<int>(g));
        }
      }
      std::vector<int> branches;
      const int count = kind == 9 ? 1 + Random(3) : 2;
      for (int i = 0; i < count; ++i) {
        branches.push_back(like[Random(static_cast<int>(like.size()))]);
      }
      return {kind == 9 ? Kind::kCase : Kind::kIf, 0, inputs(1 + args), branches};
    }
    if (results != args) return {Kind::kCall, 0, inputs(args), {f}};
    return {kind < 12 ? Kind::kWhile : Kind::kFor, Random(4), inputs(args), {f}};
  }

  int NumResults(const Statement& statement) const {
    if (statement.functions.empty()) return 1;
    return static_cast<int>(functions_[statement.functions[0]].results.size());
  }

  template <typename T>
  static std::vector<T> Pick(const std::vector<T>& all, const std::vector<int>& indexes) {
    std::vector<T> picked;
    for (const int i : indexes) picked.push_back(all[i]);
    return picked;
  }

  Numbers Interpret(int index, const Numbers& args) const {
    const Function& function = functions_[index];
    Numbers values = args;
    for (const Statement& statement : function.statements) {
      Numbers in = Pick(values, statement.inputs);
      Numbers out;
      switch (statement.kind) {
        case Kind::kConst:
          out = {statement.number};
          break;
        case Kind::kBinary:
          out = {Compute(statement.binary, in[0], in[1])};
          break;
        case Kind::kCall:
        case Kind::kNamedCall:
          out = Interpret(statement.functions[0], in);
          break;
        case Kind::kIf: {
          const bool taken = in[0] > 0;
          in.erase(in.begin());
          out = Interpret(statement.functions[taken ? 0 : 1], in);
          break;
        }
        case Kind::kCase: {
          const auto branches = static_cast<int64_t>(statement.functions.size());
          const int64_t at = std::min(std::max<int64_t>(in[0], -1), branches);
          in.erase(in.begin());
          out = Interpret(statement.functions[at < 0 || at >= branches ? branches - 1 : at], in);
          break;
        }
        case Kind::kWhile:
          // The graph counts in an additional variable (MakeBody), which the body does not see.
          for (int64_t i = 0; i < statement.number; ++i) {
            in = Interpret(statement.functions[0], in);
          }
          out = in;
          break;
        case Kind::kFor:
          for (int64_t i = 0; i < statement.number; ++i) {
            in[0] = Compute(BinaryOp::kAdd, in[0], i);
            in = Interpret(statement.functions[0], in);
          }
          out = in;
          break;
      }
      values.insert(values.end(), out.begin(), out.end());
    }
    return Pick(values, function.results);
  }

  void MakeBody(const Function& function, GraphMaker::Body* body, GraphMaker* maker, int index,
                std::vector<std::string>* names) const {
    for (size_t s = 0; s < function.statements.size(); ++s) {
      const Statement& statement = function.statements[s];
      const std::string name = absl::StrCat("s", s);
      std::vector<std::string> in = Pick(*names, statement.inputs);
      const auto callee = [&](size_t i) { return absl::StrCat("f", statement.functions[i]); };
      // The index of the first output that is a result. Output 0 of a While is its counter.
      int first = 0;
      switch (statement.kind) {
        case Kind::kConst:
          body->AddConst(name, statement.number);
          break;
        case Kind::kBinary:
          body->Add(name, testing::NameOf(statement.binary), in);
          break;
        case Kind::kCall:
          body->AddCall(name, callee(0), in);
          break;
        case Kind::kNamedCall:
          body->Add(name, callee(0), in);
          break;
        case Kind::kIf: {
          body->AddConst(name + "_zero", 0);
          body->Add(name + "_taken", "Greater", {in[0], name + "_zero"});
          in.erase(in.begin());
          body->AddIf(name, callee(0), callee(1), name + "_taken", in);
          break;
        }
        case Kind::kCase: {
          body->AddConst(name + "_low", -1);
          body->AddConst(name + "_high", static_cast<int64_t>(statement.functions.size()));
          body->Add(name + "_at_least", "Maximum", {in[0], name + "_low"});
          body->Add(name + "_clamped", "Minimum", {name + "_at_least", name + "_high"});
          body->Add(name + "_index", "Cast", {name + "_clamped"},
                    {{"SrcT", AttrOf(DT_INT64)}, {"DstT", AttrOf(DT_INT32)}});
          in.erase(in.begin());
          std::vector<std::string> branches;
          for (size_t i = 0; i < statement.functions.size(); ++i) branches.push_back(callee(i));
          body->AddCase(name, branches, name + "_index", in);
          break;
        }
        case Kind::kWhile: {
          const std::string prefix = absl::StrCat("f", index, "_", name);
          const auto variables = static_cast<int>(in.size());
          GraphMaker::Body& condition =
              maker->Function(prefix + "_cond", DataTypeVector(variables + 1, DT_INT64), {DT_BOOL});
          condition.AddConst("limit", statement.number);
          condition.Add("less", "Less", {"a0", "limit"});
          condition.Return({"less"});
          GraphMaker::Body& step =
              maker->Function(prefix + "_body", DataTypeVector(variables + 1, DT_INT64),
                              DataTypeVector(variables + 1, DT_INT64));
          step.AddConst("one", 1);
          step.Add("next", "AddV2", {"a0", "one"});
          std::vector<std::string> args, results = {"next"};
          for (int i = 0; i < variables; ++i) {
            args.push_back(absl::StrCat("a", i + 1));
            results.push_back(absl::StrCat("call:", i));
          }
          step.AddCall("call", callee(0), args);
          step.Return(results);
          body->AddConst(name + "_start", 0);
          in.insert(in.begin(), name + "_start");
          body->AddWhile(name, prefix + "_cond", prefix + "_body", in);
          first = 1;
          break;
        }
        case Kind::kFor: {
          const std::string prefix = absl::StrCat("f", index, "_", name);
          const auto variables = static_cast<int>(in.size());
          DataTypeVector types(variables + 1, DT_INT64);
          types[0] = DT_INT32;
          GraphMaker::Body& step =
              maker->Function(prefix + "_body", types, DataTypeVector(variables, DT_INT64));
          step.Add("i", "Cast", {"a0"}, {{"SrcT", AttrOf(DT_INT32)}, {"DstT", AttrOf(DT_INT64)}});
          step.Add("sum", "AddV2", {"a1", "i"});
          std::vector<std::string> args = {"sum"}, results;
          for (int i = 0; i < variables; ++i) {
            if (i > 0) args.push_back(absl::StrCat("a", i + 1));
            results.push_back(absl::StrCat("call:", i));
          }
          step.AddCall("call", callee(0), args, "PartitionedCall");
          step.Return(results);
          std::vector<std::string> range;
          for (const int64_t number : {int64_t{0}, statement.number, int64_t{1}}) {
            range.push_back(absl::StrCat(name, "_range", range.size()));
            body->AddConst(range.back() + "_wide", number);
            body->Add(range.back(), "Cast", {range.back() + "_wide"},
                      {{"SrcT", AttrOf(DT_INT64)}, {"DstT", AttrOf(DT_INT32)}});
          }
          body->AddFor(name, prefix + "_body", range, in);
          break;
        }
      }
      const int count = NumResults(statement);
      for (int i = 0; i < count; ++i) names->push_back(absl::StrCat(name, ":", first + i));
    }
  }

  std::minstd_rand random_;
  std::vector<Function> functions_;
};

// The parameter is the number of threads.
class RandomFunctionsTest : public ::testing::TestWithParam<int> {};

TEST_P(RandomFunctionsTest, AgreeWithAnInterpreter) {
  const int num_programs = testing::NumPrograms("GRADFLOW_RANDOM_FUNCTIONS", 500);
  std::minstd_rand random(GetParam());
  for (int i = 0; i < num_programs && !HasFailure(); ++i) {
    const auto seed = static_cast<uint32_t>(1 + i * 8 + GetParam());
    SCOPED_TRACE(seed);
    const Program program(seed);
    GraphMaker maker;
    program.Make(&maker);
    testing::ExpectAgrees(
        maker.graph(), GetParam(), program.num_args(), program.fetches(),
        [&](const Numbers& args) { return program.Interpret(args); }, &random);
  }
}

INSTANTIATE_TEST_SUITE_P(Threads, RandomFunctionsTest, ::testing::Values(1, 2, 3, 8));

}  // namespace
}  // namespace gradflow
