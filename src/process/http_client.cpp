#include "process/http_client.h"

#include <fmt/format.h>

#include <boost/asio/connect.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <optional>

namespace rodeo::process {

namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;
using tcp = asio::ip::tcp;

constexpr std::uint64_t kLargestBody = 64 << 20;

struct Address {
  std::string host;
  std::string port = "80";
  std::string target = "/";
};

std::optional<Address> parse(const std::string& url) {
  constexpr std::string_view kScheme = "http://";
  if (!url.starts_with(kScheme)) return std::nullopt;
  Address address;
  const std::size_t slash = std::min(url.find_first_of("/?", kScheme.size()), url.size());
  address.host = url.substr(kScheme.size(), slash - kScheme.size());
  if (slash < url.size()) address.target = (url[slash] == '?' ? "/" : "") + url.substr(slash);
  const std::size_t colon = address.host.rfind(':');
  if (colon != std::string::npos && address.host.find(']', colon) == std::string::npos) {
    address.port = address.host.substr(colon + 1);
    address.host.resize(colon);
  }
  if (address.host.starts_with('[') && address.host.ends_with(']'))
    address.host = address.host.substr(1, address.host.size() - 2);
  if (address.host.empty() || address.port.empty()) return std::nullopt;
  return address;
}

}  // namespace

Result<HttpAnswer> http_get(const std::string& url, std::chrono::milliseconds patience) {
  const auto failed = [&](const std::string& why) {
    return std::unexpected(Error{"process.http_client", fmt::format("cannot get {}: {}", url, why), "",
                                 "check address and port, for example http://monitor:9090"});
  };
  const auto address = parse(url);
  if (!address) return failed("the address is not of the form http://HOST:PORT/PATH");
  asio::io_context context;
  beast::error_code error;
  const auto places = tcp::resolver(context).resolve(address->host, address->port, error);
  if (error) return failed(error.message());

  beast::tcp_stream stream(context);
  http::request<http::empty_body> request(http::verb::get, address->target, 11);
  request.set(http::field::host, address->host);
  request.set(http::field::connection, "close");
  beast::flat_buffer buffer;
  http::response_parser<http::string_body> parser;
  parser.body_limit(kLargestBody);
  stream.expires_after(patience);  // limits connecting, sending and reading together; affects asynchronous calls only
  stream.async_connect(places, [&](beast::error_code connected, const tcp::endpoint&) {
    error = connected;
    if (error) return;
    http::async_write(stream, request, [&](beast::error_code written, std::size_t) {
      error = written;
      if (error) return;
      http::async_read(stream, buffer, parser, [&](beast::error_code read, std::size_t) { error = read; });
    });
  });
  context.run();
  if (error) return failed(error.message());
  return HttpAnswer{.status = parser.get().result_int(), .body = std::move(parser.get().body())};
}

std::string percent_encoded(std::string_view text) {
  constexpr std::string_view kPlain = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~";
  std::string encoded;
  for (const char c : text) {
    if (kPlain.find(c) != std::string_view::npos)
      encoded += c;
    else
      encoded += fmt::format("%{:02X}", static_cast<unsigned char>(c));
  }
  return encoded;
}

}  // namespace rodeo::process
