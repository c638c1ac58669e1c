// The fuzz target for requests to the server of `gradflow edit`; see fuzz_targets.h.
#ifndef GRADFLOW_TESTS_TESTING_HTTP_FUZZ_TARGET_H_
#define GRADFLOW_TESTS_TESTING_HTTP_FUZZ_TARGET_H_

#include <string>

#include "absl/strings/string_view.h"
#include "tests/testing/mutate.h"

namespace gradflow::testing {

// The input is the head of a request and the bytes after it. The server has port 8080. All digits
// of its token are 1, of its cookie 2, and of its key 3.
void RunHttpHead(absl::string_view bytes);
bool MutateHttpHead(MutationRandom* random, std::string* bytes);

}  // namespace gradflow::testing

#endif  // GRADFLOW_TESTS_TESTING_HTTP_FUZZ_TARGET_H_
