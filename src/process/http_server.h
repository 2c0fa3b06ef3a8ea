// A small HTTP server for metrics: one thread, GET and HEAD. It computes an answer at each request. Only http_server.cpp
// and http_client.cpp include the HTTP library.
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
  /// The server's thread calls it with the path and query of a request, one request at a time.
  using Answer = std::function<HttpReply(const std::string& target)>;

  /// Checks that `listen` is an address and a port. Error process.http.
  static Result<void> check(const std::string& listen);

  /// Listens at "ADDRESS:PORT" (port 0: any free port) and answers until destroyed. Throws SetupError: process.http.
  HttpServer(const std::string& listen, Answer answer);
  ~HttpServer();

  /// The address and port of the server: "127.0.0.1:9464".
  std::string address() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace rodeo::process
