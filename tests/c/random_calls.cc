#include "tests/c/random_calls.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <iterator>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tensorflow/c/c_api_experimental.h"
#include "tensorflow/c/eager/c_api.h"
#include "tensorflow/c/eager/c_api_experimental.h"
#include "tensorflow/c/eager/dlpack.h"
#include "tests/c/c_api_test_util.h"

namespace gradflow::capi_test {
namespace {

// The maximum number of objects of a kind.
constexpr size_t kMaxObjects = 12;
// The length of all arrays that functions write.
constexpr int kArray = 8;

constexpr const char* kOps[] = {"Placeholder",
                                "Const",
                                "AddV2",
                                "Mul",
                                "MatMul",
                                "Neg",
                                "Identity",
                                "IdentityN",
                                "AddN",
                                "Less",
                                "VarHandleOp",
                                "Cast",
                                "StringJoin",
                                "Shape",
                                "NoOp",
                                "ConcatV2",
                                "f0",
                                "StopGradient",
                                "NoSuchOp",
                                "While",
                                "ReadVariableOp",
                                "AssignVariableOp",
                                "PartitionedCall",
                                ""};
constexpr const char* kAttrs[] = {
    "T",      "dtype",       "shape",     "value",          "N", "Tout", "f",
    "_class", "transpose_a", "container", "_output_shapes", "",  nullptr};
constexpr const char* kNames[] = {"a", "b", "c", "d", "a/b", "f0", "bad name", "", nullptr};
constexpr TF_DataType kTypes[] = {TF_FLOAT,
                                  TF_INT32,
                                  TF_STRING,
                                  TF_BOOL,
                                  TF_INT64,
                                  TF_RESOURCE,
                                  TF_HALF,
                                  static_cast<TF_DataType>(0),
                                  static_cast<TF_DataType>(63),
                                  static_cast<TF_DataType>(101)};
constexpr int64_t kDims[] = {0, 1, 2, 3, 8, -1, -7, int64_t{1} << 62, INT64_MAX, INT64_MIN};

// Takes choices from bytes. All choices are 0 when the bytes are used up.
class Choices {
 public:
  explicit Choices(absl::string_view bytes) : bytes_(bytes) {}
  bool empty() const { return bytes_.empty(); }
  size_t Below(size_t n) {
    if (bytes_.empty()) return 0;
    const auto byte = static_cast<unsigned char>(bytes_[0]);
    bytes_.remove_prefix(1);
    return byte % n;
  }
  bool OneIn(size_t n) { return Below(n) == n - 1; }
  template <typename T, size_t n>
  const T& Of(const T (&values)[n]) {
    return values[Below(n)];
  }
  // Returns a size for an array of kArray elements. It may be negative.
  int Size() { return static_cast<int>(Below(kArray + 2)) - 1; }
  // Splits off a part of the remaining bytes.
  absl::string_view Split(size_t n) {
    const absl::string_view part = bytes_.substr(0, bytes_.size() / n);
    bytes_.remove_prefix(part.size());
    return part;
  }

 private:
  absl::string_view bytes_;
};

// Objects of a kind, which are deleted with the list.
template <typename T>
class Objects {
 public:
  explicit Objects(void (*destroy)(T*)) : destroy_(destroy) {}
  ~Objects() {
    while (!objects_.empty()) Delete(objects_.size() - 1);
  }
  // Takes an object, or nothing if it is null.
  void Add(T* object) {
    if (object != nullptr) objects_.push_back(object);
  }
  // Deletes the oldest objects.
  void Trim() {
    while (objects_.size() > kMaxObjects) Delete(0);
  }
  // Returns null if there is none.
  T* Any(Choices* choices) {
    return objects_.empty() ? nullptr : objects_[choices->Below(objects_.size())];
  }
  void DeleteAny(Choices* choices) {
    if (!objects_.empty()) Delete(choices->Below(objects_.size()));
  }
  void Delete(size_t i) {
    T* const object = objects_[i];
    objects_.erase(objects_.begin() + static_cast<ptrdiff_t>(i));
    destroy_(object);
  }
  bool empty() const { return objects_.empty(); }

 private:
  void (*const destroy_)(T*);
  std::vector<T*> objects_;
};

// The memory of tensors over memory of the program.
std::atomic<int> memory_made{0};
std::atomic<int> memory_released{0};
// Enough for all shapes that are not refused.
alignas(64) char tensor_memory[1 << 16];

class RandomCalls {
 public:
  explicit RandomCalls(absl::string_view bytes) : choices_(bytes) {
    TFE_ContextOptions* const options = TFE_NewContextOptions();
    context_ = TFE_NewContext(options, status_);
    TFE_DeleteContextOptions(options);
    AddGraph();
    graphs_[0].session = TF_NewSession(graphs_[0].graph, nullptr, status_);
  }
  ~RandomCalls() {
    while (!graphs_.empty()) DeleteGraph(0);
    TFE_DeleteContext(context_);
  }
  RandomCalls(const RandomCalls&) = delete;
  RandomCalls& operator=(const RandomCalls&) = delete;

