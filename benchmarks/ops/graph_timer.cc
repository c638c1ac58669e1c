// Times graphs through TensorFlow's C API, in gradflow's or TensorFlow's library.
//
//   graph_timer LIBRARY THREADS
//
// LIBRARY is the path of libtensorflow.so.2 or libtensorflow_cc.so.2. The program reads commands
// from standard input and answers each with one line on standard output:
//
//   load GRAPH INPUTS [INIT]   opens a session of a GraphDef. INPUTS is a file of feeds, as
//                              benchmarks/ops/peers.py writes it. Runs the operation INIT first.
//                              Answers "ok"
//   run SECONDS                runs operation "y" for some time, at least once. Answers the number
//                              of runs, the shortest and the median wall time, and the CPU time of
//                              the process for one run, in seconds
//   write FILE                 writes the bytes of the last result of "y:0". Answers "ok"
//   close                      closes the session. Answers "ok"
//
// The answer to a command that fails is "error: " and a text.
#include <dlfcn.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <fstream>
#include <iostream>
#include <iterator>
#include <sstream>
#include <string>
#include <vector>

#include "tensorflow/c/c_api.h"
#include "tensorflow/c/tf_tstring.h"

namespace {

// clang-format off
// The functions of the library.
#define FOR_EACH_FUNCTION(F)                                                                \
  F(NewStatus) F(GetCode) F(Message) F(NewGraph) F(DeleteGraph) F(NewImportGraphDefOptions) \
  F(NewBufferFromString) F(DeleteBuffer) F(GraphImportGraphDef) F(GraphOperationByName)     \
  F(NewSessionOptions) F(SetConfig) F(NewSession) F(CloseSession) F(DeleteSession)          \
  F(SessionRun) F(AllocateTensor) F(DeleteTensor) F(TensorData) F(TensorByteSize)           \
  F(OperationNumOutputs)
// clang-format on

struct Api {
#define DECLARE(name) decltype(&TF_##name) name = nullptr;
  FOR_EACH_FUNCTION(DECLARE)
#undef DECLARE
};

bool LoadLibrary(const char* path, Api* api) {
  void* const library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return false;
#define LOAD(name)                                                                \
  api->name = reinterpret_cast<decltype(api->name)>(dlsym(library, "TF_" #name)); \
  if (api->name == nullptr) return false;
  FOR_EACH_FUNCTION(LOAD)
#undef LOAD
  return true;
}

double Seconds(clockid_t clock) {
  timespec time;
  clock_gettime(clock, &time);
  constexpr double kNanosecond = 1e-9;
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * kNanosecond;
}

class Timer {
 public:
  Timer(const Api& api, int threads) : api_(api), threads_(threads), status_(api.NewStatus()) {}

  // Executes a command and returns the answer.
  std::string Execute(const std::string& line) {
    std::istringstream in(line);
    std::string command;
    in >> command;
    if (command == "load") {
      std::string graph, inputs, init;
      in >> graph >> inputs >> init;
      return Load(graph, inputs, init);
    }
    if (command == "run") {
      double seconds = 0;
      in >> seconds;
      return Run(seconds);
    }
    if (command == "write") {
      std::string path;
      in >> path;
      return Write(path);
    }
    if (command == "close") return Close();
    return "error: unknown command";
  }

 private:
  bool Failed() const { return api_.GetCode(status_) != TF_OK; }

  std::string Error() const {
    std::string text = api_.Message(status_);
    std::replace(text.begin(), text.end(), '\n', ' ');
    return "error: " + text;
  }

  std::string Load(const std::string& graph_path, const std::string& inputs_path,
                   const std::string& init) {
    std::ifstream file(graph_path, std::ios::binary);
    const std::string bytes((std::istreambuf_iterator<char>(file)), {});
    graph_ = api_.NewGraph();
    TF_Buffer* const buffer = api_.NewBufferFromString(bytes.data(), bytes.size());
    api_.GraphImportGraphDef(graph_, buffer, api_.NewImportGraphDefOptions(), status_);
    api_.DeleteBuffer(buffer);
    if (Failed()) return Error();
    if (!ReadInputs(inputs_path)) return "error: cannot read " + inputs_path;
    target_ = api_.GraphOperationByName(graph_, "y");
    if (target_ == nullptr) return "error: no operation y";
    TF_SessionOptions* const options = api_.NewSessionOptions();
    // ConfigProto.intra_op_parallelism_threads and inter_op_parallelism_threads.
    const unsigned char config[] = {0x10, static_cast<unsigned char>(threads_), 0x28,
                                    static_cast<unsigned char>(threads_)};
    api_.SetConfig(options, config, sizeof config, status_);
    if (Failed()) return Error();
    session_ = api_.NewSession(graph_, options, status_);
    if (Failed()) return Error();
    if (!init.empty()) {
      const TF_Operation* const operation = api_.GraphOperationByName(graph_, init.c_str());
      api_.SessionRun(session_, nullptr, nullptr, nullptr, 0, nullptr, nullptr, 0, &operation, 1,
                      nullptr, status_);
      if (Failed()) return Error();
    }
    // Warms up: plans, fills pools and caches, and starts threads.
    for (int i = 0; i < 3; ++i) {
      RunOnce();
      if (Failed()) return Error();
    }
    return "ok";
  }

  // The file holds, for each input, a line "NAME DTYPE BYTES RANK DIM...", and its bytes. A string
  // is its length in 4 bytes and its characters.
  bool ReadInputs(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    if (!file) return false;
    std::string line;
    while (std::getline(file, line)) {
      std::istringstream header(line);
      std::string name;
      int dtype = 0;
      int rank = 0;
      size_t size = 0;
      header >> name >> dtype >> size >> rank;
      std::vector<int64_t> dims(rank);
      int64_t count = 1;
      for (int64_t& dim : dims) {
        header >> dim;
        count *= dim;
      }
      std::string bytes(size, '\0');
      if (!header || !file.read(bytes.data(), static_cast<std::streamsize>(size))) return false;
      const bool is_string = dtype == TF_STRING;
      TF_Tensor* const tensor =
          api_.AllocateTensor(static_cast<TF_DataType>(dtype), dims.data(), rank,
                              is_string ? count * sizeof(TF_TString) : size);
      if (is_string) {
        auto* const strings = static_cast<TF_TString*>(api_.TensorData(tensor));
        const char* from = bytes.data();
        for (int64_t i = 0; i < count; ++i) {
          uint32_t length = 0;
          std::memcpy(&length, from, sizeof length);
          from += sizeof length;
          TF_TString_Init(&strings[i]);
          TF_TString_Copy(&strings[i], from, length);
          from += length;
        }
      } else {
        std::copy(bytes.begin(), bytes.end(), static_cast<char*>(api_.TensorData(tensor)));
      }
      TF_Operation* const operation = api_.GraphOperationByName(graph_, name.c_str());
      if (operation == nullptr) return false;
      feeds_.push_back({operation, 0});
      values_.push_back(tensor);
    }
    return true;
  }

  void RunOnce() {
    DeleteResult();
    const TF_Output output = {target_, 0};
    if (api_.OperationNumOutputs(target_) == 0) {
      const TF_Operation* const target = target_;
      api_.SessionRun(session_, nullptr, feeds_.data(), values_.data(),
                      static_cast<int>(feeds_.size()), nullptr, nullptr, 0, &target, 1, nullptr,
                      status_);
    } else {
      api_.SessionRun(session_, nullptr, feeds_.data(), values_.data(),
                      static_cast<int>(feeds_.size()), &output, &result_, 1, nullptr, 0, nullptr,
                      status_);
    }
  }

  std::string Run(double seconds) {
    if (session_ == nullptr) return "error: no session";
    std::vector<double> times;
    const double cpu = Seconds(CLOCK_PROCESS_CPUTIME_ID);
    const double end = Seconds(CLOCK_MONOTONIC) + seconds;
    double before = Seconds(CLOCK_MONOTONIC);
    do {
      RunOnce();
      const double after = Seconds(CLOCK_MONOTONIC);
      times.push_back(after - before);
      before = after;
    } while (before < end);
    if (Failed()) return Error();
    const double cpu_time =
        (Seconds(CLOCK_PROCESS_CPUTIME_ID) - cpu) / static_cast<double>(times.size());
    std::sort(times.begin(), times.end());
    std::ostringstream answer;
    answer << times.size() << " " << times.front() << " " << times[times.size() / 2] << " "
           << cpu_time;
    return answer.str();
  }

  std::string Write(const std::string& path) {
    if (result_ == nullptr) return "error: no result";
    std::ofstream file(path, std::ios::binary);
    file.write(static_cast<const char*>(api_.TensorData(result_)),
               static_cast<std::streamsize>(api_.TensorByteSize(result_)));
    return file ? "ok" : "error: cannot write " + path;
  }

  void DeleteResult() {
    if (result_ != nullptr) api_.DeleteTensor(result_);
    result_ = nullptr;
  }

  std::string Close() {
    DeleteResult();
    if (session_ != nullptr) {
      api_.CloseSession(session_, status_);
      api_.DeleteSession(session_, status_);
      session_ = nullptr;
    }
    for (TF_Tensor* const value : values_) api_.DeleteTensor(value);
    values_.clear();
    feeds_.clear();
    if (graph_ != nullptr) api_.DeleteGraph(graph_);
    graph_ = nullptr;
    return "ok";
  }

  const Api& api_;
  int threads_;
  TF_Status* status_;
  TF_Graph* graph_ = nullptr;
  TF_Session* session_ = nullptr;
  TF_Operation* target_ = nullptr;
  std::vector<TF_Output> feeds_;
  std::vector<TF_Tensor*> values_;
  TF_Tensor* result_ = nullptr;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: graph_timer LIBRARY THREADS\n");
    return 2;
  }
  Api api;
  if (!LoadLibrary(argv[1], &api)) {
    std::fprintf(stderr, "graph_timer: %s\n", dlerror());
    return 1;
  }
  Timer timer(api, std::atoi(argv[2]));
  std::string line;
  while (std::getline(std::cin, line)) std::cout << timer.Execute(line) << std::endl;
  return 0;
}
