// Device lists, and servers of clusters, which do not exist here.
#include <cstdint>
#include <string>
#include <vector>

#include "gradflow/c/session.h"
#include "gradflow/c/status.h"

namespace gradflow::capi {
namespace {

// The only device. The memory is what TensorFlow reports for it; nothing depends on it.
constexpr char kName[] = "/job:localhost/replica:0/task:0/device:CPU:0";
constexpr char kType[] = "CPU";
constexpr int64_t kMemoryBytes = int64_t{256} << 20;
// Identifies the device of this process; never 0.
constexpr uint64_t kIncarnation = 1;

constexpr char kNoServers[] = "gradflow has no servers: it runs in one process";

}  // namespace
}  // namespace gradflow::capi

struct TF_DeviceList {
  int count = 1;
};

namespace gradflow::capi {

TF_DeviceList* NewDeviceList() {
  return CallOr<TF_DeviceList*>(nullptr, [] { return new TF_DeviceList; });
}

namespace {

// Returns the property of device `index`, or `otherwise` and an error.
template <typename T>
T DeviceProperty(const TF_DeviceList* list, int index, T property, T otherwise, TF_Status* status) {
  const bool ok = Call(status, [&]() -> absl::Status {
    if (index >= 0 && index < list->count) return absl::OkStatus();
    return errors::InvalidArgument("device ", index, " does not exist; there are ", list->count);
  });
  return ok ? property : otherwise;
}

}  // namespace
}  // namespace gradflow::capi

using gradflow::capi::DeviceProperty;

void TF_DeleteDeviceList(TF_DeviceList* list) { delete list; }
int TF_DeviceListCount(const TF_DeviceList* list) { return list->count; }

const char* TF_DeviceListName(const TF_DeviceList* list, int index, TF_Status* status) {
  return DeviceProperty<const char*>(list, index, gradflow::capi::kName, nullptr, status);
}
const char* TF_DeviceListType(const TF_DeviceList* list, int index, TF_Status* status) {
  return DeviceProperty<const char*>(list, index, gradflow::capi::kType, nullptr, status);
}
int64_t TF_DeviceListMemoryBytes(const TF_DeviceList* list, int index, TF_Status* status) {
  return DeviceProperty<int64_t>(list, index, gradflow::capi::kMemoryBytes, -1, status);
}
uint64_t TF_DeviceListIncarnation(const TF_DeviceList* list, int index, TF_Status* status) {
  return DeviceProperty<uint64_t>(list, index, gradflow::capi::kIncarnation, 0, status);
}

// ---- Servers ----

TF_Server* TF_NewServer(const void*, size_t, TF_Status* status) {
  TF_SetStatus(status, TF_UNIMPLEMENTED, gradflow::capi::kNoServers);
  return nullptr;
}
void TF_ServerStart(TF_Server*, TF_Status* status) {
  TF_SetStatus(status, TF_UNIMPLEMENTED, gradflow::capi::kNoServers);
}
void TF_ServerStop(TF_Server*, TF_Status* status) {
  TF_SetStatus(status, TF_UNIMPLEMENTED, gradflow::capi::kNoServers);
}
void TF_ServerJoin(TF_Server*, TF_Status* status) {
  TF_SetStatus(status, TF_UNIMPLEMENTED, gradflow::capi::kNoServers);
}
const char* TF_ServerTarget(TF_Server*) { return ""; }
void TF_DeleteServer(TF_Server*) {}
