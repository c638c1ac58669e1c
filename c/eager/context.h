// TFE_Context: the state that eager ops share.
//
// An op runs by the plan of a graph of one node: a placeholder for each input, and the node. Plans
// are cached by op, attributes, and types of inputs. All plans share one executor, one memory pool,
// the resources (variables, tables) and the functions of the context.
#ifndef GRADFLOW_C_EAGER_CONTEXT_H_
#define GRADFLOW_C_EAGER_CONTEXT_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "gradflow/core/mutex.h"
#include "gradflow/core/resource_manager.h"
#include "gradflow/graph/graph.h"
#include "gradflow/proto/config.pb.h"
#include "gradflow/runtime/executor/executor.h"
#include "gradflow/runtime/memory/pool_allocator.h"
#include "gradflow/runtime/memory/shards.h"
#include "gradflow/runtime/plan/kernel_cache.h"
#include "gradflow/runtime/plan/plan.h"
#include "gradflow/runtime/session/options.h"
#include "gradflow/runtime/session/replicated.h"
#include "tensorflow/c/eager/c_api.h"

namespace gradflow::capi {

// The name of the only device.
inline constexpr char kCpuName[] = "/job:localhost/replica:0/task:0/device:CPU:0";

// The plan of an op, and the objects that the plan borrows.
struct EagerPlan {
  // Members are destroyed in reverse order.
  std::shared_ptr<const Graph> functions;
  std::unique_ptr<Graph> graph;
  KernelCache kernels;
  std::shared_ptr<const Plan> plan;
  // The types of the results.
  DataTypeVector results;
};

}  // namespace gradflow::capi

struct TFE_ContextOptions {
  gradflow::SessionOptions session;
  bool async = false;
  TFE_ContextDevicePlacementPolicy policy = TFE_DEVICE_PLACEMENT_SILENT;
};

struct TFE_Context {
  explicit TFE_Context(const TFE_ContextOptions& options);
  ~TFE_Context();

  // Returns the definition of an op or the signature of a function. The pointer keeps the function
  // alive after its removal.
  absl::StatusOr<std::shared_ptr<const gradflow::OpDef>> FindOpDef(absl::string_view name);

  // Calls fn(functions) while no thread changes the functions.
  absl::Status WithFunctions(absl::FunctionRef<absl::Status(const gradflow::Graph&)> fn);

  // Finds or makes the plan of a key. `make` is called with the functions while no thread changes
  // them.
  absl::StatusOr<std::shared_ptr<const gradflow::capi::EagerPlan>> FindOrMakePlan(
      absl::string_view key,
      absl::FunctionRef<absl::Status(const std::shared_ptr<const gradflow::Graph>& functions,
                                     gradflow::capi::EagerPlan* plan)>
          make);
  void ClearPlans();

  absl::Status AddFunction(const TF_Function& function);
  absl::Status RemoveFunction(absl::string_view name);
  bool HasFunction(absl::string_view name);
  // Returns NOT_FOUND if there is no such function.
  absl::StatusOr<gradflow::FunctionDef> GetFunction(absl::string_view name);

  const gradflow::SessionOptions options;
  const bool async;
  std::atomic<TFE_ContextDevicePlacementPolicy> policy;
  const std::shared_ptr<gradflow::PoolAllocator> pool;
  const std::shared_ptr<gradflow::ResourceManager> resources;
  const gradflow::Executor executor;

  std::atomic<bool> records_metadata{false};
  gradflow::Mutex metadata_mutex;
  gradflow::RunMetadata metadata ABSL_GUARDED_BY(metadata_mutex);

 private:
  using Plans = absl::flat_hash_map<std::string, std::shared_ptr<const gradflow::capi::EagerPlan>>;

  gradflow::Replicated<Plans> plans_;
  // Guards the functions.
  gradflow::Mutex mutex_;
  // A graph without nodes. Replaced when a function is removed; plans keep their graph.
  std::shared_ptr<gradflow::Graph> functions_ ABSL_GUARDED_BY(mutex_);
};

#endif  // GRADFLOW_C_EAGER_CONTEXT_H_
