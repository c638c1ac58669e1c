#include "gradflow/io/plugin.h"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>

#include <cstring>
#include <exception>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "gradflow/core/mutex.h"
#include "gradflow/core/status.h"
#include "gradflow/io/file.h"

namespace gradflow {
namespace {

// Returns an error unless every segment that the file's headers declare lies within the file. The
// dynamic linker maps segments unchecked, and accessing pages past the end of the file is fatal.
absl::Status CheckSharedLibrary(const std::string& path) {
  size_t size;
  GRADFLOW_ASSIGN_OR_RETURN(const internal::FileDescriptor file, internal::OpenFile(path, &size));
  ElfW(Ehdr) header;
  if (size < sizeof(header)) return errors::InvalidArgument("expected a shared library");
  GRADFLOW_RETURN_IF_ERROR(
      internal::ReadAt(file.get(), 0, reinterpret_cast<char*>(&header), sizeof(header)));
  if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_type != ET_DYN) {
    return errors::InvalidArgument("expected a shared library");
  }
  for (int i = 0; i < header.e_phnum; ++i) {
    const size_t offset = header.e_phoff + i * sizeof(ElfW(Phdr));
    ElfW(Phdr) segment;
    if (offset > size || size - offset < sizeof(segment)) {
      return errors::InvalidArgument("the shared library is truncated");
    }
    GRADFLOW_RETURN_IF_ERROR(
        internal::ReadAt(file.get(), offset, reinterpret_cast<char*>(&segment), sizeof(segment)));
    if (segment.p_type != PT_LOAD) continue;
    if (segment.p_offset > size || size - segment.p_offset < segment.p_filesz) {
      return errors::InvalidArgument("the shared library is truncated");
    }
  }
  return absl::OkStatus();
}

// The registrations of a library's static initializers.
struct Registrations {
  std::vector<internal::PluginRegistration> ops;
  std::vector<internal::PluginRegistration> kernels;
};

// The registrations of the library that this thread is loading; null if it loads no library.
thread_local Registrations* loading = nullptr;

// A library that has been opened.
struct Plugin {
  // Null if the library has only static initializers.
  const PluginInfo* info = nullptr;
  // Null if the library has no static initializers.
  const Registrations* registrations = nullptr;
};

// The libraries with static initializers. Initializers run only once. Never destroyed, because the
// libraries are never closed.
struct Initialized {
  // Recursive: an initializer may load another plugin.
  std::recursive_mutex mutex;
  absl::flat_hash_map<void*, std::unique_ptr<const Registrations>> libraries;
};

// Opens the library and stores the registrations of its static initializers.
absl::Status Open(const std::string& file, void** handle, const Registrations** registrations) {
  static Initialized& initialized = *new Initialized;
  auto found = std::make_unique<Registrations>();
  // Held while the initializers run: another thread that opens the library waits for them.
  const std::lock_guard<std::recursive_mutex> lock(initialized.mutex);
  Registrations* const outer = std::exchange(loading, found.get());
  *handle = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  loading = outer;
  if (*handle == nullptr) return errors::FailedPrecondition("cannot be loaded: ", dlerror());
  if (!found->ops.empty() || !found->kernels.empty()) {
    initialized.libraries.try_emplace(*handle, std::move(found));
  }
  const auto it = initialized.libraries.find(*handle);
  *registrations = it == initialized.libraries.end() ? nullptr : it->second.get();
  return absl::OkStatus();
}

// Returns the descriptor of the library if it is a plugin for this version.
absl::StatusOr<const PluginInfo*> FindPluginInfo(void* library) {
  void* const symbol = dlsym(library, "gradflow_plugin");
  Dl_info unused;
  const ElfW(Sym)* entry = nullptr;
  if (symbol == nullptr ||
      dladdr1(symbol, &unused, reinterpret_cast<void**>(const_cast<ElfW(Sym)**>(&entry)),
              RTLD_DL_SYMENT) == 0 ||
      entry == nullptr || ELF64_ST_TYPE(entry->st_info) != STT_OBJECT ||
      entry->st_size < sizeof(PluginInfo) ||
      static_cast<const PluginInfo*>(symbol)->magic != PluginInfo::kMagic) {
    return errors::InvalidArgument(
        "the shared library is not a gradflow plugin: it uses neither GRADFLOW_PLUGIN "
        "nor REGISTER_OP");
  }
  const auto* info = static_cast<const PluginInfo*>(symbol);
  const std::string version(info->version, strnlen(info->version, sizeof(info->version)));
  const std::string interface =
      absl::StrCat(GRADFLOW_VERSION_MAJOR, ".", GRADFLOW_VERSION_MINOR, ".");
  if (version.compare(0, interface.size(), interface) != 0) {
    return errors::FailedPrecondition("the plugin was compiled with gradflow ",
                                      absl::CEscape(version), ", expected ", interface, "x");
  }
  if (info->register_ops == nullptr) {
    return errors::InvalidArgument("the plugin has no function that registers its ops");
  }
  return info;
}

// Opens a library and never closes it, because sessions may use its kernels until the process ends.
// The same library has the same *handle.
absl::StatusOr<Plugin> OpenPlugin(const std::string& path, void** handle) {
  GRADFLOW_RETURN_IF_ERROR(CheckSharedLibrary(path));
  // Without a slash, dlopen would search the library path.
  const std::string file = path.find('/') == std::string::npos ? absl::StrCat("./", path) : path;
  Plugin plugin;
  GRADFLOW_RETURN_IF_ERROR(Open(file, handle, &plugin.registrations));
  if (plugin.registrations == nullptr || dlsym(*handle, "gradflow_plugin") != nullptr) {
    GRADFLOW_ASSIGN_OR_RETURN(plugin.info, FindPluginInfo(*handle));
  }
  return plugin;
}

absl::Status RegisterPlugin(const Plugin& plugin, Registry& registry) {
  const auto add = [&plugin](Registry& additions) {
    if (plugin.info != nullptr) plugin.info->register_ops(additions);
    if (plugin.registrations == nullptr) return;
    for (const auto& op : plugin.registrations->ops) op(additions);
    for (const auto& kernel : plugin.registrations->kernels) kernel(additions);
  };
  try {
    return registry.RegisterAllOrNothing(add);
  } catch (const std::exception& e) {
    return errors::Internal("the plugin threw an exception: ", e.what());
  } catch (...) {
    return errors::Internal("the plugin threw an exception");
  }
}

// Plugins loaded into the global registry. Never destroyed, like the registry.
struct Loaded {
  Mutex mutex;
  absl::flat_hash_set<void*> handles ABSL_GUARDED_BY(mutex);
};

absl::Status LoadOnce(const std::string& path) {
  static Loaded& loaded = *new Loaded;
  void* handle;
  GRADFLOW_ASSIGN_OR_RETURN(const Plugin plugin, OpenPlugin(path, &handle));
  MutexLock lock(&loaded.mutex);
  if (loaded.handles.contains(handle)) return absl::OkStatus();
  GRADFLOW_RETURN_IF_ERROR(RegisterPlugin(plugin, GlobalRegistry()));
  loaded.handles.insert(handle);
  return absl::OkStatus();
}

absl::Status Load(const std::string& path, Registry& registry) {
  void* handle;
  GRADFLOW_ASSIGN_OR_RETURN(const Plugin plugin, OpenPlugin(path, &handle));
  return RegisterPlugin(plugin, registry);
}

std::string FileError(const std::string& path) {
  return absl::StrCat("plugin '", absl::CEscape(path), "': ");
}

}  // namespace

namespace internal {

bool AddOpToPlugin(PluginRegistration registration) {
  if (loading == nullptr) return false;
  loading->ops.push_back(std::move(registration));
  return true;
}

bool AddKernelToPlugin(PluginRegistration registration) {
  if (loading == nullptr) return false;
  loading->kernels.push_back(std::move(registration));
  return true;
}

}  // namespace internal

absl::Status LoadLibrary(const std::string& path) {
  return errors::Prefix(FileError(path), LoadOnce(path));
}

absl::Status LoadLibrary(const std::string& path, Registry& registry) {
  return errors::Prefix(FileError(path), Load(path, registry));
}

}  // namespace gradflow
