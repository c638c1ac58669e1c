// EditServer: serves the page of `gradflow edit` on the loopback interface, and answers its calls.
//
// Other programs and other pages of the same machine can send requests too. Each request must name
// this server as its host, and come from its own page: the page is given out once, for a token that
// only the one who started the server knows, and gets a secret cookie and a secret key with it. The
// cookie is good for the page without data, and no more, since browsers send it to all ports of the
// host. Calls have the key in the header `X-Gradflow-Key`. Bodies have a stated length, at most
// `max_body_bytes`, no encoding, and are JSON.
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
  // How long the head of a request may take, which tells whether it is the page's.
  int head_timeout_seconds = 5;
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

  // Serves until Stop() is called, on another thread.
  absl::Status Serve();
  void Stop();

 private:
  struct Impl;
  explicit EditServer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace gradflow::tools

#endif  // GRADFLOW_TOOLS_EDIT_EDIT_SERVER_H_
