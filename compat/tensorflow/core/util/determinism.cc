#include "tensorflow/core/util/determinism.h"

#include <atomic>

#include "tensorflow/core/util/env_var.h"

namespace tensorflow {
namespace {

std::atomic<bool>& Required() {
  static std::atomic<bool>& required = *[] {
    bool value;
    ReadBoolFromEnvVar("TF_DETERMINISTIC_OPS", false, &value).IgnoreError();
    return new std::atomic<bool>(value);
  }();
  return required;
}

}  // namespace

bool OpDeterminismRequired() { return Required(); }

bool OpOrderDeterminismRequired() { return Required(); }

void EnableOpDeterminism(bool enabled) { Required() = enabled; }

}  // namespace tensorflow
