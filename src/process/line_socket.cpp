#include "process/line_socket.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <exception>
#include <fstream>
#include <span>

#include "base/lock_file.h"

namespace rodeo::process {
namespace {

constexpr std::size_t kLongestLine = 64 * 1024;
constexpr std::size_t kLongestReply = 64 << 20;
constexpr std::size_t kMostClients = 16;
constexpr std::size_t kMostUnread = 1 << 20;  // limit for answers that a client has not read [bytes]

/// The error for a listening process that does not answer: its state in the kernel, and what the user can do.
Error no_answer_error(int socket, std::chrono::milliseconds patience) {
  ucred peer{};
  socklen_t size = sizeof peer;
  std::string stat;
  if (::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0)
    std::getline(std::ifstream(fmt::format("/proc/{}/stat", peer.pid)), stat);
  const std::size_t name_end = stat.rfind(')');  // the name may contain any character
  const char state = name_end == std::string::npos || name_end + 2 >= stat.size() ? '?' : stat[name_end + 2];
  Error error{"process.unreachable", fmt::format("no answer within {} ms", patience.count())};
  if (state == '?') return error;
  const bool stopped = state == 'T' || state == 't';
  error.what += fmt::format("; process {} is there, {} (state {})", peer.pid,
                            stopped        ? "but a signal has stopped it"
                            : state == 'D' ? "and waits for a disk or a device"
                                           : "but does not answer",
                            state);
  error.next = stopped ? fmt::format("kill -CONT {} lets it go on", peer.pid)
                       : fmt::format("ask again; kill {0} ends it in order, kill -9 {0} at once", peer.pid);
  return error;
}

enum class Sent : std::uint8_t { all, some, closed };

/// Sends as much of `out` as the client takes now, and keeps the rest in it.
Sent send_out(int socket, std::string& out) {
  while (!out.empty()) {
    const ssize_t sent = ::send(socket, out.data(), out.size(), MSG_NOSIGNAL);
    if (sent > 0) {
      out.erase(0, static_cast<std::size_t>(sent));
    } else if (sent == 0) {
      return Sent::closed;
    } else if (errno != EINTR) {
      return errno == EAGAIN || errno == EWOULDBLOCK ? Sent::some : Sent::closed;
    }
  }
  return Sent::all;
}

}  // namespace

LineServer::LineServer(const std::filesystem::path& path) {
  auto endpoint = base::UnixEndpoint::open(
      {.path = path,
       .taken = {"process.name_taken", fmt::format("a process named `{}` is running already", path.stem().string()), path,
                 "end it, or give this one another name"}});
  if (!endpoint) throw SetupError(endpoint.error());
  endpoint_ = std::move(*endpoint);
}

void LineServer::accept_clients() {
  while (base::UniqueFd fd = endpoint_.accept()) {
    // A silent client must not keep others out.
    if (clients_.size() == kMostClients) clients_.erase(clients_.begin());
    clients_.push_back({.fd = std::move(fd), .in = {}, .out = {}});
  }
}

bool LineServer::serve_client(Client& client, const std::function<std::string(const std::string&)>& answer) {
  char buffer[4096];
  while (client.out.size() < kMostUnread) {
    const ssize_t got = ::recv(client.fd.get(), buffer, sizeof buffer, 0);
    if (got > 0) {
      client.in.append(buffer, static_cast<std::size_t>(got));
      if (client.in.size() > kLongestLine) return false;
      continue;
    }
    if (got == 0) return false;
    if (errno == EINTR) continue;
    if (errno != EAGAIN && errno != EWOULDBLOCK) return false;
    break;
  }
  for (std::size_t end = client.in.find('\n'); end != std::string::npos; end = client.in.find('\n')) {
    // A client that does not read gets no more answers until it reads.
    if (client.out.size() >= kMostUnread) {
      const Sent sent = send_out(client.fd.get(), client.out);
      if (sent != Sent::all) return sent == Sent::some;
    }
    client.out += answer(client.in.substr(0, end)) + "\n";
    client.in.erase(0, end + 1);
  }
  return send_out(client.fd.get(), client.out) != Sent::closed;
}

void LineServer::serve(std::chrono::milliseconds wait, const std::function<std::string(const std::string&)>& answer) {
  std::vector<pollfd> ready{{.fd = endpoint_.get(), .events = POLLIN, .revents = 0}};
  for (const Client& client : clients_) {
    const int reads = client.out.size() < kMostUnread ? POLLIN : 0;
    const int writes = client.out.empty() ? 0 : POLLOUT;
    ready.push_back({.fd = client.fd.get(), .events = static_cast<short>(reads | writes), .revents = 0});
  }
  if (::poll(ready.data(), ready.size(), static_cast<int>(wait.count())) <= 0) return;
  for (std::size_t i = clients_.size(); i-- > 0;) {
    bool keep = false;
    try {
      keep = ready[i + 1].revents == 0 || serve_client(clients_[i], answer);
    } catch (const std::exception&) {
      keep = false;  // drop the connection; the process continues
    }
    if (!keep) clients_.erase(clients_.begin() + static_cast<std::ptrdiff_t>(i));
  }
  accept_clients();
}

bool is_listening(const std::filesystem::path& path) {
  if (base::has_listener(path)) return true;
  // Each process holds the lock beside its socket for as long as the socket exists.
  const auto lock = base::LockFile::acquire(path.native() + ".lock", base::LockedPart::whole(), {});
  if (!lock) return false;
  ::unlink(path.c_str());
  lock->remove();
  return false;
}

Result<std::string> ask(const std::filesystem::path& path, const std::string& line, std::chrono::milliseconds patience) {
  const auto refuse = [&](Error error) {
    error.where = path;
    if (error.next.empty()) error.next = "is it running, as this user, under this name?";
    return std::unexpected(std::move(error));
  };
  const auto unreachable = [&](const std::string& what) { return refuse({"process.unreachable", what}); };
  const auto deadline = std::chrono::steady_clock::now() + patience;
  const auto socket = base::connect_unix(path, patience);
  if (!socket) return unreachable(fmt::format("no process listens: {}", socket.error().what));
  const std::string request = line + "\n";
  if (base::send_all(socket->get(), std::as_bytes(std::span(request)), {}, patience).status != base::IoStatus::done)
    return unreachable("the process does not accept the request");
  std::string reply;
  std::array<char, 4096> buffer{};
  base::ReceivedFds none;
  while (reply.empty() || reply.back() != '\n') {
    if (!base::wait_for(socket->get(), POLLIN, deadline)) return refuse(no_answer_error(socket->get(), patience));
    const base::IoResult got = base::receive_now(socket->get(), std::as_writable_bytes(std::span(buffer)), none);
    if (got.status == base::IoStatus::closed || got.status == base::IoStatus::failed)
      return unreachable("the process ended before it answered");
    reply.append(buffer.data(), got.bytes);
    if (reply.size() > kLongestReply) return unreachable("the answer is too long");
  }
  reply.pop_back();
  return reply;
}

}  // namespace rodeo::process
