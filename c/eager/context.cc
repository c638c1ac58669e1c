#include "gradflow/c/eager/context.h"

#include <algorithm>
#include <thread>
#include <utility>

#include "gradflow/c/buffer.h"
#include "gradflow/c/function.h"
#include "gradflow/c/session.h"
#include "gradflow/c/status.h"
#include "gradflow/graph/function_library.h"
#include "gradflow/graph/node_checks.h"
#include "gradflow/proto/function.pb.h"
#include "gradflow/proto/graph.pb.h"
#include "gradflow/runtime/session/option_checks.h"
#include "tensorflow/c/eager/c_api_experimental.h"

namespace gradflow::capi {
namespace {

// If a program uses more plans, all are dropped.
constexpr size_t kMaxPlans = 8192;

Parallelism ThreadsOf(const ConfigProto& config) {
  const auto threads = [](int requested) {
    const int all = static_cast<int>(std::thread::hardware_concurrency());
    return requested > 0 ? requested : std::clamp(all, 1, SessionOptions::kMaxThreads);
  };
  return {threads(config.inter_op_parallelism_threads()),
          threads(config.intra_op_parallelism_threads())};
}

}  // namespace
}  // namespace gradflow::capi

using gradflow::FunctionDef;
using gradflow::MutexLock;
using gradflow::capi::Call;
using gradflow::capi::CallOr;
using gradflow::capi::CallQuietly;
using gradflow::capi::EagerPlan;
using gradflow::capi::FillBuffer;
using gradflow::capi::OrEmpty;

TFE_Context::TFE_Context(const TFE_ContextOptions& context_options)
    : options(context_options.session),
      async(context_options.async),
      policy(context_options.policy),
      pool(std::make_shared<gradflow::PoolAllocator>()),
      resources(std::make_shared<gradflow::ResourceManager>()),
      executor(gradflow::capi::ThreadsOf(options.config), pool, resources, {},
               {options.file_access, options.raw_prints, options.collectives}),
      functions_(std::make_shared<gradflow::Graph>()) {}

TFE_Context::~TFE_Context() {
  ClearPlans();
  resources->Close();
  pool->StopCaching();
}

absl::StatusOr<std::shared_ptr<const gradflow::OpDef>> TFE_Context::FindOpDef(
    absl::string_view name) {
  using OpDefPtr = std::shared_ptr<const gradflow::OpDef>;
  if (const gradflow::OpRegistration* const op = gradflow::GlobalRegistry().FindOp(name)) {
    // Registered ops live forever.
    return OpDefPtr(OpDefPtr(), &op->def());
  }
  const MutexLock lock(&mutex_);
  if (const FunctionDef* const function = functions_->functions().Find(name)) {
    return OpDefPtr(functions_, &function->signature());
  }
  return gradflow::errors::NotFound("'", gradflow::errors::Printable(name),
                                    "' is neither a type of a primitive operation nor a name of a "
                                    "function registered in binary running gradflow");
}

absl::StatusOr<std::shared_ptr<const EagerPlan>> TFE_Context::FindOrMakePlan(
    absl::string_view key,
    absl::FunctionRef<absl::Status(const std::shared_ptr<const gradflow::Graph>& functions,
                                   EagerPlan* plan)>
        make) {
  const auto find = [&] {
    return plans_.Read([&](const Plans& plans) -> std::shared_ptr<const EagerPlan> {
      const auto it = plans.find(key);
      return it == plans.end() ? nullptr : it->second;
    });
  };
  if (std::shared_ptr<const EagerPlan> found = find()) return found;
  auto made = std::make_shared<EagerPlan>();
  // The old plans are destroyed without a lock.
  std::vector<Plans> dropped;
  const MutexLock lock(&mutex_);
  // If several threads need the same new plan, one makes it and the others wait.
  if (std::shared_ptr<const EagerPlan> found = find()) return found;
  GRADFLOW_RETURN_IF_ERROR(make(functions_, made.get()));
  // The mutex is held, so that RemoveFunction() drops this plan.
  plans_.Update([&](Plans* plans) {
    if (plans->size() >= gradflow::capi::kMaxPlans) dropped.push_back(std::exchange(*plans, {}));
    plans->emplace(key, made);
  });
  return made;
}

absl::Status TFE_Context::WithFunctions(
    absl::FunctionRef<absl::Status(const gradflow::Graph&)> fn) {
  const MutexLock lock(&mutex_);
  return fn(*functions_);
}

void TFE_Context::ClearPlans() {
  // The plans are destroyed without a lock.
  std::vector<Plans> dropped;
  plans_.Update([&](Plans* plans) { dropped.push_back(std::exchange(*plans, {})); });
}

absl::Status TFE_Context::AddFunction(const TF_Function& function) {
  const MutexLock lock(&mutex_);
  return gradflow::capi::AddFunctionsToGraph(
      gradflow::capi::WithCalledFunctions(function, *functions_), functions_.get());
}

absl::Status TFE_Context::RemoveFunction(absl::string_view name) {
  {
    const MutexLock lock(&mutex_);
    if (functions_->functions().Find(name) == nullptr) {
      return gradflow::errors::NotFound("there is no function ", gradflow::internal::Quoted(name));
    }
    auto remaining = std::make_shared<gradflow::Graph>();
    std::vector<const FunctionDef*> kept;
    for (const FunctionDef& function : functions_->def().library().function()) {
      if (function.signature().name() != name) kept.push_back(&function);
    }
    GRADFLOW_RETURN_IF_ERROR(gradflow::capi::AddFunctionsToGraph(kept, remaining.get()));
    functions_ = std::move(remaining);
  }
  ClearPlans();
  return absl::OkStatus();
}