  void Run() {
    static constexpr void (RandomCalls::*kCalls[])() = {
        &RandomCalls::AddGraph,
        &RandomCalls::DeleteAnyGraph,
        &RandomCalls::AddGoodOper,
        &RandomCalls::AddGoodOper,
        &RandomCalls::StartOper,
        &RandomCalls::ChangeDescription,
        &RandomCalls::ChangeDescription,
        &RandomCalls::SetAttr,
        &RandomCalls::SetAttr,
        &RandomCalls::FinishOper,
        &RandomCalls::ReadOper,
        &RandomCalls::ReadAttr,
        &RandomCalls::ReadAttr,
        &RandomCalls::UseShape,
        &RandomCalls::ChangeOper,
        &RandomCalls::Export,
        &RandomCalls::Import,
        &RandomCalls::MakeFunction,
        &RandomCalls::UseFunction,
        &RandomCalls::RunSession,
        &RandomCalls::RunSession,
        &RandomCalls::RunPartially,
        &RandomCalls::ChangeSession,
        &RandomCalls::AddGradients,
        &RandomCalls::AddLoop,
        &RandomCalls::MakeTensor,
        &RandomCalls::ChangeTensor,
        &RandomCalls::StartOp,
        &RandomCalls::ChangeOp,
        &RandomCalls::ChangeOp,
        &RandomCalls::Execute,
        &RandomCalls::Execute,
        &RandomCalls::UseHandle,
        &RandomCalls::ChangeContext,
        &RandomCalls::RunThreads,
    };
    while (!choices_.empty()) {
      (this->*choices_.Of(kCalls))();
      tensors_.Trim();
      functions_.Trim();
      handles_.Trim();
      ops_.Trim();
      if (TF_GetCode(status_) != TF_OK) {
        EXPECT_STRNE(TF_Message(status_), "");
      }
    }
  }

 private:
  // A graph with the objects that must not outlive it.
  struct GraphState {
    TF_Graph* graph;
    TF_Session* session = nullptr;
    std::vector<TF_Operation*> opers;
    std::vector<TF_OperationDescription*> descs;
    const char* partial_run = nullptr;
  };

  bool Failed() const { return TF_GetCode(status_) != TF_OK; }

  // ---- Arguments ----

  GraphState& AnyGraph() { return graphs_[choices_.Below(graphs_.size())]; }
  // Returns an operation of any graph, or null.
  TF_Operation* AnyOper() {
    const GraphState& state = AnyGraph();
    if (state.opers.empty() || choices_.OneIn(16)) return nullptr;
    return state.opers[choices_.Below(state.opers.size())];
  }
  // Returns an operation, or null for an empty graph.
  TF_Operation* OperOf(const GraphState& state) {
    return state.opers.empty() ? nullptr : state.opers[choices_.Below(state.opers.size())];
  }
  int AnyIndex() {
    static constexpr int kIndexes[] = {0, 0, 0, 0, 1, -1, 100};
    return choices_.Of(kIndexes);
  }
  TF_Output AnyOutput() { return {AnyOper(), AnyIndex()}; }
  // Returns output 0 of an operation of the graph. Some operations have no outputs.
  TF_Output OutputOf(const GraphState& state) {
    if (choices_.OneIn(8)) return AnyOutput();
    return {OperOf(state), 0};
  }
  std::vector<TF_Output> OutputsOf(const GraphState& state) {
    std::vector<TF_Output> outputs;
    for (int i = 0; i < kArray; ++i) outputs.push_back(OutputOf(state));
    return outputs;
  }
  // Returns null in some calls with a size that is not positive, or else the array.
  template <typename T>
  T* OrNull(T* array) {
    return choices_.OneIn(8) ? nullptr : array;
  }
  TF_Tensor* AnyTensor() {
    if (tensors_.empty() || choices_.OneIn(4)) tensors_.Add(Floats({2}, {1, 2}).release());
    return tensors_.Any(&choices_);
  }
  const int64_t* AnyDims() {
    for (int64_t& dim : dims_) dim = kDims[choices_.OneIn(4) ? choices_.Below(10) : 2];
    return dims_;
  }

  // ---- Graphs ----

  void AddGraph() {
    if (graphs_.size() < 3) graphs_.push_back({TF_NewGraph(), nullptr, {}, {}, nullptr});
  }
  void DeleteAnyGraph() {
    if (graphs_.size() > 1 && choices_.OneIn(4)) DeleteGraph(choices_.Below(graphs_.size()));
  }
  void DeleteGraph(size_t i) {
    const GraphState state = graphs_[i];
    graphs_.erase(graphs_.begin() + static_cast<ptrdiff_t>(i));
    for (TF_OperationDescription* desc : state.descs) TF_FinishOperation(desc, status_);
    const bool session_is_last = choices_.OneIn(2);
    if (session_is_last) TF_DeleteGraph(state.graph);
    TF_DeleteSession(state.session, status_);
    TF_DeletePRunHandle(state.partial_run);
    if (!session_is_last) TF_DeleteGraph(state.graph);
  }

