// Replays all recordings in a folder.
//
//   replay FOLDER [THREADS]
//
// Prints a line for each recording that does not agree, and counts: the recordings that agree, that
// differ, and that need ops or kernels which gradflow lacks.
#include <cstdlib>
#include <iostream>
#include <string>

#include "tests/recordings/replay.h"

int main(int argc, char** argv) {
  if (argc < 2) {
    std::cerr << "usage: replay FOLDER [THREADS]\n";
    return 2;
  }
  const int threads = argc > 2 ? std::atoi(argv[2]) : 1;
  int agree = 0, differ = 0, lack = 0;
  for (const std::string& folder : gradflow::testing::FindRecordings(argv[1])) {
    const absl::Status status = gradflow::testing::ReplayRecording(folder, threads);
    if (status.ok()) {
      ++agree;
      continue;
    }
    const bool lacks = absl::IsNotFound(status) || absl::IsUnimplemented(status);
    ++(lacks ? lack : differ);
    std::cout << (lacks ? "LACKS " : "DIFFERS ") << folder << ": " << status.message() << "\n";
  }
  std::cout << agree << " agree, " << differ << " differ, " << lack << " lack ops\n";
  return differ == 0 ? 0 : 1;
}