bool TFE_Context::HasFunction(absl::string_view name) {
  const MutexLock lock(&mutex_);
  return functions_->functions().Find(name) != nullptr;
}

absl::StatusOr<FunctionDef> TFE_Context::GetFunction(absl::string_view name) {
  const MutexLock lock(&mutex_);
  const FunctionDef* const function = functions_->functions().Find(name);
  if (function != nullptr) return *function;
  return gradflow::errors::NotFound("there is no function ", gradflow::internal::Quoted(name));
}

// ---- Options ----

TFE_ContextOptions* TFE_NewContextOptions(void) {
  return CallOr<TFE_ContextOptions*>(nullptr, [] { return new TFE_ContextOptions; });
}

void TFE_ContextOptionsSetConfig(TFE_ContextOptions* options, const void* proto, size_t proto_len,
                                 TF_Status* status) {
  Call(status,
       [&] { return gradflow::capi::ParseMessage(proto, proto_len, &options->session.config); });
}

void TFE_ContextOptionsSetAsync(TFE_ContextOptions* options, unsigned char enable) {
  options->async = enable != 0;
}

void TFE_ContextOptionsSetDevicePlacementPolicy(TFE_ContextOptions* options,
                                                TFE_ContextDevicePlacementPolicy policy) {
  options->policy = policy;
}

void TFE_ContextOptionsSetTfrt(TFE_ContextOptions*, bool) {}

void TFE_DeleteContextOptions(TFE_ContextOptions* options) { delete options; }

// ---- Contexts ----

TFE_Context* TFE_NewContext(const TFE_ContextOptions* opts, TF_Status* status) {
  TFE_Context* result = nullptr;
  Call(status, [&]() -> absl::Status {
    GRADFLOW_RETURN_IF_ERROR(gradflow::internal::CheckSessionOptions(opts->session));
    result = new TFE_Context(*opts);
    return absl::OkStatus();
  });
  return result;
}

void TFE_DeleteContext(TFE_Context* ctx) { delete ctx; }

TF_DeviceList* TFE_ContextListDevices(TFE_Context*, TF_Status* status) {
  TF_SetStatus(status, TF_OK, "");
  return gradflow::capi::NewDeviceList();
}

void TFE_ContextClearCaches(TFE_Context* ctx) {
  CallQuietly([&] { ctx->ClearPlans(); });
}

void TFE_ContextSetThreadLocalDevicePlacementPolicy(TFE_Context* ctx,
                                                    TFE_ContextDevicePlacementPolicy policy) {
  ctx->policy.store(policy);
}

TFE_ContextDevicePlacementPolicy TFE_ContextGetDevicePlacementPolicy(TFE_Context* ctx) {
  return ctx->policy.load();
}

void TFE_ContextSetServerDef(TFE_Context*, int, const void*, size_t, TF_Status* status) {
  TF_SetStatus(status, TF_UNIMPLEMENTED, "gradflow has no clusters: it runs in one process");
}

// ---- Functions ----

void TFE_ContextAddFunctionDef(TFE_Context* ctx, const char* serialized_function_def, size_t size,
                               TF_Status* status) {
  Call(status, [&]() -> absl::Status {
    TF_Function function;
    if (!gradflow::capi::ParseMessage(serialized_function_def, size, &function.def).ok()) {
      return gradflow::errors::InvalidArgument("Invalid FunctionDef proto");
    }
    return ctx->AddFunction(function);
  });
}

void TFE_ContextAddFunction(TFE_Context* ctx, TF_Function* function, TF_Status* status) {
  Call(status, [&] { return ctx->AddFunction(*function); });
}

void TFE_ContextRemoveFunction(TFE_Context* ctx, const char* name, TF_Status* status) {
  Call(status, [&] { return ctx->RemoveFunction(OrEmpty(name)); });
}

unsigned char TFE_ContextHasFunction(TFE_Context* ctx, const char* name) {
  return CallOr(false, [&] { return ctx->HasFunction(OrEmpty(name)); });
}

void TFE_ContextGetFunctionDef(TFE_Context* ctx, const char* function_name, TF_Buffer* buf,
                               TF_Status* status) {
  Call(status, [&]() -> absl::Status {
    GRADFLOW_ASSIGN_OR_RETURN(const FunctionDef function, ctx->GetFunction(OrEmpty(function_name)));
    return FillBuffer(function, buf);
  });
}

TF_Function* TFE_ContextGetFunction(TFE_Context* ctx, const char* name, TF_Status* status) {
  TF_Function* result = nullptr;
  Call(status, [&]() -> absl::Status {
    GRADFLOW_ASSIGN_OR_RETURN(FunctionDef function, ctx->GetFunction(OrEmpty(name)));
    result = new TF_Function{std::move(function), {}};
    return absl::OkStatus();
  });
  return result;
}

// ---- Statistics ----

void TFE_ContextEnableRunMetadata(TFE_Context* ctx) { ctx->records_metadata.store(true); }
void TFE_ContextDisableRunMetadata(TFE_Context* ctx) { ctx->records_metadata.store(false); }

void TFE_ContextExportRunMetadata(TFE_Context* ctx, TF_Buffer* buf, TF_Status* status) {
  Call(status, [&]() -> absl::Status {
    const MutexLock lock(&ctx->metadata_mutex);
    GRADFLOW_RETURN_IF_ERROR(FillBuffer(ctx->metadata, buf));
    ctx->metadata.Clear();
    return absl::OkStatus();
  });
}

void TFE_ContextStartStep(TFE_Context*) {}
void TFE_ContextEndStep(TFE_Context*) {}