  void Keep(GraphState* state, TF_Operation* oper) {
    EXPECT_EQ(oper == nullptr, Failed());
    if (oper != nullptr) state->opers.push_back(oper);
  }
  // Adds an operation that is probably valid.
  void AddGoodOper() {
    GraphState& state = AnyGraph();
    const std::string name = "n" + std::to_string(next_name_++);
    const size_t kind = choices_.Below(6);
    static constexpr const char* kGood[] = {"Placeholder", "Const", "Neg", "AddV2", "Mul", "Less"};
    TF_OperationDescription* const desc = TF_NewOperation(state.graph, kGood[kind], name.c_str());
    if (kind == 0) {
      TF_SetAttrType(desc, "dtype", TF_FLOAT);
    } else if (kind == 1) {
      TF_SetAttrTensor(desc, "value", AnyTensor(), status_);
      TF_SetAttrType(desc, "dtype", TF_FLOAT);
    }
    for (size_t i = 0; i < (kind < 2 ? 0 : kind == 2 ? 1 : 2); ++i) {
      TF_AddInput(desc, OutputOf(state));
    }
    Keep(&state, TF_FinishOperation(desc, status_));
  }
  void StartOper() {
    GraphState& state = AnyGraph();
    if (state.descs.size() == kMaxObjects) return;
    state.descs.push_back(TF_NewOperation(state.graph, choices_.Of(kOps), choices_.Of(kNames)));
  }
  TF_OperationDescription* AnyDescription() {
    GraphState& state = AnyGraph();
    return state.descs.empty() ? nullptr : state.descs[choices_.Below(state.descs.size())];
  }
  void ChangeDescription() {
    GraphState& state = AnyGraph();
    if (state.descs.empty()) return;
    TF_OperationDescription* const desc = state.descs.back();
    switch (choices_.Below(5)) {
      case 0:
        return TF_AddInput(desc, OutputOf(state));
      case 1: {
        const std::vector<TF_Output> outputs = OutputsOf(state);
        return TF_AddInputList(desc, OrNull(outputs.data()), choices_.Size());
      }
      case 2:
        return TF_AddControlInput(desc, AnyOper());
      case 3:
        return TF_ColocateWith(desc, AnyOper());
      default:
        return TF_SetDevice(desc, choices_.OneIn(2) ? "/cpu:0" : nullptr);
    }
  }
  void SetAttr() {
    TF_OperationDescription* const desc = AnyDescription();
    if (desc == nullptr) return;
    const char* const name = choices_.Of(kAttrs);
    const int64_t ints[kArray] = {0, 1, 2, 3, -1, INT64_MAX, INT64_MIN, 7};
    const float floats[kArray] = {};
    const unsigned char bools[kArray] = {0, 1, 255};
    const TF_DataType types[kArray] = {TF_FLOAT, TF_INT32, choices_.Of(kTypes)};
    const void* const strings[kArray] = {"loc:@a", "b", nullptr, "d", "e", "f", "g", "h"};
    const size_t lengths[kArray] = {6, 1, choices_.Below(2), 1};
    const int64_t* const shapes[kArray] = {AnyDims(), ints, nullptr, ints, ints, ints, ints, ints};
    const int ranks[kArray] = {choices_.Size(), 1, choices_.OneIn(2) ? 0 : 1, -1};
    TF_Tensor* const tensors[kArray] = {AnyTensor(), AnyTensor(), nullptr};
    const int size = choices_.Size();
    switch (choices_.Below(18)) {
      case 0:
        return TF_SetAttrString(desc, name, OrNull("text"), choices_.Below(5));
      case 1:
        return TF_SetAttrStringList(desc, name, OrNull(strings), lengths, size);
      case 2:
        return TF_SetAttrInt(desc, name, choices_.Of(ints));
      case 3:
        return TF_SetAttrIntList(desc, name, OrNull(ints), size);
      case 4:
        return TF_SetAttrFloat(desc, name, 0.5f);
      case 5:
        return TF_SetAttrFloatList(desc, name, OrNull(floats), size);
      case 6:
        return TF_SetAttrBool(desc, name, 1);
      case 7:
        return TF_SetAttrBoolList(desc, name, OrNull(bools), size);
      case 8:
      case 9:
        return TF_SetAttrType(desc, name, choices_.Of(kTypes));
      case 10:
        return TF_SetAttrTypeList(desc, name, OrNull(types), size);
      case 11:
        return TF_SetAttrPlaceholder(desc, name, choices_.Of(kNames));
      case 12:
        return TF_SetAttrFuncName(desc, name, OrNull("f0"), choices_.Below(3));
      case 13:
        return TF_SetAttrShape(desc, name, OrNull(AnyDims()), size);
      case 14:
        return TF_SetAttrShapeList(desc, name, OrNull(shapes), ranks, size);
      case 15:
        return TF_SetAttrTensor(desc, name, tensors[choices_.Below(3)], status_);
      case 16:
        return TF_SetAttrTensorList(desc, name, OrNull(tensors), size, status_);
      default: {
        const std::string bytes = AnyBytes();
        if (choices_.OneIn(2)) {
          return TF_SetAttrTensorShapeProto(desc, name, bytes.data(), bytes.size(), status_);
        }
        return TF_SetAttrValueProto(desc, name, bytes.data(), bytes.size(), status_);
      }
    }
  }
  // Returns a few bytes, which may be a message.
  std::string AnyBytes() {
    std::string bytes;
    for (size_t size = choices_.Below(8); size > 0; --size) {
      bytes.push_back(static_cast<char>(choices_.Below(256)));
    }
    return bytes;
  }
  void FinishOper() {
    GraphState& state = AnyGraph();
    if (state.descs.empty()) return;
    TF_OperationDescription* const desc = state.descs.back();
    state.descs.pop_back();
    Keep(&state, TF_FinishOperation(desc, status_));
  }

