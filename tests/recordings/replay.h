// Replays recordings: graphs of TensorFlow with the values that TensorFlow computed.
//
// A recording is a folder with graph.pb, steps.json and the .npy files of the steps. Each step is a
// run of one session. tests/interop/recordings.py describes the files, and record_tests.py of the
// same folder writes them.
#ifndef GRADFLOW_TESTS_RECORDINGS_REPLAY_H_
#define GRADFLOW_TESTS_RECORDINGS_REPLAY_H_

#include <string>
#include <vector>

#include "absl/status/status.h"

namespace gradflow::testing {

// Returns the recordings in a folder, at any depth, sorted by name.
std::vector<std::string> FindRecordings(const std::string& folder);

// Runs all steps of a recording on `threads` threads. Returns the first difference or error, with
// the number of its step. Elements of floating-point types may differ by 1e-5 of the largest
// element of their tensor. Returns NOT_FOUND if an op of the graph is not registered, and
// UNIMPLEMENTED if an op lacks a kernel; all other differences and errors are INTERNAL.
absl::Status ReplayRecording(const std::string& folder, int threads);

}  // namespace gradflow::testing

#endif  // GRADFLOW_TESTS_RECORDINGS_REPLAY_H_
