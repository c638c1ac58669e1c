// EditServer: serves the page of `gradflow edit` on the loopback interface, and answers its calls.
//
// EditAccess decides from the head of a request whether the server knows the sender. Until then, a
// connection needs a socket, a timer and the bytes of its head, but no thread. The number of such
// connections is limited: a further connection closes the oldest of them. Each connection serves a
// single request.
#ifndef GRADFLOW_TOOLS_EDIT_EDIT_SERVER_H_
#define GRADFLOW_TOOLS_EDIT_EDIT_SERVER_H_

#include <cstddef>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tools/edit/edit_api.h"

namespace gradflow::tools {

struct EditServerOptions {
  // 0 for any free port.
  int port = 0;
  size_t max_body_bytes = size_t{64} << 20;
  // Time limit of the head of a request, from the start of the connection.
  double head_timeout_seconds = 5;
  // Time limit of the body of an accepted call, from the end of its head.
  double body_timeout_seconds = 60;
  // Time limit of a client that reads a page or the answer of a call.
  double answer_timeout_seconds = 60;
  // Time limit for a refused client to read its answer, for the server to read the rest of a
  // request after an answer, and for clients to receive answers after Stop().
  double linger_seconds = 2;
  // The maximum number of open connections without an accepted request.
  size_t max_waiting = 256;
  // The maximum number of accepted calls in progress. Further calls get status 503.
  size_t max_calls = 32;
};

// Counts of a server since its start, for tests.
struct EditServerCounts {
  size_t connections = 0;
  // Refused requests.
  size_t refused = 0;
  // Connections that were closed because they took too long.
  size_t timed_out = 0;
  // Connections that were closed to make room for other connections.
  size_t displaced = 0;
  // Failures to accept a connection, for example because file descriptors ran out.
  size_t accept_failures = 0;
  // Connections without an accepted request: the current number, and the maximum.
  size_t waiting = 0;
  size_t most_waiting = 0;
  // The current memory of all heads and of all bodies, in bytes.
  size_t heads_bytes = 0;
  size_t bodies_bytes = 0;
  // The maximum memory of one head, of all heads together, and of all bodies together, in bytes.
  size_t most_head_bytes = 0;
  size_t most_heads_bytes = 0;
  size_t most_bodies_bytes = 0;
};

class EditServer {
 public:
  // Binds the port. Borrows `api`. UNAVAILABLE if the port is taken.
  static absl::StatusOr<std::unique_ptr<EditServer>> Make(EditApi* api,
                                                          const EditServerOptions& options);
  ~EditServer();
  EditServer(const EditServer&) = delete;
  EditServer& operator=(const EditServer&) = delete;

  // Returns "http://127.0.0.1:PORT/?token=TOKEN", which opens the page once.
  std::string Url() const;
  // Returns the address without the token: "http://127.0.0.1:40123".
  const std::string& Origin() const;
  int port() const;

  // Serves until Stop() is called, on another thread. May be called once.
  absl::Status Serve();
  // Ends calls in progress; they still get their answers. May be called at any time.
  void Stop();

  // Returns the current counts. May be called at any time.
  EditServerCounts Counts() const;

 private:
  class Impl;
  explicit EditServer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace gradflow::tools

#endif  // GRADFLOW_TOOLS_EDIT_EDIT_SERVER_H_