  void ReadOper() {
    TF_Operation* const oper = OperOf(AnyGraph());
    if (oper == nullptr) return;
    TF_Input inputs[kArray];
    TF_Output outputs[kArray];
    TF_Operation* opers[kArray];
    const int size = choices_.Size();
    const int index = AnyIndex();
    EXPECT_NE(TF_OperationName(oper), nullptr);
    EXPECT_NE(TF_OperationOpType(oper), nullptr);
    EXPECT_NE(TF_OperationDevice(oper), nullptr);
    TF_OperationOutputType({oper, index});
    TF_OperationInputType({oper, index});
    TF_OperationInput({oper, index});
    TF_OperationAllInputs(oper, outputs, size);
    TF_OperationOutputListLength(oper, choices_.Of(kAttrs), status_);
    TF_OperationInputListLength(oper, choices_.Of(kAttrs), status_);
    TF_OperationOutputNumConsumers({oper, index});
    TF_OperationOutputConsumers({oper, index}, inputs, size);
    TF_OperationGetControlInputs(oper, opers, size);
    TF_OperationGetControlOutputs(oper, opers, size);
    TF_OperationToNodeDef(oper, buffer_.get(), status_);
  }
  void ReadAttr() {
    TF_Operation* const oper = OperOf(AnyGraph());
    if (oper == nullptr) return;
    const char* const name = choices_.Of(kAttrs);
    const int size = choices_.Size();
    TF_OperationGetAttrMetadata(oper, name, status_);
    char text[kArray];
    void* strings[kArray];
    size_t lengths[kArray];
    int64_t ints[kArray];
    float floats[kArray];
    unsigned char bools[kArray];
    TF_DataType types[kArray];
    int64_t* shapes[kArray];
    int ranks[kArray];
    TF_Tensor* tensors[kArray] = {};
    const auto bytes = static_cast<size_t>(std::max(size, 0));
    TF_OperationGetAttrString(oper, name, text, bytes, status_);
    TF_OperationGetAttrStringList(oper, name, strings, lengths, size, text, bytes, status_);
    TF_OperationGetAttrInt(oper, name, ints, status_);
    TF_OperationGetAttrIntList(oper, name, ints, size, status_);
    TF_OperationGetAttrFloat(oper, name, floats, status_);
    TF_OperationGetAttrFloatList(oper, name, floats, size, status_);
    TF_OperationGetAttrBool(oper, name, bools, status_);
    TF_OperationGetAttrBoolList(oper, name, bools, size, status_);
    TF_OperationGetAttrType(oper, name, types, status_);
    TF_OperationGetAttrTypeList(oper, name, types, size, status_);
    TF_OperationGetAttrShape(oper, name, ints, size, status_);
    TF_OperationGetAttrShapeList(oper, name, shapes, ranks, size, ints, size, status_);
    TF_OperationGetAttrTensor(oper, name, tensors, status_);
    tensors_.Add(std::exchange(tensors[0], nullptr));
    TF_OperationGetAttrTensorList(oper, name, tensors, size, status_);
    for (TF_Tensor* tensor : tensors) TF_DeleteTensor(tensor);
    TF_OperationGetAttrValueProto(oper, name, buffer_.get(), status_);
    char attr[64];
    const int index = AnyIndex();
    if (TF_OperationGetAttrNameLength(oper, index) < 64) {
      TF_OperationGetAttrName(oper, index, attr, status_);
    }
  }
  void UseShape() {
    const GraphState& state = AnyGraph();
    const TF_Output output = OutputOf(state);
    int64_t dims[kArray];
    TF_GraphSetTensorShape(state.graph, output, OrNull(AnyDims()), choices_.Size(), status_);
    TF_GraphGetTensorNumDims(state.graph, output, status_);
    TF_GraphGetTensorShape(state.graph, output, dims, choices_.Size(), status_);
    TF_Tensor* value = nullptr;
    TF_TryEvaluateConstant(state.graph, output, &value, status_);
    tensors_.Add(value);
  }
  void ChangeOper() {
    const GraphState& state = AnyGraph();
    TF_Operation* const oper = AnyOper();
    switch (choices_.Below(7)) {
      case 0:
        return TF_UpdateEdge(state.graph, OutputOf(state), {oper, AnyIndex()}, status_);
      case 1:
        return TF_AddOperationControlInput(state.graph, oper, AnyOper());
      case 2:
        return TF_RemoveAllControlInputs(state.graph, oper);
      case 3:
        return TF_SetRequestedDevice(state.graph, oper, OrNull("/cpu:0"));
      case 4: {
        if (choices_.OneIn(2)) {
          return TF_SetAttr(state.graph, oper, choices_.Of(kAttrs), buffer_.get(), status_);
        }
        // An AttrValue with a type.
        const char bytes[] = {0x30, static_cast<char>(choices_.Below(24))};
        const BufferPtr type(TF_NewBufferFromString(bytes, sizeof(bytes)), &TF_DeleteBuffer);
        return TF_SetAttr(state.graph, oper, choices_.Of(kAttrs), type.get(), status_);
      }
      case 5:
        return TF_ClearAttr(state.graph, oper, choices_.Of(kAttrs), status_);
      default:
        return TF_DeleteBuffer(TF_GetHandleShapeAndType(state.graph, AnyOutput()));
    }
  }

