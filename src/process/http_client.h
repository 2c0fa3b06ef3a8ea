// One HTTP GET, with a time-out. The HTTP library is included by http_client.cpp and http_server.cpp alone.
#pragma once

#include <chrono>
#include <string>

#include "base/error.h"

namespace rodeo::process {

struct HttpAnswer {
  unsigned status = 0;
  std::string body;
};

/// "http://HOST[:PORT]/PATH?QUERY", already encoded. Blocks up to `patience`. Bodies of more than 64 MiB are refused.
/// Errors: process.http_client (no such address, no answer in time, no HTTP); any status is an answer.
Result<HttpAnswer> http_get(const std::string& url, std::chrono::milliseconds patience);

/// For the value of a query: everything but letters, digits and -._~ as %XX (RFC 3986).
std::string percent_encoded(std::string_view text);

}  // namespace rodeo::process
