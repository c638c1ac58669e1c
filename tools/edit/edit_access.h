// EditAccess: decides from the head of a request who may use the server of `gradflow edit`.
//
// Other programs and other pages of the same machine can send requests to the server. Each request
// must name the server as its host, and must come from the server's page. A token, which only the
// user who started the server knows, opens the page once. With the page, the server then sends a
// secret cookie and a secret key. Later, the cookie alone opens the page, but without the graph and
// without the key, because browsers send the cookie to all ports of the host. Calls have the key in
// the header `X-Gradflow-Key`. A body has a stated length, no encoding, and is JSON.
#ifndef GRADFLOW_TOOLS_EDIT_EDIT_ACCESS_H_
#define GRADFLOW_TOOLS_EDIT_EDIT_ACCESS_H_

#include <cstddef>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "tools/edit/http_head.h"

namespace gradflow::tools {

// Secrets, as hexadecimal digits. All have the same length.
struct EditSecrets {
  std::string token;
  std::string cookie;
  std::string key;

  // Returns random secrets. UNAVAILABLE if the system has no random numbers.
  static absl::StatusOr<EditSecrets> Make();
};

// The decision on a request.
struct EditRequest {
  enum class Kind {
    // The request is refused; see `refusal`.
    kRefused,
    // The sender may read the page without the key.
    kPage,
    // The sender may read the page, and receives the cookie and the key.
    kFirstPage,
    // The sender may call the server.
    kCall,
  };
  Kind kind = Kind::kRefused;
  HttpRefusal refusal;
  // For a call: the name, which is not checked, and the number of bytes of the body.
  std::string call;
  size_t body_bytes = 0;
  // The sender waits for "100 Continue" before it sends the body.
  bool expects_continue = false;
};

// Thread safety: none.
class EditAccess {
 public:
  EditAccess(EditSecrets secrets, int port, size_t max_body_bytes);

  // Decides on a request from its complete head. Only the first request with the token is accepted.
  EditRequest Check(absl::string_view head);

  // Returns "http://127.0.0.1:PORT".
  const std::string& origin() const { return origin_; }
  // Returns the address that opens the page once.
  std::string Url() const;
  const std::string& key() const { return secrets_.key; }
  // Returns the value of the header "Set-Cookie".
  std::string SetCookie() const;

 private:
  // Returns the refusal of a request that is not from the page. Otherwise `code` is 0.
  HttpRefusal CheckSender(const HttpHead& head, size_t* body_bytes) const;
  bool HasCookie(const HttpHead& head) const;
  EditRequest CheckPage(const HttpHead& head);
  EditRequest CheckCall(const HttpHead& head, size_t body_bytes) const;

  const EditSecrets secrets_;
  const size_t max_body_bytes_;
  const std::string origin_;
  const std::string cookie_name_;
  bool is_token_used_ = false;
};

}  // namespace gradflow::tools

#endif  // GRADFLOW_TOOLS_EDIT_EDIT_ACCESS_H_
