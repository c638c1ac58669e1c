// Lists of ops and kernels, their documentation, and libraries of ops.
#include <dlfcn.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gradflow/c/buffer.h"
#include "gradflow/c/kernel_list.h"
#include "gradflow/c/status.h"
#include "gradflow/core/mutex.h"
#include "gradflow/core/registry.h"
#include "gradflow/graph/node_checks.h"
#include "gradflow/proto/kernel_def.pb.h"
#include "gradflow/proto/op_def.pb.h"
#include "tensorflow/c/c_api.h"
#include "tensorflow/c/c_api_experimental.h"

struct TF_Library {
  void* handle = nullptr;
  std::string op_list;
};

namespace gradflow::capi {
namespace {

// The version of TensorFlow whose interface the headers have.
constexpr char kVersion[] = "2.21.0";

OpList AllOps() {
  OpList ops;
  for (const OpRegistration* op : GlobalRegistry().Ops()) *ops.add_op() = op->def();
  return ops;
}

// Returns the ops that are not in `old_names`.
OpList NewOps(const std::set<std::string>& old_names) {
  OpList ops;
  for (const OpRegistration* op : GlobalRegistry().Ops()) {
    if (old_names.count(op->def().name()) == 0) *ops.add_op() = op->def();
  }
  return ops;
}

// Returns true if a regular file contains the text.
bool FileContains(const std::string& path, absl::string_view text) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error)) return false;
  std::ifstream file(path, std::ios::binary);
  const std::string bytes((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  return absl::StrContains(bytes, text);
}

// Explains an error of dlopen().
absl::Status LoadError(const std::string& path, absl::string_view why) {
  const std::string file = absl::StrCat("library ", internal::Quoted(path), ": ");
  if (absl::StrContains(why, "undefined symbol: _Z")) {
    return errors::FailedPrecondition(
        file, errors::Printable(why),
        "; it is built for TensorFlow's C++ interface, which is not stable and not part of this "
        "library. Build it for the C interface (tensorflow/c/kernels.h), or link the program to "
        "gradflow's C++ library");
  }
  const bool missing =
      absl::StrContains(why, "No such file") && absl::StrContains(why, absl::StrCat(path, ":"));
  return missing ? errors::NotFound(file, errors::Printable(why))
                 : errors::InvalidArgument(file, errors::Printable(why));
}

// The libraries that have been loaded, by handle, with the ops that they registered.
struct LoadedLibraries {
  Mutex mutex;
  std::map<void*, std::string> ops ABSL_GUARDED_BY(mutex);
};
LoadedLibraries& AllLibraries() {
  static auto& libraries = *new LoadedLibraries;
  return libraries;
}

absl::StatusOr<std::unique_ptr<TF_Library>> Load(const std::string& path) {
  // Loading gradflow's C++ library a second time would end the process.
  if (FileContains(path, "libgradflow.so")) {
    return errors::FailedPrecondition(
        "library ", internal::Quoted(path),
        ": it is built for gradflow's C++ interface; load it by gradflow::LoadLibrary() in a "
        "program that links to gradflow");
  }
  LoadedLibraries& libraries = AllLibraries();
  const MutexLock lock(&libraries.mutex);
  std::set<std::string> old_names;
  for (const OpRegistration* op : GlobalRegistry().Ops()) old_names.insert(op->def().name());
  auto library = std::make_unique<TF_Library>();
  library->handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library->handle == nullptr) return LoadError(path, dlerror());
  const auto known = libraries.ops.find(library->handle);
  if (known != libraries.ops.end()) {
    library->op_list = known->second;
    return library;
  }
  if (void* const init = dlsym(library->handle, "TF_InitKernel")) {
    reinterpret_cast<void (*)()>(init)();
  }
  library->op_list = NewOps(old_names).SerializeAsString();
  libraries.ops[library->handle] = library->op_list;
  return library;
}

// Stores a KernelList of one op, or of all ops if `op` is null.
absl::Status FillKernels(const char* op, TF_Buffer** buffer) {
  KernelList list;
  for (const auto& [kernel, host_arguments] : RegisteredKernels(GlobalRegistry(), op)) {
    KernelDef* const def = list.add_kernel();
    def->set_op(kernel.op);
    def->set_device_type(kernel.device);
    def->set_label(kernel.label);
    def->set_priority(kernel.priority);
    def->mutable_host_memory_arg()->Assign(host_arguments.begin(), host_arguments.end());
    for (const auto& [attr, types] : kernel.type_constraints) {
      KernelDef::AttrConstraint* const constraint = def->add_constraint();
      constraint->set_name(attr);
      for (const DataType type : types) {
        constraint->mutable_allowed_values()->mutable_list()->add_type(type);
      }
    }
  }
  return NewBuffer(list, buffer);
}

}  // namespace
}  // namespace gradflow::capi

using gradflow::capi::Call;
using gradflow::capi::CallOr;
using gradflow::capi::OrEmpty;

const char* TF_Version(void) { return gradflow::capi::kVersion; }

TF_Library* TF_LoadLibrary(const char* library_filename, TF_Status* status) {
  TF_Library* result = nullptr;
  Call(status, [&]() -> absl::Status {
    GRADFLOW_ASSIGN_OR_RETURN(std::unique_ptr<TF_Library> library,
                              gradflow::capi::Load(OrEmpty(library_filename)));
    result = library.release();
    return absl::OkStatus();
  });
  return result;
}

TF_Buffer TF_GetOpList(TF_Library* lib_handle) {
  return {lib_handle->op_list.data(), lib_handle->op_list.size(), nullptr};
}

void TF_DeleteLibraryHandle(TF_Library* lib_handle) { delete lib_handle; }

TF_Buffer* TF_GetAllOpList(void) {
  return CallOr<TF_Buffer*>(nullptr, [] {
    TF_Buffer* result = nullptr;
    gradflow::capi::NewBuffer(gradflow::capi::AllOps(), &result).IgnoreError();
    return result;
  });
}

TF_Buffer* TF_GetAllRegisteredKernels(TF_Status* status) {
  TF_Buffer* result = nullptr;
  Call(status, [&] { return gradflow::capi::FillKernels(nullptr, &result); });
  return result;
}

TF_Buffer* TF_GetRegisteredKernelsForOp(const char* name, TF_Status* status) {
  TF_Buffer* result = nullptr;
  Call(status, [&] { return gradflow::capi::FillKernels(OrEmpty(name), &result); });
  return result;
}

TF_Library* TF_LoadPluggableDeviceLibrary(const char*, TF_Status* status) {
  TF_SetStatus(status, TF_UNIMPLEMENTED, "gradflow has no plugins for devices");
  return nullptr;
}
void TF_DeletePluggableDeviceLibraryHandle(TF_Library* lib_handle) { delete lib_handle; }

void TF_RegisterFilesystemPlugin(const char*, TF_Status* status) {
  TF_SetStatus(status, TF_UNIMPLEMENTED, "gradflow has no plugins for file systems");
}