  // ---- Messages ----

  void Export() {
    const GraphState& state = AnyGraph();
    switch (choices_.Below(3)) {
      case 0:
        return TF_GraphToGraphDef(state.graph, buffer_.get(), status_);
      case 1:
        return TF_GraphGetOpDef(state.graph, choices_.Of(kOps), buffer_.get(), status_);
      default:
        return TF_GraphVersions(state.graph, buffer_.get(), status_);
    }
  }
  void Import() {
    GraphState& state = AnyGraph();
    if (state.opers.size() > 200) return;
    TF_GraphToGraphDef(AnyGraph().graph, buffer_.get(), status_);
    TF_ImportGraphDefOptions* const options = TF_NewImportGraphDefOptions();
    int outputs = 0;
    for (size_t i = choices_.Below(6); i > 0; --i) {
      const std::string name = "n" + std::to_string(choices_.Below(next_name_ + 1));
      switch (choices_.Below(7)) {
        case 0:
          TF_ImportGraphDefOptionsSetPrefix(options, choices_.Of(kNames));
          break;
        case 1:
          TF_ImportGraphDefOptionsSetUniquifyNames(options, 1);
          break;
        case 2:
          TF_ImportGraphDefOptionsAddInputMapping(options, name.c_str(), AnyIndex(),
                                                  OutputOf(state));
          break;
        case 3:
          TF_ImportGraphDefOptionsRemapControlDependency(options, name.c_str(), AnyOper());
          break;
        case 4:
          TF_ImportGraphDefOptionsAddControlDependency(options, AnyOper());
          break;
        case 5:
          TF_ImportGraphDefOptionsAddReturnOutput(options, name.c_str(), AnyIndex());
          ++outputs;
          break;
        default:
          TF_ImportGraphDefOptionsAddReturnOperation(options, name.c_str());
      }
    }
    TF_Output returned[kArray];
    TF_GraphImportGraphDefWithReturnOutputs(state.graph, buffer_.get(), options, OrNull(returned),
                                            choices_.OneIn(8) ? choices_.Size() : outputs, status_);
    TF_DeleteImportGraphDefOptions(options);
    size_t position = 0;
    state.opers.clear();
    while (TF_Operation* oper = TF_GraphNextOperation(state.graph, &position)) {
      state.opers.push_back(oper);
    }
  }

  // ---- Functions ----

  void MakeFunction() {
    const GraphState& state = AnyGraph();
    const std::vector<TF_Output> inputs = OutputsOf(state);
    const std::vector<TF_Output> outputs = OutputsOf(state);
    const TF_Operation* opers[kArray];
    for (const TF_Operation*& oper : opers) oper = choices_.OneIn(8) ? AnyOper() : OperOf(state);
    TF_Function* const function = TF_GraphToFunctionWithControlOutputs(
        state.graph, choices_.OneIn(2) ? "f0" : choices_.Of(kNames), choices_.OneIn(4) ? 1 : 0,
        choices_.Size(), OrNull(opers), choices_.Size(), OrNull(inputs.data()), choices_.Size(),
        OrNull(outputs.data()), nullptr, choices_.OneIn(8) ? choices_.Size() : 0, opers, nullptr,
        nullptr, nullptr, status_);
    EXPECT_EQ(function == nullptr, Failed());
    functions_.Add(function);
  }
  void UseFunction() {
    const GraphState& state = AnyGraph();
    TF_Function* const function = functions_.Any(&choices_);
    switch (choices_.Below(5)) {
      case 0:
        return TF_GraphCopyFunction(state.graph, function, functions_.Any(&choices_), status_);
      case 1: {
        TF_Function* found[kArray];
        const int count = TF_GraphGetFunctions(state.graph, found, choices_.Size(), status_);
        for (int i = 0; i < count; ++i) functions_.Add(found[i]);
        return;
      }
      case 2: {
        const std::string bytes = AnyBytes();
        return functions_.Add(TF_FunctionImportFunctionDef(bytes.data(), bytes.size(), status_));
      }
      case 3:
        return TF_GraphRemoveFunction(state.graph, choices_.Of(kNames), status_);
      default:
        return functions_.DeleteAny(&choices_);
    }
  }

