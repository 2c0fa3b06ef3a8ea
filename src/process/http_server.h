// A small HTTP server for metrics: one thread, GET and HEAD, the answer computed when it is asked for. The HTTP library is included by
// http_server.cpp alone.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "base/error.h"

namespace rodeo::process {

struct HttpReply {
  unsigned status = 200;
  std::string content_type = "text/plain; charset=utf-8";
  std::string body;
};

class HttpServer {
 public:
  /// Called on the server's thread, one at a time, with the path and query of a request.
  using Answer = std::function<HttpReply(const std::string& target)>;

  /// Whether that is an address and a port; error process.http.
  static Result<void> check(const std::string& listen);

  /// Listens at "ADDRESS:PORT" (port 0: one that is free) and answers until destroyed. Throws SetupError: process.http.
  HttpServer(const std::string& listen, Answer answer);
  ~HttpServer();

  /// Where it listens: "127.0.0.1:9464".
  std::string address() const;

 private:
  struct Machinery;
  std::unique_ptr<Machinery> machinery_;
};

}  // namespace rodeo::process
