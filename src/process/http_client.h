// One HTTP GET, with a time-out. Only http_client.cpp and http_server.cpp include the HTTP library.
#pragma once

#include <chrono>
#include <string>

#include "base/error.h"

namespace rodeo::process {

struct HttpAnswer {
  unsigned status = 0;
  std::string body;
};

/// `url`: "http://HOST[:PORT]/PATH?QUERY", already encoded. Blocks up to `patience`. Refuses bodies of more than 64 MiB.
/// Errors: process.http_client (bad address, no answer in time, not HTTP). An answer with any status is a success.
Result<HttpAnswer> http_get(const std::string& url, std::chrono::milliseconds patience);

/// Encodes the value of a query: all characters but letters, digits and -._~ become %XX (RFC 3986).
std::string percent_encoded(std::string_view text);

}  // namespace rodeo::process