  // ---- Sessions ----

  void ChangeSession() {
    GraphState& state = AnyGraph();
    if (state.session == nullptr) {
      state.session = TF_NewSession(state.graph, nullptr, status_);
      return;
    }
    if (choices_.OneIn(4)) return TF_CloseSession(state.session, status_);
    if (!choices_.OneIn(4)) return;
    TF_DeleteSession(std::exchange(state.session, nullptr), status_);
  }

  struct Call {
    std::vector<TF_Output> inputs;
    std::vector<TF_Output> outputs;
    TF_Tensor* values[kArray];
    TF_Tensor* results[kArray];
    const TF_Operation* targets[kArray];
  };
  Call AnyCall(const GraphState& state) {
    Call call = {OutputsOf(state), OutputsOf(state), {}, {}, {}};
    for (TF_Tensor*& value : call.values) value = choices_.OneIn(16) ? nullptr : AnyTensor();
    // Only results of null are valid.
    std::fill(std::begin(call.results), std::end(call.results), nullptr);
    for (const TF_Operation*& target : call.targets) target = OperOf(state);
    return call;
  }
  // Takes the results of a call.
  void Take(TF_Tensor* const* results) {
    for (int i = 0; i < kArray; ++i) {
      if (Failed()) {
        EXPECT_EQ(results[i], nullptr);
      }
      tensors_.Add(results[i]);
    }
  }
  void RunSession() {
    const GraphState& state = AnyGraph();
    if (state.session == nullptr) return;
    Call call = AnyCall(state);
    const bool has_metadata = choices_.OneIn(8);
    TF_SessionRun(state.session, nullptr, OrNull(call.inputs.data()), OrNull(call.values),
                  choices_.Size(), OrNull(call.outputs.data()), OrNull(call.results),
                  choices_.Size(), OrNull(call.targets), choices_.OneIn(2) ? choices_.Size() : 0,
                  has_metadata ? buffer_.get() : nullptr, status_);
    Take(call.results);
  }
  void RunPartially() {
    GraphState& state = AnyGraph();
    if (state.session == nullptr) return;
    Call call = AnyCall(state);
    if (state.partial_run == nullptr) {
      return TF_SessionPRunSetup(state.session, OrNull(call.inputs.data()), choices_.Size(),
                                 OrNull(call.outputs.data()), choices_.Size(), OrNull(call.targets),
                                 0, &state.partial_run, status_);
    }
    const char* const handle = choices_.OneIn(8) ? AnyGraph().partial_run : state.partial_run;
    TF_SessionPRun(state.session, handle, OrNull(call.inputs.data()), OrNull(call.values),
                   choices_.Size(), OrNull(call.outputs.data()), OrNull(call.results),
                   choices_.Size(), OrNull(call.targets), 0, status_);
    Take(call.results);
    if (choices_.OneIn(4)) TF_DeletePRunHandle(std::exchange(state.partial_run, nullptr));
  }
  void AddGradients() {
    GraphState& state = AnyGraph();
    if (state.opers.size() > 200) return;
    std::vector<TF_Output> y = OutputsOf(state);
    std::vector<TF_Output> x = OutputsOf(state);
    std::vector<TF_Output> dx = OutputsOf(state);
    TF_Output dy[kArray] = {};
    TF_AddGradientsWithPrefix(state.graph, choices_.Of(kNames), OrNull(y.data()),
                              static_cast<int>(choices_.Below(3)), OrNull(x.data()),
                              static_cast<int>(choices_.Below(3)),
                              choices_.OneIn(2) ? dx.data() : nullptr, status_, dy);
    if (!Failed() && dy[0].oper != nullptr) state.opers.push_back(dy[0].oper);
  }
  void AddLoop() {
    GraphState& state = AnyGraph();
    std::vector<TF_Output> inputs = OutputsOf(state);
    TF_WhileParams params =
        TF_NewWhile(state.graph, OrNull(inputs.data()), choices_.Size(), status_);
    if (Failed()) return;
    params.name = choices_.Of(kNames);
    // The loop ends at once: a condition of rank 1 or more would be true.
    const TensorPtr no = Own(TF_AllocateTensor(TF_BOOL, nullptr, 0, 1));
    *static_cast<bool*>(TF_TensorData(no.get())) = false;
    TF_Operation* const cond = Const(params.cond_graph, "cond", no);
    params.cond_output = choices_.OneIn(4) ? AnyOutput() : TF_Output{cond, 0};
    for (int i = 0; i < params.ninputs; ++i) {
      params.body_outputs[i] = choices_.OneIn(16) ? AnyOutput() : params.body_inputs[i];
    }
    if (choices_.OneIn(4)) return TF_AbortWhile(&params);
    TF_Output outputs[kArray] = {};
    TF_FinishWhile(&params, status_, outputs);
    if (!Failed()) state.opers.push_back(outputs[0].oper);
  }

  // ---- Tensors ----

