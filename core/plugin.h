// Plugins: ops and kernels in shared libraries that a program loads while it runs.
//
//   // zero_out.cc, built by gradflow_add_plugin(zero_out SRCS zero_out.cc)
//   void RegisterZeroOut(gradflow::Registry& registry) { registry.Op("ZeroOut")...; }
//   GRADFLOW_PLUGIN(RegisterZeroOut)
//
//   // A program; or on the command line, `gradflow run --plugin zero_out.so ...`.
//   absl::Status status = gradflow::LoadLibrary("zero_out.so");
//
// Loading a library runs its code: load only those that you trust.
#ifndef GRADFLOW_CORE_PLUGIN_H_
#define GRADFLOW_CORE_PLUGIN_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "gradflow/core/registry.h"
#include "gradflow/core/version.h"

// Makes the shared library that is compiled from this file a plugin. `register_ops` is a
// void(gradflow::Registry&) that registers its ops and kernels. To be used once in a library,
// outside of any namespace.
#define GRADFLOW_PLUGIN(register_ops)                                                         \
  extern "C" {                                                                                \
  extern const ::gradflow::PluginInfo gradflow_plugin __attribute__((visibility("default"))); \
  const ::gradflow::PluginInfo gradflow_plugin = {::gradflow::PluginInfo::kMagic,             \
                                                  GRADFLOW_VERSION_STRING, register_ops};     \
  }

#pragma GCC visibility push(default)
namespace gradflow {

// What a plugin says of itself; GRADFLOW_PLUGIN makes it.
struct PluginInfo {
  // "gradflow"
  static constexpr uint64_t kMagic = 0x776f6c6664617267;
  uint64_t magic;
  // Of the headers that the plugin was compiled with; its interface is that of major and minor.
  char version[16];
  void (*register_ops)(Registry& registry);
};

// Loads the plugin in file `path`, registers its ops and kernels, and keeps it loaded. It registers
// all of them or, if any has a fault, none. A plugin that is loaded already stays as it is. Thread-
// safe.
//
// NOT_FOUND without such a file; INVALID_ARGUMENT for one that is no shared library, or no plugin;
// FAILED_PRECONDITION for a plugin of another version of gradflow, or that lacks other libraries;
// ALREADY_EXISTS for an op that is registered already. Errors name the file.
absl::Status LoadLibrary(const std::string& path);
// The same for a registry of one's own, to which each call adds anew.
absl::Status LoadLibrary(const std::string& path, Registry& registry);

}  // namespace gradflow
#pragma GCC visibility pop

#endif  // GRADFLOW_CORE_PLUGIN_H_
