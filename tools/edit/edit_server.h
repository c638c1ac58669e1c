// EditServer: serves the page of `gradflow edit` on the loopback interface, and answers its calls.
//
// EditAccess decides from the head of a request whether the server knows the sender. Until then a
// connection costs a socket, a timer and the bytes of its head, and no thread. The number of such
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
  // How long a refused client may take to read its answer, how long the server reads on behind an
  // answer, and how long it waits for clients after Stop().
  double linger_seconds = 2;
  // Connections without an accepted request that may be open.
  size_t max_waiting = 256;
  // Accepted calls that may be in progress. Further calls get status 503.
  size_t max_calls = 32;
};

// Counts of a server since its start, for tests.
struct EditServerCounts {
  size_t connections = 0;
  // Requests that were refused.
  size_t refused = 0;
  // Connections that were closed because they took too long, or to make room for others.
  size_t timed_out = 0;
  size_t displaced = 0;
  // Failures to accept a connection, such as by a lack of file descriptors.
  size_t accept_failures = 0;
  // Connections without an accepted request: now, and the most at a time.
  size_t waiting = 0;
  size_t most_waiting = 0;
  // The memory of all heads and of all bodies, in bytes.
  size_t heads_bytes = 0;
  size_t bodies_bytes = 0;
  // The most bytes of memory that one head, all heads together, and all bodies together have held.
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
  // Ends calls in progress, which still get their answers. May be called at any time.
  void Stop();

  // Returns the counts at this time. May be called at any time.
  EditServerCounts Counts() const;

 private:
  class Impl;
  explicit EditServer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace gradflow::tools

#endif  // GRADFLOW_TOOLS_EDIT_EDIT_SERVER_H_