  void MakeTensor() {
    const TF_DataType dtype = choices_.Of(kTypes);
    const int64_t* const dims = AnyDims();
    const int rank = std::min(choices_.Size(), 4);
    if (choices_.OneIn(2)) {
      const size_t length = choices_.Below(2) << 15;
      TF_Tensor* const tensor = TF_AllocateTensor(dtype, OrNull(dims), rank, length);
      // New elements are undefined.
      const bool is_number = tensor != nullptr && dtype != TF_STRING && dtype != TF_RESOURCE;
      if (is_number) std::memset(TF_TensorData(tensor), 1, TF_TensorByteSize(tensor));
      return tensors_.Add(tensor);
    }
    ++memory_made;
    static constexpr size_t kLengths[] = {0, 4, 16, 64, 1 << 15, SIZE_MAX};
    tensors_.Add(TF_NewTensor(
        dtype, OrNull(dims), rank, OrNull(tensor_memory + choices_.Below(2)), choices_.Of(kLengths),
        [](void*, size_t, void*) { ++memory_released; }, nullptr));
  }
  void ChangeTensor() {
    TF_Tensor* const tensor = AnyTensor();
    switch (choices_.Below(5)) {
      case 0:
        return TF_SetShape(tensor, OrNull(AnyDims()), choices_.Size());
      case 1:
        return TF_TensorBitcastFrom(tensor, choices_.Of(kTypes), AnyTensor(), OrNull(AnyDims()),
                                    choices_.Size(), status_);
      case 2:
        return TF_TensorFromProto(buffer_.get(), tensor, status_);
      case 3:
        TF_TensorMaybeMove(tensor);
        TF_Dim(tensor, choices_.Size());
        return;
      default:
        return tensors_.DeleteAny(&choices_);
    }
  }

  // ---- Eager execution ----

  void StartOp() { ops_.Add(TFE_NewOp(context_, choices_.Of(kOps), status_)); }
  void ChangeOp() {
    TFE_Op* const op = ops_.Any(&choices_);
    if (op == nullptr) return;
    const char* const name = choices_.Of(kAttrs);
    const TF_DataType types[kArray] = {TF_FLOAT, TF_INT32, choices_.Of(kTypes)};
    TFE_TensorHandle* list[kArray];
    for (TFE_TensorHandle*& handle : list) handle = handles_.Any(&choices_);
    unsigned char is_list = 0;
    switch (choices_.Below(14)) {
      case 0:
      case 1:
        return TFE_OpAddInput(op, handles_.Any(&choices_), status_);
      case 2:
        return TFE_OpAddInputList(op, OrNull(list), choices_.Size(), status_);
      case 3:
        return TFE_OpSetAttrInt(op, name, choices_.Of(kDims));
      case 4:
        return TFE_OpSetAttrType(op, name, choices_.Of(kTypes));
      case 5:
        return TFE_OpSetAttrTypeList(op, name, OrNull(types), choices_.Size());
      case 6:
        return TFE_OpSetAttrShape(op, name, OrNull(AnyDims()), choices_.Size(), status_);
      case 7:
        return TFE_OpSetAttrString(op, name, OrNull("text"), choices_.Below(5));
      case 8:
        return TFE_OpSetAttrFunctionName(op, name, OrNull("f0"), choices_.Below(3));
      case 9:
        return TFE_OpSetAttrTensor(op, name, AnyTensor(), status_);
      case 10:
        return TFE_OpReset(op, choices_.Of(kOps), OrNull("/cpu:0"), status_);
      case 11:
        TFE_OpGetAttrType(op, name, &is_list, status_);
        TFE_OpGetFlatInput(op, choices_.Size(), status_);
        return;
      case 12:
        TFE_OpGetInputLength(op, choices_.Of(kAttrs), status_);
        TFE_OpGetOutputLength(op, choices_.Of(kAttrs), status_);
        return;
      default:
        return ops_.DeleteAny(&choices_);
    }
  }
  void Execute() {
    TFE_Op* const op = ops_.Any(&choices_);
    if (op == nullptr) return;
    TFE_TensorHandle* results[kArray] = {};
    int count = choices_.Size();
    TFE_Execute(op, OrNull(results), &count, status_);
    for (TFE_TensorHandle* result : results) {
      if (Failed()) {
        EXPECT_EQ(result, nullptr);
      }
      handles_.Add(result);
    }
  }
  void UseHandle() {
    TFE_TensorHandle* const handle = handles_.Any(&choices_);
    switch (choices_.Below(5)) {
      case 0:
        return handles_.Add(TFE_NewTensorHandle(AnyTensor(), status_));
      case 1:
        return tensors_.Add(TFE_TensorHandleResolve(handle, status_));
      case 2: {
        void* const managed = tensorflow::TFE_HandleToDLPack(handle, status_);
        if (managed == nullptr) return;
        if (choices_.OneIn(2)) return tensorflow::TFE_CallDLManagedTensorDeleter(managed);
        return handles_.Add(tensorflow::TFE_HandleFromDLPack(managed, status_, context_));
      }
      case 3:
        TFE_TensorHandleDim(handle, choices_.Size(), status_);
        TFE_TensorHandleNumElements(handle, status_);
        return handles_.Add(TFE_TensorHandleCopySharingTensor(handle, status_));
      default:
        return handles_.DeleteAny(&choices_);
    }
  }
  void ChangeContext() {
    switch (choices_.Below(4)) {
      case 0: {
        TF_Function* const function = functions_.Any(&choices_);
        if (function != nullptr) TFE_ContextAddFunction(context_, function, status_);
        return;
      }
      case 1:
        return TFE_ContextRemoveFunction(context_, choices_.Of(kNames), status_);
      case 2:
        return TFE_ContextClearCaches(context_);
      default:
        return functions_.Add(TFE_ContextGetFunction(context_, choices_.Of(kNames), status_));
    }
  }

