#include "gradflow/testing/status_matchers.h"

namespace gradflow {
namespace testing {

bool StatusMatcher::MatchAndExplain(const absl::Status& status, std::ostream* os) const {
  // GoogleTest passes null if it needs no explanation.
  if (os != nullptr) *os << "whose status is " << status;
  return status.code() == code_ &&
         (!message_.has_value() || message_->Matches(std::string(status.message())));
}

void StatusMatcher::Describe(const char* is, const char* has, std::ostream* os) const {
  if (code_ == absl::StatusCode::kOk) {
    *os << is << " OK";
  } else {
    *os << has << " the code " << absl::StatusCodeToString(code_);
  }
  if (!message_.has_value()) return;
  *os << " with a message that ";
  message_->DescribeTo(os);
}

}  // namespace testing
}  // namespace gradflow
