// Plugins: shared libraries of ops and kernels, loaded at run time.
//
//   // zero_out.cc, built by gradflow_add_plugin(zero_out zero_out.cc)
//   void RegisterZeroOut(gradflow::Registry& registry) { registry.Op("ZeroOut")...; }
//   GRADFLOW_PLUGIN(RegisterZeroOut)
//
// A library that uses REGISTER_OP and REGISTER_KERNEL_BUILDER of TensorFlow's headers is also a
// plugin (docs/tensorflow.md).
//
//   // A program; or on the command line, `gradflow run --plugin zero_out.so ...`.
//   absl::Status status = gradflow::LoadLibrary("zero_out.so");
//
// Security: loading a plugin runs its code. Load only plugins from trusted sources.
#ifndef GRADFLOW_IO_PLUGIN_H_
#define GRADFLOW_IO_PLUGIN_H_

#include <cstdint>
#include <functional>
#include <string>

#include "absl/status/status.h"
#include "gradflow/core/registry.h"
#include "gradflow/core/version.h"

// Makes the shared library that this file is compiled into a plugin. `register_ops` is a
// void(gradflow::Registry&) that registers its ops and kernels. Must be used once per library, at
// global scope.
#define GRADFLOW_PLUGIN(register_ops)                                                         \
  extern "C" {                                                                                \
  extern const ::gradflow::PluginInfo gradflow_plugin __attribute__((visibility("default"))); \
  const ::gradflow::PluginInfo gradflow_plugin = {::gradflow::PluginInfo::kMagic,             \
                                                  GRADFLOW_VERSION_STRING, register_ops};     \
  }

#pragma GCC visibility push(default)
namespace gradflow {

// The descriptor of a plugin, defined by GRADFLOW_PLUGIN.
struct PluginInfo {
  // "gradflow"
  static constexpr uint64_t kMagic = 0x776f6c6664617267;
  uint64_t magic;
  // The gradflow version that the plugin was compiled with. Major and minor must match the
  // program's.
  char version[16];
  void (*register_ops)(Registry& registry);
};

// Loads the plugin in file `path` and registers its ops and kernels with GlobalRegistry(). On
// error, registers nothing. The plugin is never unloaded. Does nothing if the plugin is already
// loaded.
//
// Returns NOT_FOUND if the file does not exist; INVALID_ARGUMENT if it is not a shared library or
// not a plugin; FAILED_PRECONDITION if it was built for another version of gradflow or depends on a
// missing library; ALREADY_EXISTS if one of its ops is already registered. Errors name the file.
//
// Thread-safe.
absl::Status LoadLibrary(const std::string& path);
// Overload that registers the ops and kernels with `registry`, on every call.
absl::Status LoadLibrary(const std::string& path, Registry& registry);

namespace internal {

// Registers an op or a kernel.
using PluginRegistration = std::function<void(Registry& registry)>;

// For static initializers that register ops and kernels. If this thread is loading a plugin, keeps
// the registration for LoadLibrary and returns true. LoadLibrary registers kernels after all ops.
// Otherwise returns false.
bool AddOpToPlugin(PluginRegistration registration);
bool AddKernelToPlugin(PluginRegistration registration);

}  // namespace internal
}  // namespace gradflow
#pragma GCC visibility pop

#endif  // GRADFLOW_IO_PLUGIN_H_