  // ---- Threads ----

  // Runs the session and the context from several threads, while they add operations and edges to
  // the graph and functions to the context.
  void RunThreads() {
    if (!choices_.OneIn(4)) return;
    const GraphState& state = AnyGraph();
    if (state.session == nullptr || state.opers.empty()) return;
    const std::vector<TF_Output> outputs = OutputsOf(state);
    TF_Function* const function = functions_.Any(&choices_);
    const int first_name = next_name_;
    next_name_ += 100;
    std::vector<std::thread> threads;
    for (int t = 0; t < 3; ++t) {
      threads.emplace_back([&, t, bytes = std::string(choices_.Split(8))] {
        RunThread(state, outputs, function, first_name + t * 30, Choices(bytes));
      });
    }
    for (std::thread& thread : threads) thread.join();
  }
  void RunThread(const GraphState& state, const std::vector<TF_Output>& outputs,
                 TF_Function* function, int first_name, Choices choices) {
    const Status status;
    const TensorPtr value = Floats({2}, {1, 2});
    for (int step = 0; step < 30 && !choices.empty(); ++step) {
      const TF_Output output = outputs[choices.Below(outputs.size())];
      TF_Operation* const oper = state.opers[choices.Below(state.opers.size())];
      switch (choices.Below(10)) {
        case 0: {
          TF_Tensor* const values[] = {value.get()};
          TF_Tensor* result = nullptr;
          TF_SessionRun(state.session, nullptr, outputs.data(), values,
                        static_cast<int>(choices.Below(2)), &output, &result, 1, nullptr, 0,
                        nullptr, status);
          TF_DeleteTensor(result);
          break;
        }
        case 1: {
          const std::string name = "n" + std::to_string(first_name + step);
          TF_OperationDescription* const desc = TF_NewOperation(state.graph, "Neg", name.c_str());
          TF_AddInput(desc, output);
          TF_FinishOperation(desc, status);
          break;
        }
        case 2: {
          TFE_Op* const op = TFE_NewOp(context_, choices.OneIn(2) ? "f0" : "Neg", status);
          if (op == nullptr) break;
          TFE_TensorHandle* const handle = TFE_NewTensorHandle(value.get(), status);
          TFE_OpAddInput(op, handle, status);
          TFE_TensorHandle* result = nullptr;
          int count = 1;
          TFE_Execute(op, &result, &count, status);
          TFE_DeleteTensorHandle(result);
          TFE_DeleteTensorHandle(handle);
          TFE_DeleteOp(op);
          break;
        }
        case 3:
          if (function != nullptr) TFE_ContextAddFunction(context_, function, status);
          break;
        case 4:
          TFE_ContextRemoveFunction(context_, "f0", status);
          break;
        case 5:
          TF_UpdateEdge(state.graph, output, {oper, 0}, status);
          break;
        case 6: {
          TF_Output inputs[kArray];
          TF_DataType dtype;
          TF_OperationAllInputs(oper, inputs, kArray);
          TF_OperationInput({oper, 0});
          TF_OperationInputType({oper, 0});
          TF_OperationNumControlInputs(oper);
          TF_OperationOutputNumConsumers({oper, 0});
          TF_OperationGetAttrType(oper, "T", &dtype, status);
          break;
        }
        case 7:
          TF_GraphRemoveFunction(state.graph, "f0", status);
          break;
        case 8:
          if (function != nullptr) TF_GraphCopyFunction(state.graph, function, nullptr, status);
          break;
        default: {
          const BufferPtr buffer = NewBuffer();
          TF_GraphToGraphDef(state.graph, buffer.get(), status);
        }
      }
    }
  }

  Choices choices_;
  const Status status_;
  const BufferPtr buffer_ = NewBuffer();
  int next_name_ = 0;
  int64_t dims_[kArray] = {};
  std::vector<GraphState> graphs_;
  TFE_Context* context_ = nullptr;
  Objects<TF_Tensor> tensors_{&TF_DeleteTensor};
  Objects<TF_Function> functions_{&TF_DeleteFunction};
  Objects<TFE_TensorHandle> handles_{&TFE_DeleteTensorHandle};
  Objects<TFE_Op> ops_{&TFE_DeleteOp};
};

}  // namespace

void CallInRandomOrder(absl::string_view bytes) {
  memory_made = 0;
  memory_released = 0;
  {
    RandomCalls calls(bytes);
    calls.Run();
  }
  EXPECT_EQ(memory_made, memory_released);
}

}  // namespace gradflow::capi_test
