// An HTTP client for servers on the loopback interface, for tests. It can send any bytes, including
// malformed requests.
#ifndef GRADFLOW_TESTS_TESTING_HTTP_CLIENT_H_
#define GRADFLOW_TESTS_TESTING_HTTP_CLIENT_H_

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"

namespace gradflow {
namespace testing {

using HttpFields = std::vector<std::pair<std::string, std::string>>;

struct HttpAnswer {
  // 0 if there was no answer.
  int status = 0;
  HttpFields fields;
  std::string body;

  // Returns the value of the first field with this name, ignoring case, or "" if there is none.
  std::string Field(absl::string_view name) const;
};

// A connection to a port of 127.0.0.1. Fails the test if there is no server.
class HttpConnection {
 public:
  // A small receive buffer makes the server wait for this reader. 0 means the default of the
  // system.
  explicit HttpConnection(int port, int receive_buffer_bytes = 0);
  HttpConnection(const HttpConnection&) = delete;
  HttpConnection& operator=(const HttpConnection&) = delete;
  ~HttpConnection();

  // Returns false if the server has closed the connection.
  bool Send(absl::string_view bytes) const;
  void EndSending() const;
  // Returns the next `size` bytes of the server, or fewer if the server closes the connection.
  std::string Receive(size_t size) const;
  // Returns all further bytes until the server closes the connection.
  std::string ReceiveAll() const;

 private:
  int socket_;
};

// Returns a request. Adds the field "Host" unless `fields` has it. For methods other than GET, also
// adds "Content-Length" unless `fields` has it.
std::string HttpRequestText(int port, absl::string_view method, absl::string_view target,
                            const HttpFields& fields, absl::string_view body = "");

// Parses the bytes that a server sent for one request.
HttpAnswer ParseHttpAnswer(absl::string_view text);

// Sends the request of HttpRequestText() and returns the answer.
HttpAnswer FetchHttp(int port, absl::string_view method, absl::string_view target,
                     const HttpFields& fields = {}, absl::string_view body = "");

}  // namespace testing
}  // namespace gradflow

#endif  // GRADFLOW_TESTS_TESTING_HTTP_CLIENT_H_
