#include "process/http_server.h"

#include <fmt/format.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <charconv>
#include <chrono>
#include <exception>
#include <optional>
#include <thread>
#include <utility>

#include "base/log.h"
#include "base/thread.h"

namespace rodeo::process {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;
using tcp = asio::ip::tcp;

constexpr std::chrono::seconds kPatience{10};
constexpr std::chrono::milliseconds kRetry{100};
constexpr std::uint32_t kLargestRequest = 16 * 1024;

Result<tcp::endpoint> endpoint_of(const std::string& listen) {
  const auto refuse = [&](const std::string& why) {
    return std::unexpected(Error{"process.http", fmt::format("cannot listen for HTTP at `{}`: {}", listen, why), "",
                                 "write an address and a port: 127.0.0.1:9464"});
  };
  const std::size_t colon = listen.rfind(':');
  if (colon == std::string::npos) return refuse("there is no port");
  std::string host = listen.substr(0, colon);
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  boost::system::error_code error;
  const auto address = asio::ip::make_address(host, error);
  if (error) return refuse("the host is not an IP address");
  unsigned short port = 0;
  const char* end = listen.data() + listen.size();
  const auto read = std::from_chars(listen.data() + colon + 1, end, port);
  if (read.ec != std::errc{} || read.ptr != end) return refuse("the port is not a number up to 65535");
  return tcp::endpoint{address, port};
}

/// One connection. Pending operations keep it alive.
class Session : public std::enable_shared_from_this<Session> {
 public:
  Session(tcp::socket socket, const HttpServer::Answer& answer) : stream_(std::move(socket)), answer_(answer) {}

  void read() {
    parser_.emplace();
    parser_->header_limit(kLargestRequest);
    parser_->body_limit(kLargestRequest);
    stream_.expires_after(kPatience);
    http::async_read(stream_, buffer_, *parser_, [self = shared_from_this()](beast::error_code error, std::size_t) {
      if (!error) self->reply();
    });
  }

 private:
  void reply() {
    const auto& request = parser_->get();
    HttpReply answer;
    const bool head = request.method() == http::verb::head;
    if (request.method() != http::verb::get && !head) {
      answer = {.status = 405, .content_type = "text/plain; charset=utf-8", .body = "only GET and HEAD\n"};
    } else {
      try {
        answer = answer_(std::string(request.target()));
      } catch (const std::exception& failure) {
        answer = {.status = 500, .content_type = "text/plain; charset=utf-8", .body = fmt::format("{}\n", failure.what())};
      }
    }
    response_ = {};
    response_.version(request.version());
    response_.result(answer.status);
    response_.set(http::field::content_type, answer.content_type);
    response_.keep_alive(request.keep_alive());
    if (answer.status == 405) response_.set(http::field::allow, "GET, HEAD");
    if (head) {
      response_.content_length(answer.body.size());  // the size of the answer to a GET
    } else {
      response_.body() = std::move(answer.body);
      response_.prepare_payload();
    }
    http::async_write(stream_, response_, [self = shared_from_this()](beast::error_code error, std::size_t) {
      if (!error && self->response_.keep_alive()) self->read();
    });
  }

  beast::tcp_stream stream_;
  const HttpServer::Answer& answer_;
  beast::flat_buffer buffer_{kLargestRequest};
  std::optional<http::request_parser<http::string_body>> parser_;
  http::response<http::string_body> response_;
};

}  // namespace

Result<void> HttpServer::check(const std::string& listen) {
  const auto endpoint = endpoint_of(listen);
  return endpoint ? Result<void>{} : std::unexpected(endpoint.error());
}

struct HttpServer::Impl {
  Impl(const std::string& listen, Answer given) : answer(std::move(given)), acceptor(context) {
    const auto parsed = endpoint_of(listen);
    if (!parsed) throw SetupError(parsed.error());
    const tcp::endpoint& endpoint = *parsed;
    try {
      acceptor.open(endpoint.protocol());
      acceptor.set_option(tcp::acceptor::reuse_address(true));
      acceptor.bind(endpoint);
      acceptor.listen();
    } catch (const boost::system::system_error& error) {
      throw SetupError({"process.http", fmt::format("cannot listen for HTTP at `{}`: {}", listen, error.code().message()),
                        "", "is another process listening there? port 0 takes a free one"});
    }
    accept();
    thread = std::thread([this] {
      base::set_thread_name("metrics");
      // An exception ends only its connection. A request for metrics must not end the readout.
      while (!context.stopped()) {
        try {
          context.run();
        } catch (const std::exception& ended) {
          base::log_debug("a connection for metrics ended: {}", ended.what());
        }
      }
    });
  }

  ~Impl() {
    context.stop();
    thread.join();
  }

  void accept() {
    acceptor.async_accept([this](beast::error_code error, tcp::socket socket) {
      if (error) return accept_later();
      std::make_shared<Session>(std::move(socket), answer)->read();
      accept();
    });
  }

  // Waits before the next try: without free descriptors the same error would return at once, without end.
  void accept_later() {
    retry.expires_after(kRetry);
    retry.async_wait([this](beast::error_code error) {
      if (!error && acceptor.is_open()) accept();
    });
  }

  Answer answer;
  asio::io_context context{1};
  tcp::acceptor acceptor;
  asio::steady_timer retry{context};
  std::thread thread;
};

HttpServer::HttpServer(const std::string& listen, Answer answer)
    : impl_(std::make_unique<Impl>(listen, std::move(answer))) {}
HttpServer::~HttpServer() = default;

std::string HttpServer::address() const {
  const tcp::endpoint endpoint = impl_->acceptor.local_endpoint();
  return endpoint.address().is_v6() ? fmt::format("[{}]:{}", endpoint.address().to_string(), endpoint.port())
                                    : fmt::format("{}:{}", endpoint.address().to_string(), endpoint.port());
}

}  // namespace rodeo::process
